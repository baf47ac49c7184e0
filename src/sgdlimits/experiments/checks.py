"""How well theory and simulation agree, as named numbers with a verdict.

Every statistical tolerance is set so that a check of a true statement fails with probability
``LEVEL``, whatever the number of runs: with Student's t for means, by Bonferroni for several times,
exactly for proportions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from sgdlimits.results import select

LEVEL = 1e-4  # probability that a check of a true statement fails
PASSED, FAILED, ERRATUM = "passed", "failed", "erratum"


@dataclass(frozen=True)
class Check:
    """A number that a paper or the theory predicts, and the number that was measured.

    With ``printed``, a value that follows from a formula as printed in a paper and that differs
    from the ``expected`` one, the check passes as an *erratum*: the measurement agrees with the
    corrected formula and not with the printed one.
    """

    name: str
    expected: float
    measured: float
    error: float  # standard error of the measured number; 0 if it is not random
    tolerance: float  # the largest distance |measured - expected| that passes
    note: str = ""
    printed: float | None = None

    @property
    def status(self) -> str:
        """``passed``, ``failed`` or ``erratum``."""
        if not abs(self.measured - self.expected) <= self.tolerance:
            return FAILED
        if self.printed is None:
            return PASSED
        return ERRATUM if abs(self.measured - self.printed) > self.tolerance else FAILED

    def as_dict(self) -> dict[str, Any]:
        """All numbers and the verdict, for JSON."""
        return {
            "name": self.name,
            "expected": self.expected,
            "measured": self.measured,
            "error": self.error,
            "tolerance": self.tolerance,
            "note": self.note,
            "printed": self.printed,
            "status": self.status,
        }


def exact(
    name: str,
    measured: Any,
    expected: Any,
    tolerance: float,
    *,
    note: str = "",
    printed: float | None = None,
) -> Check:
    """Two deterministic numbers, such as a rest point found by search and its closed form.

    >>> exact("overlap", 1.0000001, 1.0, 1e-6).status
    'passed'
    """
    return Check(name, float(expected), float(measured), 0.0, tolerance, note, printed)


def mean(
    name: str,
    samples: Any,
    expected: Any,
    *,
    note: str = "",
    printed: float | None = None,
    bias: float = 0.0,
) -> Check:
    """The mean of independent samples, in standard errors.

    ``bias`` is a known bound for the distance between the expected number, a limit, and the mean
    in finite dimension.

    >>> mean("m", [0.9, 1.1, 1.0, 0.8, 1.2], 1.0).status
    'passed'
    """
    values = _finite(samples)
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    tolerance = allowed(len(values)) * error + bias
    return Check(name, float(expected), float(values.mean()), error, tolerance, note, printed)


def variance(
    name: str,
    samples: Any,
    expected: Any,
    *,
    note: str = "",
    printed: float | None = None,
    bias: float = 0.0,
) -> Check:
    """The variance of independent samples.

    Its law is taken to be a multiple of chi-square with as many degrees of freedom as the kurtosis
    of the samples says, which is exact for normal ones: errors from squares alone are too small
    whenever the variance is.
    """
    values = _finite(samples)
    measured, target = float(values.var(ddof=1)), float(expected)
    kurtosis = float(np.mean((values - values.mean()) ** 4) / values.var() ** 2)
    freedom = 2 * (len(values) - 1) / max(kurtosis - 1, 0.1)
    tail = stats.chi2.isf if measured > target else stats.chi2.ppf
    tolerance = target * abs(tail(LEVEL / 2, freedom) / freedom - 1) + bias
    error = target * math.sqrt(2 / freedom)
    return Check(name, target, measured, error, float(tolerance), note, printed)


def proportion(
    name: str, hits: int, total: int, expected: float, *, note: str = "", printed: Any = None
) -> Check:
    """How often something happened in independent runs: within the exact binomial interval.

    >>> check = proportion("heads", 51, 100, 0.5)
    >>> check.status, check.note
    ('passed', '51 of 100; exact 95 % interval [0.408, 0.611]')
    """
    result = stats.binomtest(int(hits), int(total), 0.5)
    wide = result.proportion_ci(1 - LEVEL, method="exact")
    usual = result.proportion_ci(0.95, method="exact")
    share = hits / total
    side = wide.low if expected < share else wide.high
    said = f"{hits} of {total}; exact 95 % interval [{usual.low:.3f}, {usual.high:.3f}]"
    return Check(
        name,
        float(expected),
        share,
        math.sqrt(share * (1 - share) / total),
        abs(float(side) - share),
        "; ".join(filter(None, [said, note])),
        printed,
    )


def distribution(name: str, samples: Any, law: Any, *, note: str = "") -> Check:
    """Kolmogorov-Smirnov distance of samples to a law: a SciPy distribution or other samples.

    >>> normal = np.random.default_rng(0).standard_normal(200)
    >>> distribution("noise", normal, stats.norm()).status
    'passed'
    """
    values = _finite(samples)
    if hasattr(law, "cdf"):
        distance = stats.kstest(values, law.cdf).statistic
        size = float(len(values))
    else:
        others = _finite(law)
        distance = stats.ks_2samp(values, others).statistic
        size = len(values) * len(others) / (len(values) + len(others))
    limit = stats.kstwo.isf(LEVEL, round(size))
    said = "; ".join(filter(None, ["Kolmogorov-Smirnov distance", note]))
    return Check(name, 0.0, float(distance), 0.0, float(limit), said)


def path(
    name: str,
    runs: xr.Dataset,
    limit: xr.Dataset,
    statistics: str | Sequence[str],
    *,
    fluctuations: xr.Dataset | None = None,
    count: int = 5,
    bias: float = 0.0,
) -> Check:
    """The mean over runs against a solution of the limit, at ``count`` times spread over the runs.

    The measured number is the largest distance in standard errors of the mean. The note has the
    largest distance itself, and in units of the predicted fluctuation of a single run if
    ``fluctuations`` (standard deviations along the solution, times the square root of the
    dimension) are given. ``bias`` is a known bound for the gap between limit and finite dimension,
    in the units of the statistic. Runs and solution have the same times.
    """
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    worst = gap = relative = 0.0
    for statistic in names:
        x = select(runs, statistic).transpose("run", "time").values
        target = select(limit, statistic).values
        moving = np.flatnonzero(np.std(x, axis=0) > 0)
        places = moving[np.linspace(0, len(moving) - 1, count + 1).round().astype(int)[1:]]
        x = x[:, places]
        x = x[np.all(np.isfinite(x), axis=1)]
        errors = x.std(axis=0, ddof=1) / math.sqrt(len(x))
        distances = np.abs(x.mean(axis=0) - target[places])
        worst = max(worst, float(np.max(np.maximum(distances - bias, 0.0) / errors)))
        gap = max(gap, float(np.max(distances)))
        if fluctuations is not None:
            size = select(fluctuations, statistic).values[places] / math.sqrt(runs.attrs["dim"])
            relative = max(relative, float(np.max(distances / np.maximum(size, 1e-300))))
    said = f"largest distance in standard errors over {count} times; {gap:.2g} in itself"
    if fluctuations is not None:
        said += f", {relative:.2g} predicted fluctuations"
    return Check(name, 0.0, worst, 1.0, allowed(len(x), count * len(names)), said)


def allowed(size: int, count: int = 1) -> float:
    """How many standard errors the largest of ``count`` means of ``size`` samples may be off."""
    return float(stats.t.isf(LEVEL / (2 * count), size - 1))


def _finite(samples: Any) -> np.ndarray:
    values = np.asarray(samples, dtype=float).ravel()
    return values[np.isfinite(values)]
