"""The law of the time at which SGD that starts near an unstable rest point meets an event.

To first order z(t) = e^{Ωt}(G + what is negligible), with G = z(0) + ∫ e^{−Ωs} dξ Gaussian: the
start, and all noise that SGD adds, counted back to it. Its covariance is (Σ₀ + N)/dim with
ΩN + NΩᵀ = S. From where |z| = ε is small but large beside 1/√dim the ODE goes on, so that

    τ(G) = t_ε(G) + T(z_ε),   |e^{Ωt_ε}G| = ε,   z_ε = e^{Ωt_ε}G,

with T the time of the ODE from u* + Xz_ε to the event. With one rate, t_ε = log(ε/|G|)/ω, and
T(z_ε) − log(1/ε)/ω, a constant for each direction, converges as ε → 0.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import brentq
from scipy.stats import chi

from sgdlimits import _checks
from sgdlimits._events import EventLike
from sgdlimits._types import Number, Numbers, WholeNumber
from sgdlimits.dynamics.escape.growth import Growth
from sgdlimits.dynamics.flow import first_passage
from sgdlimits.dynamics.model import Limit, Table, as_state

RADII = 2048  # lengths of G in each direction where one rate tells how they matter
FEW_RADII = 8  # and where each of them needs a solution
LONG = 400.0  # how long the ODE is followed, in units of 1/rate
SAME = 9  # digits to which crossovers are the same


@dataclass(frozen=True, repr=False)
class ExitTime:
    """The law of an exit time, in units of dim/step samples.

    Attributes:
        times: quantiles of the law at equal steps, increasing; ``inf`` for starts that never come
            to the event.
        error: of the mean, from the finite number of directions of escape that were followed.
        dim: d.
        step: c.
        event: in words.
        start: "random" or "rest".
    """

    times: np.ndarray = field(repr=False)
    error: float
    dim: int
    step: float
    event: str
    start: str

    @property
    def reached(self) -> float:
        """The part of all starts that come to the event."""
        return float(np.mean(np.isfinite(self.times)))

    @property
    def mean(self) -> float:
        """Mean over those that do; infinite if none does."""
        finite = self.times[np.isfinite(self.times)]
        return float(finite.mean()) if len(finite) else float("inf")

    @property
    def samples(self) -> float:
        """The mean as a number of samples, mean · dim/step."""
        return self.mean * self.dim / self.step

    def quantile(self, part: Number) -> float:
        """The time by which this part of all runs has left, those included that never do."""
        index = int(_checks.fraction("part", part) * len(self.times))
        return float(self.times[index])

    def survival(self, time: Numbers) -> np.ndarray:
        """The part of all runs that have not left by each of these times."""
        values = _checks.array("time", time, None)
        return 1 - np.searchsorted(self.times, values, side="right") / len(self.times)

    def __repr__(self) -> str:
        where = f"{self.event} in dimension {self.dim} from {_STARTS[self.start]}"
        if self.reached == 0:
            return f"{where}: never, by the flow of the limit"
        part = "" if self.reached == 1 else f", of the {self.reached:.3g} of starts that do"
        known = f" ± {self.error:.2g}" if self.error > 0 else ""
        low, high = self.quantile(0.1), self.quantile(0.9)
        unit = self.dim / self.step
        return (
            f"{where}: after {self.mean:.4g}{known} on average{part}, between {low:.4g} and "
            f"{high:.4g} for the middle 80 %; one unit of time is {unit:.4g} samples"
        )


_STARTS = {"random": "random starts", "rest": "the rest point"}


class Leaving(NamedTuple):
    """A rest point that is left: what an exit time is computed from."""

    limit: Limit
    vector: np.ndarray
    growth: Growth
    spread: np.ndarray  # (Σ₀ + N), the covariance of √dim G


def exit_time(
    leaving: Leaving,
    event: EventLike,
    dim: int,
    *,
    reach: float,
    directions: WholeNumber,
    seed: WholeNumber,
    start: str,
) -> ExitTime:
    """The law of τ(G) over draws of G whose lengths are stratified, for each of some directions."""
    parts = _draws(leaving, dim, directions, seed)
    shape, growth = parts.shape, leaving.growth
    kicks = parts.reshape(-1, shape[-1])
    ahead = _times_to(reach, kicks, growth)
    crossings = _moved(kicks, ahead, growth)
    ends, rows = np.unique(np.round(crossings / reach, SAME), axis=0, return_inverse=True)
    passage, words = _passages(leaving, event, reach * ends)
    times = np.maximum((ahead + passage[rows.ravel()]).reshape(shape[:2]), 0.0)
    whole = np.isfinite(times).all(axis=1)
    means = times[whole].mean(axis=1)
    many = len(means) > 2
    error = float(means.std(ddof=1) / len(means) ** 0.5) if many else 0.0
    return ExitTime(np.sort(times.ravel()), error, dim, leaving.limit.step, words, start)


def _draws(leaving: Leaving, dim: int, directions: WholeNumber, seed: WholeNumber) -> np.ndarray:
    """G over directions and lengths: √C u with u uniform on the sphere times a χ variable."""
    size = len(leaving.growth.matrix)
    count = _checks.integer("directions", directions, least=2)
    generator = np.random.default_rng(_checks.integer("seed", seed, least=0))
    units = np.array([[1.0], [-1.0]]) if size == 1 else generator.normal(size=(count, size))
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    radii = RADII if leaving.growth.equal else FEW_RADII
    lengths = chi(size).ppf((np.arange(radii) + 0.5) / radii)
    values, axes = np.linalg.eigh(leaving.spread / dim)
    root = axes * np.sqrt(np.maximum(values, 0.0)) @ axes.T
    return np.asarray((units @ root)[:, None, :] * lengths[None, :, None])


def _times_to(reach: float, kicks: np.ndarray, growth: Growth) -> np.ndarray:
    """When |e^{Ωt}G| = ε, before time 0 for a G that is longer."""
    logs = np.log(reach / np.linalg.norm(kicks, axis=1)) / growth.fastest
    if growth.equal:
        return logs

    def past(time: float, kick: np.ndarray) -> float:
        return float(np.linalg.norm(scipy.linalg.expm(growth.matrix * time) @ kick) - reach)

    slowest = float(growth.rates.real.min())
    times = []
    for kick, guess in zip(kicks, logs, strict=True):
        low, high, wide = guess, guess, 1 / growth.fastest
        while past(high, kick) < 0:
            high, wide = high + wide, 2 * wide
        wide = 1 / slowest
        while past(low, kick) > 0:
            low, wide = low - wide, 2 * wide
        times.append(brentq(past, low, high, (kick,)) if low < high else guess)
    return np.array(times)


def _moved(kicks: np.ndarray, times: np.ndarray, growth: Growth) -> np.ndarray:
    if growth.equal:
        return kicks * np.exp(growth.fastest * times)[:, None]
    flows = scipy.linalg.expm(growth.matrix * times[:, None, None])
    return np.einsum("nij,nj->ni", flows, kicks)


def _passages(leaving: Leaving, event: EventLike, points: np.ndarray) -> tuple[np.ndarray, str]:
    """The ODE's time to the event from each z_ε; infinite where it does not come to it."""
    limit = leaving.limit
    vectors = Table(limit.model).retract(leaving.vector + points @ leaving.growth.directions.T)
    states = as_state(limit.task.layout.unravel(vectors))
    passage = first_passage(limit, event, states, LONG / leaving.growth.fastest)
    if np.any(passage.at_start):
        raise _checks.InputError(
            f"event={event!r} is not allowed: it holds next to the rest point already"
        )
    never = passage.censored.values | passage.diverged.values
    return np.where(never, np.inf, passage.time.values), str(passage.attrs["event"])
