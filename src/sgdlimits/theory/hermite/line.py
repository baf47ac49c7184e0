"""Integrals over the line against the normal density, by panels that adapt to a function."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits.theory.hermite.functions import Function

# The rule of Kronrod with 15 nodes on [−1, 1], which contains the one of Gauss with 7
_HALF = [
    (0.991455371120812639206854697526329, 0.022935322010529224963732008058970, 0.0),
    (
        0.949107912342758524526189684047851,
        0.063092092629978553290700663189204,
        0.129484966168869693,
    ),
    (0.864864423359769072789712788640926, 0.104790010322250183839876322541518, 0.0),
    (
        0.741531185599394439863864773280788,
        0.140653259715525918745189590510238,
        0.279705391489276668,
    ),
    (0.586087235467691130294144691693013, 0.169004726639267902826583426598550, 0.0),
    (
        0.405845151377397166906606412076961,
        0.190350578064785409913256402421014,
        0.381830050505118945,
    ),
    (0.207784955007898467600689403773245, 0.204432940075298892414161999234649, 0.0),
]
_MIDDLE = (0.0, 0.209482141084727828012999174891714, 0.417959183673469387755)
_ROWS = np.array([(-x, k, g) for x, k, g in _HALF] + [_MIDDLE] + [*reversed(_HALF)])
NODES, KRONROD, GAUSS = _ROWS.T

REACH = 38.0  # the normal density is a denormal number there
OFFSET = 0.0731  # no kink is to lie at the edge of a panel, where it would not be noticed
_FAR = [14.5, 17.0, 20.0, 24.0, 30.0, REACH]
START = np.concatenate([-np.flip(_FAR), np.arange(-12.5, 12.6, 0.5) + OFFSET, _FAR])
MANY = 2_000  # panels, beyond which the error is left as it is
ROUNDS = 55  # of bisection: what is left of a panel is of the size of rounding errors
ACCURACY = 1e-12  # relative to norm and width, at which panels are no longer cut: kinks are found
ROUGH = 1e-3  # relative error of the squared norm beyond which it is not said to be finite
ROUNDING = 1e-15  # of nodes, relative
FINE = 1e-6  # narrower panels enclose a break
SEVERAL = 20  # breaks, beyond which the function is rough and no break is told
WIDE = 0.1  # narrower ones lead to it


class Integral(NamedTuple):
    """A number, or several, and the estimated error of each."""

    value: np.ndarray
    error: np.ndarray


class Line(NamedTuple):
    """A function of a standard normal variable with panels on which it is smooth.

    Attributes:
        function: f.
        edges: of the panels that adaptation has led to.
        coarse: edges of the wide ones among them, for products with smooth functions.
        breaks: where panels have become very narrow: kinks and jumps.
        norm: ‖f‖ = √E f².
        reach: where f² times the density has become negligible.
    """

    function: Function
    edges: np.ndarray
    coarse: np.ndarray
    breaks: np.ndarray
    norm: float
    reach: float

    def mean(self, factors: Callable[[np.ndarray], np.ndarray]) -> Integral:
        """∫ w(x) factors(x) dx with w = f times the root of the density, for several factors.

        Args:
            factors: maps x to rows of bounded functions, which hold the other root.
        """
        x, kronrod, gauss = nodes_of(self.edges)
        rows = factors(x)
        values = _weighted(self.function, x)
        moved = np.abs(_weighted(self.function, x + ROUNDING * np.maximum(1, np.abs(x))) - values)
        estimate = integral(values * rows, kronrod, gauss, 1)
        # of a steep function the rounding of x counts, but not where it crosses a jump
        steep = np.where(moved < 1e-9 * self.norm, moved, 0.0) * np.abs(rows)
        return Integral(estimate.value, estimate.error + steep @ kronrod)


def root_density(x: np.ndarray) -> np.ndarray:
    """The square root of the normal density."""
    return np.asarray(np.exp(-(x**2) / 4) / (2 * np.pi) ** 0.25)


def density(x: np.ndarray) -> np.ndarray:
    """The normal density."""
    return root_density(x) ** 2


def nodes_of(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on panels with these edges (along the last axis), and the weights of both rules."""
    half = np.diff(edges)[..., None] / 2
    middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2
    shape = (*edges.shape[:-1], -1)
    nodes = (middle + half * NODES).reshape(shape)
    return nodes, (half * KRONROD).reshape(shape), (half * GAUSS).reshape(shape)


def integral(values: np.ndarray, kronrod: np.ndarray, gauss: np.ndarray, rows: int = 0) -> Integral:
    """The sum over panels and the sum of the differences of both rules, along the last axis."""
    shape = (*values.shape[:rows], *values.shape[rows:-1], -1, len(NODES))
    by_panel = (values * kronrod).reshape(shape).sum(-1)
    differences = np.abs(by_panel - (values * gauss).reshape(shape).sum(-1)).sum(-1)
    rounding = 1e-15 * np.abs(values * kronrod).sum(-1)
    return Integral(by_panel.sum(-1), differences + rounding)


def line_of(parameter: str, function: Function) -> Line:
    """Cut the line into panels on which a function is smooth.

    Every panel on which the rules of Gauss and Kronrod disagree about f² times the density, or
    about f times the density, is cut in two. Features that lie between all nodes, about 0.03 wide,
    are not seen.
    """
    pending = np.stack([START[:-1], START[1:]], axis=1)
    done: list[np.ndarray] = []
    masses: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    for number in range(ROUNDS):
        results = _panels(parameter, function, pending)
        total = sum(float(mass[:, 0].sum()) for mass in [*masses, results[0]])
        scale = np.sqrt(total)
        widths = np.diff(pending)
        allowed = ACCURACY * np.array([total, scale]) * widths
        divisible = widths[:, 0] > 4e-16 * np.maximum(1.0, np.abs(pending).max(axis=1))
        cut = np.any(results[1] > allowed, axis=1) & divisible
        if number == ROUNDS - 1 or sum(map(len, done)) + len(pending) > MANY:
            cut[:] = False
        done.append(pending[~cut])
        masses.append(results[0][~cut])
        errors.append(results[1][~cut])
        if not np.any(cut):
            break
        left, right = pending[cut].T
        middle = (left + right) / 2
        pending = np.stack(
            [np.concatenate([left, middle]), np.concatenate([middle, right])], axis=1
        )
    panels, mass, error = (np.concatenate(part) for part in (done, masses, errors))
    order = np.argsort(panels[:, 0])
    panels, mass, error = panels[order], mass[order], error[order]
    square = float(mass[:, 0].sum())
    _check_norm(parameter, function, panels, mass[:, 0], float(error[:, 0].sum()))
    edges = np.append(panels[:, 0], panels[-1, 1])
    widths = np.diff(edges)
    beyond = np.abs(panels).min(axis=1)[mass[:, 0] > 1e-28 * square]
    breaks = _clusters((edges[1:] + edges[:-1])[widths < FINE] / 2, widths[widths < FINE])
    wide = widths >= WIDE
    coarse = np.unique(np.concatenate([edges[:-1][wide], edges[1:][wide], breaks]))
    reach = float(beyond.max()) + 1.0 if len(beyond) else 10.0
    return Line(function, edges, coarse, breaks, float(np.sqrt(square)), max(9.0, reach))


def _panels(
    parameter: str, function: Function, panels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of f² and f against the density on each panel: integrals and the rules' differences."""
    half = np.diff(panels) / 2
    x = panels.mean(axis=1)[:, None] + half * NODES
    w = _weighted(function, x)
    if not np.all(np.isfinite(w)):
        where = float(x[~np.isfinite(w)].flat[np.argmin(np.abs(x[~np.isfinite(w)]))])
        raise _checks.InputError(
            f"{parameter}={function.name} is not allowed: {parameter} must have a finite norm "
            f"E f(z)², z ~ N(0, 1), and f({where:.6g}) is no finite number"
        )
    kept = np.stack([w**2, w * root_density(x)], axis=1) * half[..., None]
    values = kept @ KRONROD
    return values, np.abs(values - kept @ GAUSS)


def _weighted(function: Function, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(function(x) * root_density(x))


def _check_norm(
    parameter: str, function: Function, panels: np.ndarray, mass: np.ndarray, error: float
) -> None:
    """Tails must decay and the integral must have converged."""
    refused = (
        f"{parameter}={function.name} is not allowed: {parameter} must have a finite norm "
        "E f(z)², z ~ N(0, 1), and "
    )
    total = float(mass.sum())
    low = np.abs(panels).min(axis=1)
    for side in (-1, 1):
        here = panels.mean(axis=1) * side > 0
        outer, inner = (float(mass[here & (low >= a) & (low < b)].sum()) for a, b in _SHELLS)
        if outer > 1e-13 * total and outer > inner / 2:
            raise _checks.InputError(
                f"{refused}f² times the density does not decay towards {side * REACH:g}"
            )
    if error > ROUGH * total:
        raise _checks.InputError(
            f"{refused}its integral does not settle: {total:.4g} with an error of {error:.2g}"
        )


_SHELLS = ((30.0, REACH), (20.0, 30.0))


def _clusters(points: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """One point for each group of very narrow panels: the narrowest of them."""
    if len(points) == 0:
        return points
    groups = np.split(np.arange(len(points)), np.flatnonzero(np.diff(points) > 1e-4) + 1)
    if len(groups) > SEVERAL:
        return points[:0]
    return np.array([points[group[np.argmin(widths[group])]] for group in groups])
