"""Exit times of phase retrieval: reference numbers, other routes to them, exact simulations."""

import copy
import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, simpson, solve_ivp
from scipy.optimize import brentq
from scipy.special import digamma, hyp1f1
from scipy.stats import kstest

from sgdlimits.theory import phase_retrieval as pr
from sgdlimits.theory.phase_retrieval.starts import random_starts

EVERY = (("quenched", None), ("diffusive", None), ("diffusive", "random"), ("diffusive", 0.02))


def test_reference() -> None:
    values = [
        pr.exit_time(3000, p, step=step, noise=0.5, threshold=0.1, unit="paper")
        for p, step in ((1, 0.05), (2, 0.1), (5, 0.25))
    ]
    expected = [1.037595997024727, 0.7853762190122057, 0.7063556769806972]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    options: Any = {"step": 0.05, "noise": 0.5, "threshold": 0.1, "average": "diffusive"}
    for start in (None, 0, 0.0, [0.0]):
        value = pr.exit_time(3000, 1, start=start, **options)
        assert value == pytest.approx(1.4111061941653107, rel=1e-10)


def test_units_and_words() -> None:
    time, paper, samples = (
        pr.exit_time(1000, 4, step=0.2, average="quenched", unit=unit)
        for unit in ("time", "paper", "samples")
    )
    assert time == pytest.approx(4 * paper)
    assert samples == pytest.approx(time * 1000 / 0.2)
    assert repr(samples).endswith("(quenched exit time, in samples)")
    assert samples.unit == "samples"
    assert samples.average == "quenched"
    assert samples.parameters == {
        "dim": 1000,
        "width": 4,
        "step": 0.2,
        "noise": 0.0,
        "threshold": 0.1,
    }
    assert f"{paper:.2f}" == f"{float(paper):.2f}"
    assert type(time + 1) is float
    for again in (copy.copy(time), pickle.loads(pickle.dumps(time))):
        assert repr(again) == repr(time)
        assert again == time


def exit_times(m2: np.ndarray, level: float) -> np.ndarray:
    """2ωt for squared overlaps m² at the start: (45) solved for p = 1."""
    return np.log(level / m2 + 1 - level)


def normal_law(dim: int, level: float) -> float:
    """2ωt of (48): m² = z²/d with z standard normal, by the midpoint rule in √z."""
    root = (np.arange(400_000) + 0.5) * 1e-5  # 0 < z = root² < 16
    density = np.exp(-(root**4) / 2) * np.sqrt(2 / np.pi) * 2 * root * 1e-5
    return float(exit_times(root**4 / dim, level) @ density)


def quenched(dim: int, level: float) -> float:
    """2ωt of quenched exit times of one neuron."""
    time = pr.exit_time(dim, step=0.05, noise=0.5, threshold=level, average="quenched")
    return 2 * pr.growth_rate(1, 0.05, 0.5) * time


@pytest.mark.parametrize("level", [0.1, 0.8])
@pytest.mark.parametrize("dim", [2, 3, 20])
def test_quenched_from_sampled_starts(dim: int, level: float) -> None:
    """Gaussian vectors projected on the sphere; the law of d → ∞, that of (48), is off."""
    rng = np.random.default_rng(dim)
    weights = rng.standard_normal((200_000, dim))
    times = exit_times(weights[:, 0] ** 2 / np.sum(weights**2, axis=1), level)
    error = times.std() / np.sqrt(len(times))
    assert times.min() >= 0
    assert abs(times.mean() - quenched(dim, level)) < 4 * error
    assert abs(times.mean() - normal_law(dim, level)) > 10 * error


@pytest.mark.parametrize("level", [1e-9, 0.1, 0.999])
def test_quenched_by_adaptive_quadrature(level: float) -> None:
    """m = sin φ has the density cos^(d−2) φ; φ = s² softens the logarithm at 0."""
    for dim in (2, 3, 20, 300):

        def integral(function: Callable[[float], float], dim: int = dim) -> float:
            def integrand(s: float) -> float:
                return function(math.sin(s * s) ** 2) * math.cos(s * s) ** (dim - 2) * 2 * s

            edge = math.sqrt(math.pi / 2)
            cuts = [0.0, *np.sqrt([level**0.5, 5 / dim**0.5]).clip(0, edge), edge]
            pieces = itertools.pairwise(np.unique(cuts))
            return float(sum(quad(integrand, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pieces))

        mean = integral(lambda m2: math.log1p(level * (1 - m2) / m2)) / integral(lambda _: 1.0)
        assert quenched(dim, level) == pytest.approx(mean, rel=1e-9)


def test_quenched_is_a_digamma_at_full_loss() -> None:
    """At T = 1 the time is −E log m²/(2ω), and E log m² = ψ(½) − ψ(d/2) for a beta variable."""
    for dim in (2, 7, 10**4, 10**15):
        exact = digamma(dim / 2) - digamma(0.5)
        assert quenched(dim, 1 - 1e-14) == pytest.approx(exact, rel=1e-12)


def test_quenched_approaches_its_limit_at_rate_one_over_dim() -> None:
    dims = np.array([250, 1000, 4000])
    gaps = np.array([normal_law(dim, 0.1) - quenched(dim, 0.1) for dim in dims])
    np.testing.assert_allclose(dims * gaps, 1, atol=1e-2)
    slope = np.polyfit(np.log(dims), np.log(gaps), 1)[0]
    assert slope == pytest.approx(-1, abs=0.01)


@pytest.mark.parametrize(("dim", "width"), [(60, 2), (100, 5), (400, 20), (10**6, 20)])
def test_law_of_the_squared_overlaps_of_several_neurons(dim: int, width: int) -> None:
    """Moments; and E log(c + S) − E log S by the Laplace transform, ∫ φ(u)ᵖ (1 − e^(−uc)) du/u."""
    starts = random_starts(dim, width)
    mean = starts.mean(starts.nodes)
    assert mean == pytest.approx(width / dim, rel=1e-9)
    variance = width * 2 * (dim - 1) / (dim**2 * (dim + 2))
    assert starts.mean(starts.nodes**2) - mean**2 == pytest.approx(variance, rel=1e-7)
    x = np.arange(-40.0, math.log(dim) + 80 / width, 0.05)
    u, c = np.exp(x), 3 / dim
    one = random_starts(dim, 1)
    transform = np.exp(-np.outer(u, one.nodes)) @ one.weights
    if dim == 400:  # another route to it
        known = hyp1f1(0.5, dim / 2, -u[u < 1e3])
        np.testing.assert_allclose(transform[u < 1e3], known, rtol=1e-9)
    expected = 0.05 * np.sum(transform**width * -np.expm1(-u * c))
    assert starts.mean(np.log1p(c / starts.nodes)) == pytest.approx(expected, rel=1e-9)
    # the distribution function is that of the nodes
    edges = starts.nodes[:-1] ** 0.5 * starts.nodes[1:] ** 0.5
    cdf = np.cumsum(starts.weights)[:-1]
    np.testing.assert_allclose(starts.cdf(edges), cdf, atol=0.01)


@pytest.mark.parametrize(("dim", "width"), [(100, 2), (300, 5), (400, 20)])
def test_quenched_of_several_neurons_from_sampled_starts(dim: int, width: int) -> None:
    """τ₀ too is sampled: its mean given S₀ is enough; formula (46) with χ² in place is not."""
    level, rng, runs = 0.1, np.random.default_rng(width), 40_000 // width
    squares, pairs = np.empty(runs), np.empty(runs)
    for part in np.array_split(np.arange(runs), 20):
        w = rng.standard_normal((len(part), width, dim))
        w /= np.linalg.norm(w, axis=2, keepdims=True)
        squares[part] = np.sum(w[:, :, 0] ** 2, axis=1)
        gram = np.einsum("rid,rjd->rij", w, w, optimize=True)
        pairs[part] = np.sum(gram**2, axis=(1, 2)) - width
    fixed = level * width * (width + 1)
    doubled = np.log((fixed + (1 - level) * (2 * width * squares - pairs)) / (2 * width * squares))
    times = doubled / (2 * pr.growth_rate(width, 0.1))
    value = pr.exit_time(dim, width, step=0.1, average="quenched")
    error = times.std() / runs**0.5
    assert abs(times.mean() - value) < 4 * error
    law = pr.exit_law(dim, width, step=0.1, average="quenched")
    assert kstest(times, law.cdf).pvalue > 1e-4
    # what leaving τ₀'s scatter out does to each of them is bounded by second order
    left_out = 2 * (width - 1) / (width * (width + 1) ** 2 * (level * dim) ** 2)
    assert left_out < 3e-3
    if width == 2:
        printed = np.log(fixed / (2 * width * squares)) / (2 * pr.growth_rate(width, 0.1))
        assert abs(printed.mean() - value) > 4 * error  # (44), (45) with dτ₀, dμ₀ forgotten


def test_diffusive_is_the_hypergeometric_series() -> None:
    """At a small argument the series of (52) converges, at any width: another evaluation."""
    for width, level, step in ((1, 0.002, 0.05), (2, 0.0005, 0.05), (5, 0.0005, 0.25)):
        rate, noise = pr.growth_rate(width, step, 0.5), pr.overlap_noise(width, step, 0.5)
        level_y = rate * 3000 / noise * level * (width + 1) / 2
        term, series = 1.0, 0.0
        for n in range(120):  # ratio of terms of 2F2(1, 1; 1 + p/2, 2; −Y)
            series += term
            term *= (1 + n) * (1 + n) / ((1 + width / 2 + n) * (2 + n)) * -level_y / (1 + n)
        assert 1 < level_y < 12
        options: Any = {"step": step, "noise": 0.5, "threshold": level, "average": "diffusive"}
        value = pr.exit_time(3000, width, **options)
        assert value == pytest.approx(level_y / (rate * width) * series, rel=1e-9)


@pytest.mark.parametrize("width", [1, 3])
def test_diffusive_solves_the_backward_equation(width: int) -> None:
    """ωx t' + (σ²/2d)(t'' + (p − 1)t'/x) = −1 with t = 0 at exit, from any start."""
    dim, options = 500, dict[str, Any](step=0.05, noise=0.5)
    rate, noise = pr.growth_rate(width, 0.05, 0.5), pr.overlap_noise(width, 0.05, 0.5) / dim
    for start in (0.05, 0.2):
        square = width * start**2
        exit_radius = math.sqrt(0.1 * (width + 1) / 2 + 0.9 * square)

        def slopes(x: float, u: np.ndarray) -> list[float]:
            return [u[1], -2 / noise * (1 + rate * x * u[1]) - (width - 1) / x * u[1]]

        # the regular solution at 0: t' = −2x/(p σ²/d)
        tiny = 1e-4
        first = [0.0, -2 * tiny / (width * noise)]
        solved = solve_ivp(
            slopes,
            (tiny, exit_radius),
            first,
            "LSODA",
            [square**0.5, exit_radius],
            rtol=1e-10,
            atol=1e-12,
        )
        mean = solved.y[0, 0] - solved.y[0, 1]
        value = pr.exit_time(dim, width, average="diffusive", start=start, **options)
        assert value == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize(("average", "start"), EVERY)
@pytest.mark.parametrize(("dim", "width"), [(200, 1), (10**4, 5)])
def test_a_law_and_its_mean_agree(dim: int, width: int, average: str, start: Any) -> None:
    """Means by one integral, laws by beta functions or Fourier series."""
    law = pr.exit_law(
        dim, width, step=0.05, noise=0.5, average=average, start=start, unit="samples"
    )
    times = np.linspace(0, law.longest, 6001)
    values = law.cdf(times)
    assert np.all(np.diff(values) > -1e-8)
    assert simpson(1 - values, x=times) == pytest.approx(law.mean, rel=1e-7)
    q = np.array([0.01, 0.5, 0.99])
    np.testing.assert_allclose(law.cdf(law.quantile(q)), q, atol=1e-9)
    sample = law.sample(4000, seed=1)
    assert kstest(sample, law.cdf).pvalue > 1e-4
    assert abs(sample.mean() - law.mean) < 4 * sample.std() / 4000**0.5
    np.testing.assert_array_equal(sample, law.sample(4000, seed=1))
    assert law.cdf(-1.0) == 0
    assert "80 % lie in" in repr(law)


def test_without_noise_of_sgd_the_diffusive_law_is_the_quenched_one() -> None:
    dim, step = 10**6, 1e-9
    diffusive = pr.exit_law(dim, step=step, average="diffusive", start="random")
    quenched_law = pr.exit_law(dim, step=step, average="quenched")
    times = quenched_law.quantile([0.001, 0.1, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(diffusive.cdf(times), quenched_law.cdf(times), atol=1e-6)


def passages(
    rng: np.random.Generator, rate: float, noise: float, m: np.ndarray, exits: np.ndarray
) -> np.ndarray:
    """First passage of dm = ωm dt + s dB, one row each, out of spheres; 2ωt.

    Exact transitions; a crossing between two of them has the probability that a Brownian bridge
    crosses a plane, exp(−2·gap·gap'/(s²·dt)), in which curvature is left out.
    """
    h, runs = 4e-3 / rate, len(m)
    growth, spread = math.exp(rate * h), math.sqrt(noise * math.expm1(2 * rate * h) / (2 * rate))
    times, alive = np.full(runs, np.nan), np.arange(runs)
    gaps = exits - np.linalg.norm(m, axis=1)
    k = 0
    while len(alive):
        k += 1
        m = growth * m + spread * rng.standard_normal(m.shape)
        after = exits[alive] - np.linalg.norm(m, axis=1)
        bridge = np.exp(-2 * np.maximum(after, 0) * gaps / (noise * h))
        out = (after <= 0) | (rng.uniform(size=len(alive)) < bridge)
        times[alive[out]] = (k - 0.5) * h * 2 * rate
        alive, m, gaps = alive[~out], m[~out], after[~out]
    return times


@pytest.mark.parametrize(
    ("dim", "width", "start"), [(300, 1, None), (300, 1, "random"), (300, 3, "random")]
)
def test_the_diffusive_law_is_that_of_the_linear_diffusion(
    dim: int, width: int, start: str | None
) -> None:
    step, noise, level, runs = 0.05, 0.5, 0.1, 4000
    rng = np.random.default_rng(7)
    m = np.zeros((runs, width))
    if start:
        w = rng.standard_normal((runs, width, dim))
        m = w[:, :, 0] / np.linalg.norm(w, axis=2)
    square = np.sum(m**2, axis=1)
    # τ₀ at its mean, which the simulation of overlaps with the teacher does not have
    pairs = (width - 1) / dim * (width - 2 * (dim * square - width) / (dim - 1)) if start else 0
    exits = np.sqrt(level * (width + 1) / 2 + (1 - level) * (square - pairs / (2 * width)))
    rate = pr.growth_rate(width, step, noise)
    doubled = passages(rng, rate, pr.overlap_noise(width, step, noise) / dim, m, exits)
    options: Any = {"step": step, "noise": noise, "threshold": level}
    law = pr.exit_law(dim, width, average="diffusive", start=start, **options)
    assert kstest(doubled / (2 * rate), law.cdf).pvalue > 1e-4
    other = pr.exit_law(dim, width, average="quenched", **options)
    assert kstest(doubled / (2 * rate), other.cdf).pvalue < 1e-6  # control: noise of SGD left out


@pytest.mark.parametrize("width", [1, 2, 20])
def test_what_is_left_of_the_logarithm(width: int) -> None:
    options: Any = {"step": 0.1 * width, "noise": 0.5, "threshold": 0.2}
    dims = np.array([10**4, 10**5, 10**6])
    for average, start in (("annealed", None), *EVERY[:3]):
        offset = pr.exit_time_offset(width, average=average, start=start, **options)
        rate = pr.growth_rate(width, options["step"], 0.5)
        times = [pr.exit_time(int(d), width, average=average, start=start, **options) for d in dims]
        gaps = np.abs(times - np.log(dims) / (2 * rate) - offset)
        assert gaps[-1] < 1e-4
        assert gaps[-1] < 0.2 * gaps[0] + 1e-9


@pytest.mark.parametrize(("width", "step"), [(1, 0.05), (2, 0.2), (4, 0.5)])
def test_the_delay_is_what_the_linear_theory_lacks_at_small_thresholds(
    width: int, step: float
) -> None:
    """Solutions of the full ODE from Gaussian directions: their mean gap over T is the delay's."""
    rng, noise, tiny = np.random.default_rng(0), 0.5, 2e-3
    rate, first = pr.growth_rate(width, step, noise), 1 + 1 / width
    upper = np.triu_indices(width, 1)
    levels = np.array([0.01, 0.02])
    directions = rng.standard_normal((1 if width == 1 else 8, width))
    gaps = []
    for m in tiny * directions / np.linalg.norm(directions, axis=1, keepdims=True):

        def unpacked(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            gram = np.eye(width)
            gram[upper] = u[width:]
            return u[:width], gram + gram.T - np.eye(width)

        def velocity(t: float, u: np.ndarray) -> np.ndarray:
            moved = pr.drift(*unpacked(u), step=step, noise=noise)
            return np.concatenate([moved.overlaps, moved.gram[upper]])

        def lost(u: np.ndarray) -> float:
            return 1 - (pr.risk(*unpacked(u), noise=noise) - noise / 2) / first

        start = np.concatenate([m, np.zeros(len(upper[0]))])
        linear = np.log(levels * (width + 1) / 2 / tiny**2) / (2 * rate)
        path = solve_ivp(
            velocity, (0, 1.3 * linear[-1]), start, rtol=1e-9, atol=1e-16, dense_output=True
        )
        gaps.append(
            [
                brentq(lambda t: lost(path.sol(t)) - level, 0.7 * time, 1.3 * time, xtol=1e-10)
                - time
                for level, time in zip(levels, linear, strict=True)
            ]
        )
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0) / len(gaps) ** 0.5
    expected = np.array([pr.exit_delay(width, step=step, noise=noise, threshold=T) for T in levels])
    # to first order in T: extrapolate the ratio to T = 0
    ratio = 2 * mean[0] / expected[0] - mean[1] / expected[1]
    assert abs(ratio - 1) < 0.003 + 4 * error[0] / expected[0]


def test_the_fastest_step_and_what_width_gains() -> None:
    for width, noise in ((1, 0.5), (3, 0.0), (20, 2.0)):
        best = pr.minimal_samples(10**4, width, noise=noise)
        edge = pr.largest_step(noise, width)
        others = [
            pr.exit_time(10**4, width, step=s, noise=noise, unit="samples")
            for s in np.linspace(0.1, 0.9, 81) * edge
            if width == 1 or s < width**2 / 8
        ]
        assert best <= min(others) * (1 + 1e-12)
        assert best == pytest.approx(min(others), rel=1e-3)
        p, log = width, math.log((0.1 * (width + 1) * 10**4 + (width + 1) * 0.9) / (2 * width))
        closed = 10**4 * (8 + 2 * p + (2 + noise) * p**2) * log / (4 * p**2)
        assert best == pytest.approx(closed, rel=1e-12)
    assert pr.overparametrization_gain(0.5) == pytest.approx(12.5 / 2.5)
    ratio = pr.minimal_samples(10**18, noise=0.5) / pr.minimal_samples(10**18, 300, noise=0.5)
    assert ratio == pytest.approx(pr.overparametrization_gain(0.5, 300), rel=0.02)


def test_steps_that_learn_keep_neurons_apart_beyond_six() -> None:
    """ω_M > 0 ⇒ ω_Q > 0 if and only if (2 + Δ)p² − 14p + 8 ≥ 0; the drift has these rates."""
    least = {2: 3.0, 3: 16 / 9, 4: 1.0, 5: 12 / 25, 6: 1 / 9}
    for width in range(2, 12):
        for noise in (0.0, 0.05, 0.5, 1.5, 5.0):
            edge = pr.largest_step(noise, width) * (1 - 1e-9)
            apart = pr.alignment_decay_rate(width, edge) > 0
            assert apart == (noise >= least.get(width, 0.0))
            assert pr.alignment_decay_rate(width, pr.fastest_step(width, noise)) > 0
    gram = np.eye(3)
    gram[0, 1] = gram[1, 0] = 1e-6
    moved = pr.drift([0.0] * 3, gram, step=0.2, noise=0.5).gram[0, 1] / 1e-6
    assert moved == pytest.approx(-pr.alignment_decay_rate(3, 0.2), rel=1e-6)


def test_two_neurons_at_a_step_that_aligns_them_never_exit() -> None:
    """γ = 0.7 lies between p²/8 and the largest step: the risk grows, and does not come back."""
    assert pr.growth_rate(2, 0.7) > 0 > pr.alignment_decay_rate(2, 0.7)

    def velocity(t: float, u: np.ndarray) -> np.ndarray:
        moved = pr.drift(u[:2], [[1.0, u[2]], [u[2], 1.0]], step=0.7)
        return np.array([*moved.overlaps, moved.gram[0, 1]])

    path = solve_ivp(velocity, (0, 60), [0.02, 0.03, 0.02], rtol=1e-8, atol=1e-12)
    end = path.y[:, -1]
    excess = pr.risk(end[:2], [[1.0, end[2]], [end[2], 1.0]])
    assert excess > 1.5  # it was 1 + 1/p
    with pytest.raises(ValueError, match=r"step=0.7 is not allowed: step must lie in \(0, 0.5\)"):
        pr.exit_time(1000, 2, step=0.7)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"step": 0.2}, r"step=0.2 is not allowed.*\(0, 0.166667\).*SGD never escapes"),
        ({"threshold": 1.5}, r"threshold=1.5 is not allowed.*\(0, 1\)"),
        ({"threshold": 0.0}, r"threshold=0.0 is not allowed"),
        ({"width": 0}, r"width=0 is not allowed"),
        ({"dim": 1}, r"dim=1 is not allowed"),
        ({"unit": "hours"}, r"unit='hours' is not allowed.*'samples'"),
        ({"average": "mean"}, r"average='mean' is not allowed.*'quenched'"),
        ({"start": "random"}, r"start='random' is not allowed.*unless average is 'diffusive'"),
        ({"average": "diffusive", "start": "warm"}, r"start='warm' is not allowed.*'random'"),
        ({"average": "diffusive", "start": 1.0}, r"start=1.0 is not allowed.*less than 1"),
        ({"average": "diffusive", "start": [0.1, 0.1]}, r"start has shape \(2,\)"),
        ({"width": 20, "threshold": 1e-5, "step": 1.0}, r"threshold=1e-05 is not allowed.*above"),
        ({"dim": 50, "width": 9, "average": "quenched"}, r"dim=50 is not allowed.*least 180"),
    ],
)
def test_wrong_input_is_told_in_words(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pr.exit_time(**{"dim": 1000, "step": 0.05} | wrong)


def test_laws_that_do_not_exist_are_told_in_words() -> None:
    with pytest.raises(ValueError, match=r"average='annealed' is not allowed.*has no law"):
        pr.exit_law(1000, step=0.05, average="annealed")
    with pytest.raises(ValueError, match=r"start=0.5 is not allowed.*exit_time has"):
        pr.exit_law(10**6, step=0.05, average="diffusive", start=0.5)
    with pytest.raises(ValueError, match=r"threshold=1e-06 is not allowed.*larger"):
        pr.exit_law(100, step=0.05, average="diffusive", threshold=1e-6)
    with pytest.raises(ValueError, match=r"probability=1.0 is not allowed"):
        pr.exit_law(100, step=0.05).quantile(1.0)
    with pytest.raises(ValueError, match=r"start=0.1 is not allowed.*'random'"):
        pr.exit_time_offset(step=0.05, average="diffusive", start=0.1)  # type: ignore[arg-type]


def test_huge_starts_and_widths_that_are_arrays_are_told() -> None:
    with pytest.raises(ValueError, match=r"start=1e\+300 is not allowed"):
        pr.exit_time(3000, step=0.05, average="diffusive", start=1e300)
    for width in (np.zeros((2, 2)), np.zeros((0, 2))):
        with pytest.raises(ValueError, match="width="):
            pr.overparametrization_gain(0.5, width)  # type: ignore[arg-type]
