"""How long phase retrieval takes to escape mediocrity: times, their law, samples.

Exit means that the risk has lost a fraction T = ``threshold`` of the excess over Δ/2 that it had at
the start. Overlaps m with the teacher are taken to be small until then, so that
S = Σⱼ mⱼ² grows as e^(2ωt) with ω = ``growth_rate``, and overlaps between neurons to have decayed
at exit. In the paper's units of S = μ₀/d and τ₀/d = Σ_{j≠l} Q_jl(0)², exit is at

    S = [Tp(p + 1) + (1 − T)(2pS₀ − τ₀/d)]/(2p).                                              (45)

Four averages, from the least to the most that is taken into account:

- *annealed*: the time from one start with the mean S₀ = p/d and τ₀ = p(p − 1). It is the time of a
  mean start and not a mean time: too early, since the logarithm is concave;
- *quenched*: the mean over random starts of the time that the noiseless growth takes from each;
- *diffusive* with ``start=None``: the mean over the noise of SGD, from S₀ = 0. Too late for random
  starts;
- *diffusive* with ``start="random"``: the mean over both. This is the one that predicts SGD.

What remains is the slowing down of growth towards the threshold, of which ``exit_delay`` is the
first order in T, and terms of order 1/(dT).
"""

import dataclasses
import math

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, WholeNumber, Word
from sgdlimits.theory.phase_retrieval.exit_results import UNITS, ExitLaw, ExitTime
from sgdlimits.theory.phase_retrieval.exit_setting import averaged_over, checked_setting
from sgdlimits.theory.phase_retrieval.passage import mean_passage, passage_law
from sgdlimits.theory.phase_retrieval.rates import fastest_step
from sgdlimits.theory.phase_retrieval.starts import random_starts

SAME = 1e-10  # starts with smaller S₀ than this share of S at exit have one and the same exit
NOISELESS = 300.0  # starts with a larger y₀ exit at a time that noise changes by under a tenth


def exit_time(
    dim: WholeNumber,
    width: WholeNumber = 1,
    *,
    step: Number,
    noise: Number = 0.0,
    threshold: Number = 0.1,
    average: Word = "annealed",
    start: Word | Numeric | None = None,
    unit: Word = "time",
) -> ExitTime:
    """Mean exit time of phase retrieval on the sphere, for any width p.

        annealed    log[(p + 1)(Td + 1 − T)/(2p)]/(2ω)
        quenched    E log[(Tp(p + 1) + (1 − T)(2pS₀ − τ₀/d))/(2pS₀)]/(2ω)   over random starts
        diffusive   (Y/(pω)) ₂F₂(1, 1; 1 + p/2, 2; −Y)  from S₀ = 0,   Y = ωdT(p + 1)/(2σ²)

    with ω = ``growth_rate`` and σ² = ``overlap_noise``: overlaps follow dm = ωm dt + (σ/√d) dB,
    and from other starts the last line is (1/2ω) ∫₀¹ (1 − v)^(p/2 − 1) (e^(−yv) − e^(−Yv)) dv/v,
    y = ωdS₀/σ². For one neuron and S₀ = 0 it leaves (−√T, √T). The laws of S₀ and of τ₀ are those
    of dimension d: mⱼ² ~ Beta(½, (d − 1)/2), independently, and given S₀ the mean of τ₀ stands for
    τ₀, which moves quenched times by less than 2/((p + 1)Td)² of 1/(2ω). Integrals are exact to
    1e-9.

    Which one to trust: from random starts ``average="diffusive", start="random"``; without noise
    of SGD, quenched, which is a few per cent later. The annealed time is too early by
    (log(p/2) − ψ(p/2))/(2ω), or 1.27/(2ω) for one neuron. All of them take T to be small: growth
    slows down towards the threshold, and ``exit_delay`` may be added.

    Args:
        dim: d.
        width: number of neurons p.
        step: γ, below ``largest_step`` and, for several neurons, p²/8.
        noise: variance Δ of the label noise.
        threshold: T.
        average: "annealed", "quenched" or "diffusive".
        start: of diffusive times: "random", or overlaps with the teacher, one for each neuron or
            one for all; None is 0. Neurons of given overlaps are orthogonal to one another.
        unit: "time", δ·steps; "paper", that over p; or "samples", which is time·dim/step.

    Source: AKLS23 (10), (46), (47), (52), Zeng (Z20); (10), (44), (45) and (48) corrected at finite
    d, and (52) extended to any width and start.

    >>> exit_time(3000, step=0.05, noise=0.5)
    1.0376 (annealed exit time, in units of dim/step samples)
    >>> exit_time(3000, step=0.05, noise=0.5, average="diffusive", start="random", unit="samples")
    72008.4 (diffusive exit time from random starts, in samples)
    """
    setting = checked_setting(dim, width, step, noise, threshold)
    kind, place = averaged_over(average, start)
    scale = setting.scale(_checks.choice("unit", unit, list(UNITS)))
    d, p, T = setting.dim, setting.width, setting.threshold
    if kind == "annealed":
        doubled = math.log((p + 1) * (T * d + 1 - T) / (2 * p))
    elif kind == "quenched":
        low, high, weights = setting.random()
        doubled = float(weights @ np.log(high / low))
    else:
        low, high, weights = setting.random() if place else setting.given(start)
        a = setting.slope
        doubled = mean_passage(p / 2, a * low, a * high, weights)
    return ExitTime(
        scale * doubled / (2 * setting.rate), unit, kind, place, dataclasses.asdict(setting)
    )


def exit_law(
    dim: WholeNumber,
    width: WholeNumber = 1,
    *,
    step: Number,
    noise: Number = 0.0,
    threshold: Number = 0.1,
    average: Word = "quenched",
    start: Word | Numeric | None = None,
    unit: Word = "time",
) -> ExitLaw:
    """The law of the exit time, of which ``exit_time`` is the mean.

    Quenched: what the scatter of random starts makes of the exit time, by the exact law of S₀.
    Diffusive: the law of the first passage of the linear diffusion, from one start or from random
    ones, by its Laplace transform

        E e^(−2ωqt) = N(y)/N(Y),   N(y) = e^(−y) ₁F₁(p/2 + q; p/2; y),

    and a Fourier series; its distribution function has an error below 1e-8.

    Args:
        dim: and all others as in ``exit_time``.
        width: p.
        step: γ.
        noise: Δ.
        threshold: T.
        average: "quenched" or "diffusive"; an annealed time is one number.
        start: of diffusive times.
        unit: of the times that the law takes and gives.

    Source: AKLS23 (46), (51), where only means are given.

    >>> law = exit_law(3000, step=0.05, noise=0.5, average="diffusive", start="random")
    >>> law.quantile([0.1, 0.9]).round(4).tolist()
    [0.7893, 1.7228]
    """
    mean = exit_time(
        dim,
        width,
        step=step,
        noise=noise,
        threshold=threshold,
        average=average,
        start=start,
        unit=unit,
    )
    setting = checked_setting(dim, width, step, noise, threshold)
    scale = setting.scale(mean.unit) / (2 * setting.rate)
    p = setting.width
    if mean.average == "annealed":
        raise _checks.InputError(
            f"average={average!r} is not allowed: average must be 'quenched' or 'diffusive', since "
            "the annealed exit time is that of one mean start and has no law"
        )
    if mean.average == "quenched":
        starts, (alpha, beta) = random_starts(setting.dim, p), setting.level
        longest = math.log1p(alpha / (2 * p) * setting.dim) + 60 / p + 5

        def quenched(times: np.ndarray) -> np.ndarray:
            growth = np.exp(np.clip(times / scale, 0.0, longest))
            left = 1 - starts.cdf(alpha / (2 * p * growth - beta))
            return np.where(times < 0, 0.0, left)

        return ExitLaw(mean, quenched, longest * scale)

    low, high, weights = setting.random() if mean.start else setting.given(start)
    a = setting.slope
    if len(low) == 1 and a * low[0] > NOISELESS:
        raise _checks.InputError(
            f"start={_checks.shown(start)} is not allowed: start must be so small that noise "
            "matters, and from this one it changes growth by less than a tenth; exit_time has "
            "their mean"
        )
    high = np.where(low < SAME * high, high[0], high)
    try:
        law = passage_law(p / 2, a * low, a * high, weights)
    except ValueError as error:
        raise _checks.InputError(
            f"threshold={threshold!r} is not allowed: threshold must be larger at dim={dim} and "
            f"step={step}, where noise alone passes it at once, with no growth"
        ) from error
    return ExitLaw(mean, lambda times: law.cdf(times / scale), law.longest * scale)


def minimal_samples(
    dim: WholeNumber,
    width: WholeNumber = 1,
    *,
    noise: Number = 0.0,
    threshold: Number = 0.1,
    average: Word = "annealed",
    start: Word | Numeric | None = None,
) -> ExitTime:
    """Samples to escape at the fastest step, γ_opt = p³/(8 + 2p + (2 + Δ)p²).

        d (8 + 2p + (2 + Δ)p²)/(4p²) · log[(p + 1)(Td + 1 − T)/(2p)]

    if ``average`` is annealed; γ_opt is the fastest step of quenched times too, and of diffusive
    ones as d → ∞. Arguments are those of ``exit_time``.

    Source: AKLS23 sec. E.4.

    >>> minimal_samples(3000, noise=0.5)
    53501 (annealed exit time, in samples)
    """
    return exit_time(
        dim,
        width,
        step=fastest_step(width, noise),
        noise=noise,
        threshold=threshold,
        average=average,
        start=start,
        unit="samples",
    )
