"""What is told of exit times: a number that says what it is, and a law."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Numeric, WholeNumber

UNITS = {
    "time": "units of dim/step samples",
    "paper": "units of width·dim/step samples",
    "samples": "samples",
}
TABLE = 4097  # times at which the distribution function is known to `sample`


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
