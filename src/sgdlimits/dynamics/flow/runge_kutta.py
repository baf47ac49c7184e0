"""Solutions of an ODE from many starts: an adaptive Runge–Kutta method with dense output.

The loop over steps is NumPy's, so that the only program is that of the drift, whatever the number
of starts and times: to compile it once more, inside a solver, takes longer than most solves.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from sgdlimits.dynamics.flow.methods import EIGHTH, FIFTH, LOOSE, Rates, Rows, Stages, norm

MAX_STEPS = 100_000
SAFETY, SLOWEST, FASTEST = 0.9, 0.2, 10.0  # how the step changes
ROUNDING = 16 * np.finfo(float).eps  # steps shorter than this part of the time do not move it


def integrate(
    rates: Rates,
    starts: Float[np.ndarray, "runs n"],
    times: Float[np.ndarray, " t"],
    rtol: float,
    atol: float,
    at_once: Callable[[Rows, Float[np.ndarray, " q"]], Stages] | None = None,
) -> tuple[Float[np.ndarray, "runs t n"], Bool[np.ndarray, " runs"]]:
    """Solve du/dt = h(u) from every start, each with steps of its own.

    The methods of Dormand and Prince, of order 8, or where the tolerance is loose of order 5. In a
    step no component may have an error above atol + rtol |u|, in the root mean square over them.

    Args:
        rates: h at many vectors at once.
        starts: where solutions are at the first time.
        times: at which they are wanted, increasing.
        rtol: relative tolerance of a step.
        atol: absolute tolerance of a step.
        at_once: all stages of steps of order 8, from where they begin and how long they are, for
            drifts that take less time than it takes to ask for them.

    Returns:
        The values at ``times``, NaN after a solution has diverged or taken too many steps, and
        which solutions reached the last time.

    >>> values, reached = integrate(
    ...     lambda u: -u, np.array([[1.0], [2.0]]), np.array([0.0, 1.0]), 1e-10, 1e-12
    ... )
    >>> values[:, -1, 0].round(8), bool(reached.all())
    (array([0.36787944, 0.73575888]), True)
    """
    method = FIFTH if rtol >= LOOSE and at_once is None else EIGHTH
    values = np.full((len(starts), len(times), starts.shape[1]), np.nan)
    values[:, 0] = starts
    t, u = np.full(len(starts), times[0]), np.array(starts, float)
    end, next_time = times[-1], np.ones(len(starts), int)  # the next one to be filled in
    with np.errstate(over="ignore", invalid="ignore"):
        f = np.array(rates(u))
        step = _first_step(rates, u, f, rtol, atol, end - times[0], method.exponent)
        active, rejected = np.all(np.isfinite(f), axis=1) & (t < end), np.zeros(len(starts), bool)
        for _ in range(MAX_STEPS):
            rows = np.flatnonzero(active)
            if len(rows) == 0:
                break
            last = t[rows] + step[rows] >= end
            h = np.where(last, end - t[rows], step[rows])
            if at_once is None:
                k, new = method.step(rates, u[rows], f[rows], h)
            else:
                k = at_once(u[rows], h)
                new = method.end(u[rows], k, h)
            error = method.error(k, h, u[rows], new, rtol, atol)
            finite = np.isfinite(error) & np.all(np.isfinite(new), axis=1)
            good = finite & (error <= 1)
            factor = SAFETY * np.maximum(error, 1e-300) ** method.exponent
            factor = np.where(finite, np.clip(factor, SLOWEST, FASTEST), SLOWEST)
            factor = np.where(rejected[rows] & good, np.minimum(factor, 1.0), factor)
            step[rows] = h * factor
            rejected[rows] = ~good
            before, after = t[rows], np.where(last, end, t[rows] + h)
            passed = np.searchsorted(times, after, side="right")
            which, index = _pairs(next_time[rows], np.where(good, passed, next_time[rows]))
            within = times[index] < after[which]
            values[rows[which[~within]], index[~within]] = new[which[~within]]
            which, index = which[within], index[within]
            if len(which):
                dense, place = np.unique(which, return_inverse=True)
                begun, known, long = u[rows[dense]], k[dense], h[dense]
                if at_once is None:
                    known = method.filled_in(rates, begun, known, long)
                terms = method.extension(begun, new[dense], known, long)
                x = (times[index] - before[which]) / h[which]
                values[rows[which], index] = u[rows[which]] + method.inside(terms[place], x)
            moved = rows[good]
            t[moved], u[moved], f[moved] = after[good], new[good], k[good, method.stages]
            next_time[moved] = passed[good]
            stuck = ~good & (step[rows] <= ROUNDING * np.maximum(np.abs(t[rows]), ROUNDING))
            active[rows] = (t[rows] < end) & ~stuck
    return values, t >= end


def _first_step(
    rates: Rates,
    u: Rows,
    f: Rows,
    rtol: float,
    atol: float,
    longest: float,
    exponent: float,
) -> Float[np.ndarray, " q"]:
    """By the sizes of the solution and of its first two derivatives (Hairer et al., II.4)."""
    scale = atol + rtol * np.abs(u)
    d0, d1 = norm(u / scale), norm(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(np.where(small, 1e-6, 0.01 * d0 / np.where(d1 > 0, d1, 1.0)), longest)
    d2 = norm((rates(u + h0[:, None] * f) - f) / scale) / h0
    most = np.maximum(d1, d2)
    h1 = np.where(
        most <= 1e-15, np.maximum(1e-6, 1e-3 * h0), (0.01 / np.maximum(most, 1e-300)) ** -exponent
    )
    step = np.minimum(np.minimum(100 * h0, np.where(np.isfinite(h1), h1, h0)), longest)
    return np.where(np.isfinite(step) & (step > 0), step, 1e-6)


def _pairs(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and for each of them the numbers from its first to before its last."""
    counts = last - first
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) + (first - np.cumsum(counts) + counts)[which]
