"""Parameters of an exit: what is allowed, where random and given starts begin and leave."""

import dataclasses
from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.theory._inputs import below
from sgdlimits.theory.phase_retrieval.rates import growth_rate, largest_step, overlap_noise
from sgdlimits.theory.phase_retrieval.starts import random_starts

AVERAGES = ("annealed", "quenched", "diffusive")
ONE = np.ones(1)


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
        with np.errstate(over="ignore"):  # an infinite square is refused
            square = float(np.sum(np.broadcast_to(m, (self.width,)) ** 2))
        if not square < 1:
            raise _checks.InputError(
                f"start={_checks.shown(m)} is not allowed: start must be overlaps of neurons that "
                f"are orthogonal to one another, whose squares sum to less than 1, not {square:.6g}"
            )
        T = self.threshold
        return np.array([square]), np.array([T * (self.width + 1) / 2 + (1 - T) * square]), ONE


def checked_setting(
    dim: WholeNumber, width: WholeNumber, step: Number, noise: Number, threshold: Number
) -> Setting:
    """Parameters for which there is an exit time; any others are told why there is none."""
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


def averaged_over(average: Word, start: Any) -> tuple[str, str | None]:
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
