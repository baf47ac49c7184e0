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
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import digamma

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, WholeNumber, Word
from sgdlimits.theory._inputs import below
from sgdlimits.theory.phase_retrieval.passage import mean_passage, passage_law
from sgdlimits.theory.phase_retrieval.rates import (
    alignment_decay_rate,
    fastest_step,
    growth_rate,
    largest_step,
)
from sgdlimits.theory.phase_retrieval.starts import random_starts

AVERAGES = ("annealed", "quenched", "diffusive")
UNITS = {
    "time": "units of dim/step samples",
    "paper": "units of width·dim/step samples",
    "samples": "samples",
}
TABLE = 4097  # times at which the distribution function is known to `sample`
NOISELESS = 2000.0  # starts with a larger y₀ exit at a time that noise changes by under 3 %


class ExitTime(float):
    """A mean exit time: a float that knows its ``unit``, its ``average`` and its parameters.

    Arithmetic gives plain floats.

    >>> ExitTime(1.0376, "time", "annealed", None, {"dim": 3000})
    1.0376 (annealed exit time, in units of dim/step samples)
    """

    unit: str
    average: str
    start: str | None
    parameters: dict[str, float]

    def __new__(
        cls,
        value: float,
        unit: str,
        average: str,
        start: str | None,
        parameters: dict[str, float],
    ) -> "ExitTime":
        """Attach to a number what it means."""
        self = super().__new__(cls, value)
        self.unit, self.average, self.start = unit, average, start
        self.parameters = dict(parameters)
        return self

    def __getnewargs__(self) -> Any:
        return float(self), self.unit, self.average, self.start, self.parameters

    def __repr__(self) -> str:
        place = f" from {self.start}" if self.start else ""
        return f"{float(self):.6g} ({self.average} exit time{place}, in {UNITS[self.unit]})"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ExitLaw:
    """The law of the exit time of runs: mean, quantiles, distribution function, samples."""

    mean: ExitTime
    distribution: Callable[[np.ndarray], np.ndarray]
    longest: float  # which it exceeds with probability 1e-12

    def cdf(self, times: Numeric) -> np.ndarray:
        """Probability of having left by these times, in the unit of the law."""
        return self.distribution(_checks.array("times", times, None))

    def quantile(self, probability: Numeric) -> np.ndarray:
        """Times by which a share of runs has left, in the unit of the law."""
        q = _checks.array("probability", probability, None)
        if np.any((q <= 0) | (q >= 1)):
            raise _checks.InputError(
                f"probability={_checks.shown(q)} is not allowed: probability must lie in (0, 1)"
            )
        low, high = np.zeros(q.shape), np.full(q.shape, self.longest)
        for _ in range(52):
            middle = (low + high) / 2
            above = self.distribution(middle) >= q
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return np.asarray((low + high) / 2)

    def sample(self, n: WholeNumber, seed: WholeNumber = 0) -> np.ndarray:
        """Independent exit times, read off a table of the distribution function."""
        count = _checks.integer("n", n, least=1)
        rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
        times, values = self._table
        return np.asarray(np.interp(rng.uniform(size=count), values, times))

    def __repr__(self) -> str:
        ends = ", ".join(f"{value:.6g}" for value in self.quantile([0.1, 0.9]))
        return f"law of exit times with the mean {self.mean!r}; 80 % lie in ({ends})"

    @functools.cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        times = np.linspace(0.0, self.longest, TABLE)
        return times, np.maximum.accumulate(self.distribution(times))


@dataclasses.dataclass(frozen=True)
class Setting:
    """Checked parameters, and what follows from them."""

    dim: int
    width: int
    step: float
    noise: float
    threshold: float

    @property
    def rate(self) -> float:
        """ω."""
        return growth_rate(self.width, self.step, self.noise)

    @property
    def level(self) -> tuple[float, float]:
        """α and β of exit at S = (α + βS₀)/(2p), given S₀, for random starts.

        τ₀ has its mean given S₀: τ₀/d = p(p − 1)/d − 2(p − 1)(S₀ − p/d)/(d − 1), up to a relative
        1/d. Its scatter around that, of variance 4p(p − 1)/d², moves times by less than
        (p − 1)/(p(p + 1)²(Td)²ω), of mean zero to first order.
        """
        p, d, T = self.width, self.dim, self.threshold
        drop = (1 - T) * (p - 1) / (d - 1)
        alpha = T * p * (p + 1) - drop * p * (d + 1) / d
        return alpha, 2 * (p * (1 - T) + drop)

    @property
    def slope(self) -> float:
        """ωd/σ², which makes S the y of first passage."""
        return self.rate * self.dim / overlap_noise(self.width, self.step, self.noise)

    def scale(self, unit: str) -> float:
        """How many of the units are one unit of time."""
        return {"time": 1.0, "paper": 1 / self.width, "samples": self.dim / self.step}[unit]

    def random(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """S₀, S at exit, and weights of random starts."""
        starts = random_starts(self.dim, self.width)
        alpha, beta = self.level
        levels = np.maximum((alpha + beta * starts.nodes) / (2 * self.width), starts.nodes)
        return starts.nodes, levels, starts.weights

    def given(self, overlaps: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for one start, with neurons orthogonal to one another; None is 0."""
        if overlaps is None:
            return np.zeros(1), np.array([self.threshold * (self.width + 1) / 2]), ONE
        m = _checks.array("start", overlaps, None)
        if m.shape not in ((), (self.width,)):
            raise _checks.InputError(
                f"start has shape {m.shape}, which is not allowed: start must be one overlap for "
                f"all neurons, or {self.width} of them"
            )
        square = float(np.sum(np.broadcast_to(m, (self.width,)) ** 2))
        if not square < 1:
            raise _checks.InputError(
                f"start={_checks.shown(m)} is not allowed: start must be overlaps of neurons that "
                f"are orthogonal to one another, whose squares sum to less than 1, not {square:.6g}"
            )
        T = self.threshold
        return np.array([square]), np.array([T * (self.width + 1) / 2 + (1 - T) * square]), ONE


ONE = np.ones(1)


def overlap_noise(width: WholeNumber, step: Number, noise: Number = 0.0) -> float:
    """Variance per unit of time of √d times an overlap, at the equator of the sphere.

        σ² = (4γ/p²)(10 − 6/p + 8/p² + Δ),   which is 4γ(12 + Δ) for one neuron

    It is γE[(2ℰsⱼs⋆/p)²] with independent fields; overlaps of different neurons fluctuate
    independently, and the sphere takes away nothing where m = 0.

    Source: AKLS23 sec. F for p = 1; (54) at m = 0, Q = I.

    >>> round(overlap_noise(1, 0.05, 0.5), 12)
    2.5
    """
    p, gamma = _checks.integer("width", width, least=1), _checks.positive("step", step)
    delta = _checks.nonnegative("noise", noise)
    return 4 * gamma / p**2 * (10 - 6 / p + 8 / p**2 + delta)


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
    τ₀, which moves quenched times by less than 2/(p³(Td)²) of 1/(2ω). Integrals are exact to 1e-9.

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
    setting = _setting(dim, width, step, noise, threshold)
    kind, place = _kind(average, start)
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
    setting = _setting(dim, width, step, noise, threshold)
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
    a, kept = setting.slope, weights > 1e-14
    low, high, weights = low[kept], high[kept], weights[kept]
    if len(low) == 1 and a * low[0] > NOISELESS:
        raise _checks.InputError(
            f"start={_checks.shown(start)} is not allowed: start must be so small that noise "
            "matters, and from this one it changes exit times by a few per cent; exit_time has "
            "their mean"
        )
    high = np.where(a * low < 1e-6 * a * high, high[0], high)  # all the same to 1e-6
    try:
        law = passage_law(p / 2, a * low, a * high, weights)
    except ValueError as error:
        raise _checks.InputError(
            f"threshold={threshold!r} is not allowed: threshold must be larger at dim={dim} and "
            f"step={step}, where the noise of a few steps passes it"
        ) from error
    return ExitLaw(mean, lambda times: law.cdf(times / scale), law.longest * scale)


def exit_time_offset(
    width: WholeNumber = 1,
    *,
    step: Number,
    noise: Number = 0.0,
    threshold: Number = 0.1,
    average: Word = "annealed",
    start: Word | None = None,
) -> float:
    """What is left of an exit time when log(dim)/(2ω) is taken off, as dim → ∞.

        annealed            log[T(p + 1)/(2p)]/(2ω)
        quenched            [log(T(p + 1)/4) − ψ(p/2)]/(2ω)
        diffusive, random   the same − log(1 + σ²/(2ω))/(2ω)
        diffusive, from 0   [log(T(p + 1)ω/(2σ²)) − ψ(p/2)]/(2ω)

    with ω = ``growth_rate``, σ² = ``overlap_noise`` and ψ the digamma function: noise adds to the
    variance 1/d of random overlaps σ²/(2ωd). In units of dim/step samples.

    Source: AKLS23 (46), (47), (51) as d → ∞.

    >>> round(exit_time_offset(step=0.05, noise=0.5, average="quenched"), 6)
    -0.187677
    """
    setting = _setting(2**62, width, step, noise, threshold)
    kind, place = _kind(average, start)
    if start not in (None, "random"):
        raise _checks.InputError(
            f"start={start!r} is not allowed: start must be None, for 0, or 'random'; from other "
            "starts exit times do not grow with dim"
        )
    p, T, rate = setting.width, setting.threshold, setting.rate
    variance = overlap_noise(p, setting.step, setting.noise)
    if kind == "annealed":
        return math.log(T * (p + 1) / (2 * p)) / (2 * rate)
    doubled = math.log(T * (p + 1) / 4) - float(digamma(p / 2))
    if kind == "diffusive":
        doubled -= math.log(variance / (2 * rate) + (1.0 if place else 0.0))
    return doubled / (2 * rate)


def exit_delay(
    width: WholeNumber = 1, *, step: Number, noise: Number = 0.0, threshold: Number = 0.1
) -> float:
    """How much later than in the linear theory growth reaches the threshold, to first order in T.

        [κ/(2ω) + c²(1 − f)/(2p)] S/(2ω),   S = T(p + 1)/2

    On the way neurons that find the teacher find one another, Q_jl = c mⱼm_l, both of which slows
    them down, dS/dt = 2ωS − κS², with

        b = 8 + (32γ/p)(1 − 2/p),   c = (b/p)/(2ω + ω_Q),   f = 3/(p + 2),
        κ = [(8c/p)(1 − f) + bf − 16γ/p²]/p,   ω = growth_rate,   ω_Q = alignment_decay_rate,

    f the mean of Σmⱼ⁴/S² over random directions. For one neuron κ = 8(1 − 6γ) and the delay is
    about T/(2ω). In units of dim/step samples, whatever the average and the dimension; it may be
    added to any ``exit_time``.

    Source: AKLS23 (21), (26), to second order in S.

    >>> round(exit_delay(step=0.05, noise=0.5), 6)
    0.018512
    """
    setting = _setting(2**62, width, step, noise, threshold)
    p, rate, gamma = setting.width, setting.rate, setting.step
    decay = alignment_decay_rate(p, gamma) if p > 1 else 0.0
    b = 8 + 32 * gamma / p * (1 - 2 / p)
    c, f = b / p / (2 * rate + decay), 3 / (p + 2)
    slowing = (8 * c / p * (1 - f) + b * f - 16 * gamma / p**2) / p
    square = setting.threshold * (p + 1) / 2
    return (slowing / (2 * rate) + c**2 * (1 - f) / (2 * p)) * square / (2 * rate)


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


def _setting(
    dim: WholeNumber, width: WholeNumber, step: Number, noise: Number, threshold: Number
) -> Setting:
    d, p = _checks.integer("dim", dim, least=2), _checks.integer("width", width, least=1)
    delta = _checks.nonnegative("noise", noise)
    why = (
        "and from there on small overlaps with the teacher decay, since the noise of the steps "
        "wins over the gradient: SGD never escapes (largest_step)"
    )
    gamma = below("step", step, largest_step(delta, p), why)
    if p > 1 and gamma >= p**2 / 8:
        raise _checks.InputError(
            f"step={step!r} is not allowed: step must lie in (0, {p**2 / 8:g}), width²/8, from "
            "where on neurons align with one another, and no exit time is known "
            "(alignment_decay_rate)"
        )
    level = below("threshold", threshold, 1.0, "a fraction of the initial excess risk")
    if not level * d * (p + 1) > 2 * (p - 1):
        raise _checks.InputError(
            f"threshold={threshold!r} is not allowed: threshold must be above "
            f"{2 * (p - 1) / (d * (p + 1)):.3g} for {p} neurons in dimension {d}: overlaps between "
            "neurons carry that much of the excess risk away when they decay"
        )
    return Setting(d, p, gamma, delta, level)


def _kind(average: Word, start: Any) -> tuple[str, str | None]:
    """The average, and where runs start, in words."""
    kind = _checks.choice("average", average, AVERAGES)
    if kind != "diffusive":
        if start is not None:
            raise _checks.InputError(
                f"start={_checks.shown(start)} is not allowed: start must be None unless average "
                "is 'diffusive'; quenched and annealed times are those of random starts"
            )
        return kind, None
    if isinstance(start, str):
        _checks.choice("start", start, ("random",))
        return kind, "random starts"
    return kind, None
