"""How many runs have not had their event yet: times of first passage, censored ones included."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import ndtri

from sgdlimits import _checks
from sgdlimits._types import Number

_TIMES = ("passage_time", "time")  # how a time of passage is called beside trajectories, and alone


class Quantile(NamedTuple):
    """A quantile of passage times with its confidence interval; ``math.inf`` where not reached."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Value and interval, in words where runs were not watched for long enough."""
        if math.isinf(self.low):
            return "not reached"
        if math.isinf(self.value):
            return f"not reached (and not before {self.low:.4g})"
        top = "beyond what was watched" if math.isinf(self.high) else f"{self.high:.4g}"
        return f"{self.value:.4g} ({self.low:.4g} to {top})"


@dataclasses.dataclass(frozen=True, repr=False)
class Survival:
    r"""The estimate of Kaplan and Meier of S(t), the part of runs whose event is later than t.

    S(t) = ∏_{tᵢ ≤ t} (1 − dᵢ/nᵢ) over the times tᵢ of events, dᵢ runs having theirs then out of the
    nᵢ that were watched until then. The band is [S^{exp(zσ)}, S^{exp(−zσ)}], from a normal law of
    log(−log S) with σ = √(Σ dᵢ/(nᵢ(nᵢ − dᵢ))) / |log S| (Greenwood), pointwise in t. A quantile is
    the first time at which S falls to 1 − p, and its interval is between the times at which the
    band does (Brookmeyer and Crowley).

    It assumes that what ends the watch does not depend on the event. Runs that are watched for the
    same time fulfil this; runs that diverge may not.

    Attributes:
        time: the times of events, increasing; S is constant from each to the next.
        survival: S at them and after.
        low: lower end of the band.
        high: upper end.
        runs: how many runs there are.
        passed: how many had their event.
        watched: until when the last of all runs was watched, or had its event.
        confidence: of band and intervals.
    """

    time: np.ndarray
    survival: np.ndarray
    low: np.ndarray
    high: np.ndarray
    runs: int
    passed: int
    watched: float
    confidence: float

    def quantile(self, part: Number) -> Quantile:
        """The time by which this part of all runs have had their event."""
        left = 1 - _checks.fraction("part", part)
        return Quantile(*(self._first(s, left) for s in (self.survival, self.low, self.high)))

    @property
    def median(self) -> Quantile:
        """The time by which half of them have."""
        return self.quantile(0.5)

    def _first(self, curve: np.ndarray, left: float) -> float:
        below = np.flatnonzero(curve <= left + 1e-12)  # sums of 1/n are not exact
        return float(self.time[below[0]]) if len(below) else math.inf

    def __repr__(self) -> str:
        return (
            f"{self.passed} of {self.runs} runs passed by time {self.watched:.4g}; median time "
            f"{self.median} with {100 * self.confidence:g} % confidence"
        )


def survival(passage: xr.Dataset, *, confidence: Number = 0.95) -> Survival:
    """The Kaplan–Meier estimate of the law of passage times.

    Args:
        passage: what ``first_passage`` returns for many runs, or runs ``until`` an event.
        confidence: of band and intervals.

    >>> variables = {
    ...     "time": ("run", [1.0, 2.0, 2.0, 5.0]), "censored": ("run", [False, False, True, False])
    ... }
    >>> estimate = survival(xr.Dataset(variables))
    >>> estimate.time, estimate.survival
    (array([1., 2., 5.]), array([0.75, 0.5 , 0.  ]))
    >>> estimate.median.value
    2.0
    """
    times, censored = _times(passage)
    z = float(ndtri((1 + _checks.fraction("confidence", confidence)) / 2))
    events = np.unique(times[~censored])
    at_risk = len(times) - np.searchsorted(np.sort(times), events, side="left")
    passed = np.array([np.sum(~censored & (times == time)) for time in events], float)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.cumprod(1 - passed / at_risk)
        variance = np.cumsum(passed / (at_risk * (at_risk - passed)))
        width = z * np.sqrt(variance) / np.abs(np.log(values))
        low, high = values ** np.exp(width), values ** np.exp(-width)
    if len(values) and at_risk[-1] == passed[-1]:  # nobody is left: S = 0, and no variance
        values[-1] = low[-1] = 0.0
        high[-1] = high[-2] if len(high) > 1 else 1.0
    return Survival(
        events, values, low, high, len(times), int(passed.sum()), float(times.max()), confidence
    )


def _times(passage: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(passage, xr.Dataset):
        raise _checks.InputError(
            f"passage={passage!r} is not allowed: it must be a Dataset from first_passage"
        )
    name = next((name for name in _TIMES if name in passage.data_vars), None)
    if name is None or "censored" not in passage or passage[name].dims != ("run",):
        raise _checks.InputError(
            f"passage={list(passage.data_vars)} is not allowed: it must be what first_passage "
            "returns for many runs, or runs until an event"
        )
    times = _checks.array(f"passage[{name!r}]", passage[name].values, (passage.sizes["run"],))
    if len(times) == 0:
        raise _checks.InputError("passage is not allowed: it must hold at least one run")
    if np.any(times < 0):
        raise _checks.InputError(
            f"passage[{name!r}] with {np.min(times):g} is not allowed: times must not be negative"
        )
    return times, passage["censored"].values.astype(bool)
