"""How well theory and simulation agree, as named numbers with a verdict.

Every statistical tolerance is set so that a check of a true statement fails with probability
``LEVEL``, whatever the number of runs: with Student's t for means, by Bonferroni for several times,
exactly for proportions.

A sample that is not finite, such as that of a run that diverged, makes a check fail and is counted
in its note. Where such samples are meant, ``leave_out`` says which they are: they are left out, and
the note says how many.
"""

import math
from collections.abc import Callable, Sequence
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
    tolerance: float = 0.0,
    *,
    note: str = "",
    printed: float | None = None,
) -> Check:
    """Two deterministic numbers, such as a rest point found by search and its closed form.

    Counts need no tolerance.

    >>> exact("overlap", 1.0000001, 1.0, 1e-6).status, exact("outliers", 3, 4).status
    ('passed', 'failed')
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
    leave_out: str = "",
) -> Check:
    """The mean of independent samples, in standard errors.

    ``bias`` is a known bound for the distance between the expected number, a limit, and the mean
    in finite dimension.

    >>> mean("m", [0.9, 1.1, 1.0, 0.8, 1.2], 1.0).status
    'passed'
    >>> check = mean("m", [0.9, 1.1, np.nan, 0.8, 1.2], 1.0)
    >>> check.status, check.note
    ('failed', '1 of 5 samples are not finite')
    >>> mean("exit", [0.9, 1.1, np.nan, 0.8, 1.2], 1.0, leave_out="runs that stay").note
    '1 of 5 samples left out: runs that stay'
    """
    values, said = _finite(samples, leave_out)
    note = _joined(said, note)
    if values is None:
        return _not_finite(name, expected, note, printed)
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    tolerance = allowed(len(values)) * error + bias
    return Check(name, float(expected), float(values.mean()), error, tolerance, note, printed)


def holds(name: str, statement: Any, *, note: str = "") -> Check:
    """A statement that must be true: 1 if it is, and 1 is expected.

    >>> holds("overlaps with other means are negative", max(-0.2, -0.1) < 0).status
    'passed'
    """
    return exact(name, bool(statement), 1.0, note=note)


def single(
    name: str,
    sample: Any,
    expected: Any,
    spread: Any,
    size: int,
    *,
    note: str = "",
    bias: float = 0.0,
) -> Check:
    """One sample, such as the data set of one run, in the spread of independent others.

    Args:
        name: of the check.
        sample: the number that was measured once.
        expected: the mean of its law, known or taken over the others.
        spread: the standard deviation of the others.
        size: how many they are.
        note: what else is said.
        bias: as in :func:`mean`.
    """
    error = float(spread)
    tolerance = allowed(size) * error * math.sqrt(1 + 1 / size) + bias
    return Check(name, float(expected), float(sample), error, tolerance, note)


def variance(
    name: str,
    samples: Any,
    expected: Any,
    *,
    note: str = "",
    printed: float | None = None,
    bias: float = 0.0,
    leave_out: str = "",
) -> Check:
    """The variance of independent samples.

    Its law is taken to be a multiple of chi-square with as many degrees of freedom as the kurtosis
    of the samples says, which is exact for normal ones: errors from squares alone are too small
    whenever the variance is.
    """
    values, said = _finite(samples, leave_out)
    note = _joined(said, note)
    if values is None:
        return _not_finite(name, expected, note, printed)
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
    hits, total = int(hits), int(total)
    result = stats.binomtest(hits, total, 0.5)
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
        _joined(said, note),
        printed,
    )


def distribution(
    name: str, samples: Any, law: Any, *, note: str = "", leave_out: str = ""
) -> Check:
    """Kolmogorov-Smirnov distance of samples to a law: a SciPy distribution or other samples.

    >>> normal = np.random.default_rng(0).standard_normal(200)
    >>> distribution("noise", normal, stats.norm()).status
    'passed'
    """
    known = hasattr(law, "cdf")
    values, said = _finite(samples, leave_out)
    others, also = (values, "") if known else _finite(law, leave_out)
    note = _joined("Kolmogorov-Smirnov distance", said, also, note)
    if values is None or others is None:
        return _not_finite(name, 0.0, note)
    if known:
        distance, size = stats.kstest(values, law.cdf).statistic, float(len(values))
    else:
        distance = stats.ks_2samp(values, others).statistic
        size = len(values) * len(others) / (len(values) + len(others))
    limit = stats.kstwo.isf(LEVEL, round(size))
    return Check(name, 0.0, float(distance), 0.0, float(limit), note)


def path(
    name: str,
    runs: xr.Dataset | xr.DataArray,
    limit: xr.Dataset | xr.DataArray,
    statistics: str | Sequence[str] = "x",
    *,
    fluctuations: xr.Dataset | None = None,
    count: int = 5,
    bias: float = 0.0,
    leave_out: str = "",
) -> Check:
    """The mean over runs against a solution of the limit, at ``count`` times spread over the runs.

    Runs and limit are datasets of which these statistics are compared, or arrays of a single one.
    The measured number is the largest distance in standard errors of the mean. The note has the
    largest distance itself, and in units of the predicted fluctuation of a single run if
    ``fluctuations`` (standard deviations along the solution, times the square root of the
    dimension) are given. ``bias`` is a known bound for the gap between limit and finite dimension,
    in the units of the statistic. Runs and solution have the same times.
    """
    if isinstance(runs, xr.DataArray) or isinstance(limit, xr.DataArray):
        runs, limit = (xr.Dataset({"x": x}) for x in (runs, limit))
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    worst = gap = relative = 0.0
    samples = [select(runs, statistic).transpose("run", "time").values for statistic in names]
    finite = np.all([np.all(np.isfinite(x), axis=1) for x in samples], axis=0)
    lost = _lost(finite, leave_out, "runs")
    if not np.all(finite) and not leave_out:
        return _not_finite(name, 0.0, lost)
    for statistic, values in zip(names, samples, strict=True):
        x = values[finite]
        target = select(limit, statistic).values
        moving = np.flatnonzero(np.std(x, axis=0) > 0)
        chosen = moving[np.linspace(0, len(moving) - 1, count + 1).round().astype(int)[1:]]
        x = x[:, chosen]
        errors = x.std(axis=0, ddof=1) / math.sqrt(len(x))
        distances = np.abs(x.mean(axis=0) - target[chosen])
        worst = max(worst, float(np.max(np.maximum(distances - bias, 0.0) / errors)))
        gap = max(gap, float(np.max(distances)))
        if fluctuations is not None:
            dim = float(runs["dim"] if "dim" in runs.coords else runs.attrs["dim"])
            size = select(fluctuations, statistic).values[chosen] / math.sqrt(dim)
            relative = max(relative, float(np.max(distances / np.maximum(size, 1e-300))))
    said = f"largest distance in standard errors over {count} times; {gap:.2g} in itself"
    if fluctuations is not None:
        said += f", {relative:.2g} predicted fluctuations"
    tolerance = allowed(len(x), count * len(names))
    return Check(name, 0.0, worst, 1.0, tolerance, _joined(said, lost))


def each(
    dim: str, check: Callable[..., Check], name: str, *arguments: Any, **options: Any
) -> list[Check]:
    """The same check for each value of a parameter.

    Args:
        dim: of the parameter; its values are those of the first argument.
        check: such as :func:`mean`.
        name: of each check, a format for the value such as ``"m at the end, λ = {:g}"``.
        arguments: of the check. What has the dim is taken at the value, a function is called with
            the value, and anything else is the same for all values.
        options: of the check, likewise.

    >>> ends = xr.DataArray([[0.9, 1.1], [2.2, 1.8]], {"snr": [1.0, 2.0]}, ("snr", "run"))
    >>> found = each("snr", mean, "m, λ = {:g}", ends, lambda snr: snr, note="at the end")
    >>> [(check.name, check.expected, check.status) for check in found]
    [('m, λ = 1', 1.0, 'passed'), ('m, λ = 2', 2.0, 'passed')]
    """

    def at(value: Any, argument: Any) -> Any:
        if dim in getattr(argument, "dims", ()):
            return argument.sel({dim: value})
        return argument(value) if callable(argument) else argument

    return [
        check(
            name.format(value),
            *(at(value, argument) for argument in arguments),
            **{key: at(value, option) for key, option in options.items()},
        )
        for value in arguments[0][dim].values.tolist()
    ]


def allowed(size: int, count: int = 1) -> float:
    """How many standard errors the largest of ``count`` means of ``size`` samples may be off."""
    return float(stats.t.isf(LEVEL / (2 * count), size - 1))


def exponent(values: xr.DataArray, dim: str) -> xr.DataArray:
    """The exponent of a parameter in values, from its first to its last value.

    >>> gaps = xr.DataArray([0.1, 0.05], {"dim": [100, 400]}, "dim")
    >>> float(exponent(gaps, "dim"))
    -0.5
    """
    first, last = (values.isel({dim: end}) for end in (0, -1))
    return np.log(np.abs(last / first)) / np.log(float(last[dim]) / float(first[dim]))


def wrong_outliers(eigenvalues: Any, outliers: Any, edge: float, margin: float) -> int:
    """How many outliers above the edge of a bulk are predicted and not there, or the reverse.

    Outliers nearer to the edge than ``margin`` are not told from the bulk, and a mean over draws is
    on the other side of edge + margin only if it is so by more than two standard errors.

    Args:
        eigenvalues: the largest ones, decreasing, one row for each independent draw.
        outliers: all predicted ones; those below the edge do not count.
        edge: upper edge of the bulk. For a lower edge, pass everything with the other sign.
        margin: in the units of the eigenvalues.

    >>> draws = [[5.0, 3.1, 1.0], [5.2, 2.9, 0.9]]
    >>> wrong_outliers(draws, [5.1, 3.0], 1.0, 0.1), wrong_outliers(draws, [5.1], 1.0, 0.1)
    (0, 1)
    """
    draws = np.asarray(eigenvalues, dtype=float)
    mean, error = draws.mean(axis=0), draws.std(axis=0, ddof=1) / math.sqrt(len(draws))
    values = np.asarray(outliers, dtype=float)
    above, bound = values[values > edge], edge + margin
    clear = int(np.sum(above > bound))
    missing = np.sum(~(mean + 2 * error >= bound)[:clear])
    return int(missing + np.sum((mean - 2 * error > bound)[len(above) :]))


def _finite(samples: Any, leave_out: str) -> tuple[np.ndarray | None, str]:
    """The finite samples and how many are not; None if some are not and none is to be left out."""
    values = np.asarray(samples, dtype=float).ravel()
    finite = np.isfinite(values)
    kept = values[finite] if leave_out or np.all(finite) else None
    return kept, _lost(finite, leave_out, "samples")


def _lost(finite: np.ndarray, leave_out: str, what: str) -> str:
    count = f"{np.sum(~finite)} of {len(finite)} {what}"
    if np.all(finite):
        return ""
    return f"{count} left out: {leave_out}" if leave_out else f"{count} are not finite"


def _not_finite(name: str, expected: Any, note: str, printed: float | None = None) -> Check:
    return Check(name, float(expected), math.nan, 0.0, 0.0, note, printed)


def _joined(*words: str) -> str:
    return "; ".join(filter(None, words))
