"""Exponents of power laws, fitted on a log–log scale and followed to the limit of large sizes."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

POWERS = (0.25, 0.5, 1.0)  # p in corrections 1 + b·size^(−p); fluctuations of sums have p = ½
CENTRAL = 1  # which of them gives the value; the others show how much depends on the choice
CORRECTION = 1.5  # standard deviation of b before the data speak
MISFIT = 2e-3  # relative errors below this are lost in corrections of higher order
FLAT_MISFIT = 0.02  # and if no correction is fitted
KEPT = 0.75  # share of the states that show the trend
DECAYS = (0.5, 1.0)  # p in V∞ + b·size^(−p): drifts that differ by size^(−¼) and by size^(−½)


class Trend(NamedTuple):
    """e in values ~ sizes^e, with one standard error."""

    slope: float  # −inf if all values vanish, nan if only one does not
    error: float
    plain: float  # of a power law through the points, without correction


class Bounds(NamedTuple):
    """Between what a quantity lies in the limit of large sizes."""

    lower: float
    upper: float
    noise: float  # what errors of the values alone contribute to half of the distance


def limit(
    sizes: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    *,
    errors: Float[np.ndarray, " n"],
    shares: Float[np.ndarray, "states n"],
    width: float,
) -> Bounds:
    r"""V∞ in V = V∞ + b·sizes^(−p), for p = ½ and p = 1: bounds that hold for both.

    Of the two largest sizes, with V₂ the last value, R = V₁/V₂ and the quotient q > 1 of sizes:
    V∞ = V₂·(1 − (R − 1)/(qᵖ − 1)). Single states may carry most of a variance at one size and not
    at the other, so R is that of the states without the quarter that stands out most. Its error is
    by a jackknife over the states: a trend that all of them share adds nothing to it, however
    unequal they are. The bounds are the least V∞ less ``width`` errors and the greatest plus them.

    The law is not tested: decays slower than p = ½ may pass for a constant, and V∞ beside a decay
    much faster than p = 1 is underestimated.

    Args:
        sizes: increasing, two or more.
        values: one per size, of any sign.
        errors: standard errors of the values, independent of one another.
        shares: what each of the states adds to the values.
        width: how many standard errors.

    >>> sizes = np.array([50.0, 200.0, 800.0])
    >>> def shown(values):
    ...     bounds = limit(
    ...         sizes, values, errors=0.02 * values, shares=np.tile(values, (9, 1)), width=2.0
    ...     )
    ...     return f"between {bounds.lower:.2f} and {bounds.upper:.2f}"
    >>> shown(1 + 50 / sizes)
    'between 0.78 and 1.06'
    >>> shown(50 / sizes)
    'between -0.14 and 0.00'
    """
    last, quotient, pair = values[-1], sizes[-1] / sizes[-2], shares[:, -2:]
    size = np.sum(np.abs(pair), axis=0)
    rank = np.argsort(np.max(np.abs(pair) / np.where(size > 0, size, 1.0), axis=1), kind="stable")
    kept = pair[rank[: math.ceil(KEPT * len(pair))]]
    before, after = kept.sum(axis=0)
    without = kept.sum(axis=0) - kept
    if last <= 0 or after <= 0 or np.any(without[:, 1] <= 0):
        return Bounds(-np.inf, np.inf, np.inf)
    ratio, ratios = before / after, without[:, 0] / without[:, 1]
    scatter = float(np.sqrt((len(kept) - 1) * np.var(ratios)))
    lower, upper, noise = np.inf, -np.inf, 0.0
    for power in DECAYS:
        slope = 1 / (quotient**power - 1)
        value = last * (1 - slope * (ratio - 1))
        of_values = float(np.hypot((1 + slope) * errors[-1], slope * errors[-2]))
        error = float(np.hypot(of_values, slope * last * scatter))
        lower, upper = min(lower, value - width * error), max(upper, value + width * error)
        noise = max(noise, width * of_values)
    return Bounds(float(lower), float(upper), noise)


def exponent(
    sizes: Float[np.ndarray, " n"],
    values: Float[np.ndarray, " n"],
    *,
    errors: Float[np.ndarray, " n"] | None = None,
    replicas: Float[np.ndarray, "states n"] | None = None,
    limit: bool = True,
) -> Trend:
    r"""The exponent e of values ~ sizes^e as sizes → ∞, by least squares on a log–log scale.

    At finite sizes values = A·sizes^e·(1 + b·sizes^(−p) + …), and a straight line through
    logarithms is wrong by more than its scatter. So log A + e·log sizes + b·sizes^(−p) is fitted,
    with b ~ N(0, 1.5²) before the data speak: two sizes say nothing of b, and the error says so.
    The value is that of p = ½; the error has that of the fit, the largest change between p = ¼, ½
    and 1, and the scatter over states.

    Args:
        sizes: positive, one per point.
        values: one per size; those that are not positive are left out.
        errors: standard errors of the values, independent of one another.
        replicas: the values without each of the states from which they come, for a jackknife.
        limit: whether to fit a correction; else a power law over the sizes at hand.

    >>> sizes = np.array([50.0, 200.0, 800.0])
    >>> fit = exponent(sizes, sizes**1.5 * (1 + 3 / np.sqrt(sizes)))
    >>> print(f"{fit.slope:.2f} ± {fit.error:.2f}, without correction {fit.plain:.2f}")
    1.48 ± 0.07, without correction 1.41
    >>> exponent(sizes, 0 * sizes).slope
    -inf
    """
    good: Bool[np.ndarray, " n"] = np.isfinite(values) & (values > 0)
    if not np.any(good):
        return Trend(-np.inf, 0.0, -np.inf)
    if np.sum(good) == 1:
        return Trend(np.nan, np.inf, np.nan)
    x, y = sizes[good], np.log(values[good])
    relative = np.zeros_like(y) if errors is None else errors[good] / values[good]
    plain = _operator(x, relative, None)
    chosen = [_operator(x, relative, p) for p in POWERS] if limit else [plain]
    central = chosen[CENTRAL if limit else 0]
    slopes = [float(row @ y) for row, _ in chosen]
    value = float(central[0] @ y)
    spread = max(abs(slope - value) for slope in slopes)
    scatter = 0.0
    if replicas is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            without = np.log(replicas[:, good]) @ central[0]
        changes = (without - value)[np.isfinite(without)]
        count = max(len(changes), 1)
        scatter = (count - 1) / count * float(np.sum(changes**2))
        if np.any(~np.isfinite(without)):  # one state carries it all
            scatter = np.inf
    rest = 0.0
    if not limit and len(y) > 2:  # points off the line by more than their errors
        line = np.polyfit(np.log(x), y, 1)
        off = y - np.polyval(line, np.log(x))
        rest = float(np.sum(off**2)) / (len(y) - 2) * float(np.sum(central[0] ** 2))
    error = float(np.sqrt(central[1] + spread**2 + scatter + rest))
    return Trend(value, error, float(plain[0] @ y))


def _operator(
    sizes: np.ndarray, relative: np.ndarray, power: float | None
) -> tuple[Float[np.ndarray, " n"], float]:
    """The row that takes log values to the exponent, and the variance of the latter."""
    columns = [np.ones_like(sizes), np.log(sizes)]
    prior = np.zeros(2)
    if power is not None:
        columns.append(sizes**-power)
        prior = np.append(prior, CORRECTION**-2)
    design = np.stack(columns, axis=1)
    weights = 1 / (relative**2 + (FLAT_MISFIT if power is None else MISFIT) ** 2)
    precision = design.T @ (weights[:, None] * design) + np.diag(prior)
    # equilibrated: sizes of 10⁶ and corrections of 10⁻⁶ stand side by side
    unit = 1 / np.sqrt(np.diag(precision))
    inverse = unit[:, None] * np.linalg.inv(unit[:, None] * precision * unit) * unit
    row = (inverse @ design.T * weights)[1]
    of_fit = float(np.sum((row * relative) ** 2)) if power is None else float(inverse[1, 1])
    return row, of_fit
