"""Solutions of an ODE from many starts: an adaptive Runge–Kutta method with dense output.

The loop over steps is NumPy's, so that the only program is that of the drift, whatever the number
of starts and times: to compile it once more, inside a solver, takes longer than most solves.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy.integrate import DOP853

MAX_STEPS = 100_000
STAGES = DOP853.n_stages  # 12; the velocity at the end of a step, a thirteenth, begins the next one
SAFETY, SLOWEST, FASTEST = 0.9, 0.2, 10.0  # how the step changes
EXPONENT = -1 / 8  # an error falls with the eighth power of the step
ROUNDING = 16 * np.finfo(float).eps  # steps shorter than this part of the time do not move it

Rows = Float[np.ndarray, "q n"]
Rates = Callable[[Rows], Rows]
Stages = Float[np.ndarray, "q s n"]  # velocities, of as many stages as are known

# Stage s is at u + h Σ_t TABLEAU[s, t] k_t: those of a step, its end, and three to fill it in.
TABLEAU = np.zeros((STAGES + 1 + len(DOP853.A_EXTRA),) * 2)
TABLEAU[:STAGES, :STAGES], TABLEAU[STAGES, :STAGES] = DOP853.A, DOP853.B
TABLEAU[STAGES + 1 :] = DOP853.A_EXTRA


def integrate(
    rates: Rates,
    starts: Float[np.ndarray, "runs n"],
    times: Float[np.ndarray, " t"],
    rtol: float,
    atol: float,
    at_once: Callable[[Rows, Float[np.ndarray, " q"]], Stages] | None = None,
) -> tuple[Float[np.ndarray, "runs t n"], Bool[np.ndarray, " runs"]]:
    """Solve du/dt = h(u) from every start, each with steps of its own.

    The method of Dormand and Prince of order 8 with its continuous extension of order 7 (Hairer,
    Nørsett and Wanner 1993, II.10). In a step no component may have an error above atol + rtol |u|,
    in the root mean square over components.

    Args:
        rates: h at many vectors at once.
        starts: where solutions are at the first time.
        times: at which they are wanted, increasing.
        rtol: relative tolerance of a step.
        atol: absolute tolerance of a step.
        at_once: all stages of steps by ``TABLEAU``, from where they begin and how long they are,
            for drifts that take less time than it takes to ask for them.

    Returns:
        The values at ``times``, NaN after a solution has diverged or taken too many steps, and
        which solutions reached the last time.

    >>> values, reached = integrate(
    ...     lambda u: -u, np.array([[1.0], [2.0]]), np.array([0.0, 1.0]), 1e-10, 1e-12
    ... )
    >>> values[:, -1, 0].round(8), bool(reached.all())
    (array([0.36787944, 0.73575888]), True)
    """
    values = np.full((len(starts), len(times), starts.shape[1]), np.nan)
    values[:, 0] = starts
    t, u = np.full(len(starts), times[0]), np.array(starts, float)
    end, next_time = times[-1], np.ones(len(starts), int)  # the next one to be filled in
    with np.errstate(over="ignore", invalid="ignore"):
        f = np.array(rates(u))
        step = _first_step(rates, u, f, rtol, atol, end - times[0])
        active, rejected = np.all(np.isfinite(f), axis=1) & (t < end), np.zeros(len(starts), bool)
        for _ in range(MAX_STEPS):
            rows = np.flatnonzero(active)
            if len(rows) == 0:
                break
            last = t[rows] + step[rows] >= end
            h = np.where(last, end - t[rows], step[rows])
            if at_once is None:
                k, new = stages(rates, u[rows], f[rows], h)
            else:
                k = at_once(u[rows], h)
                new = u[rows] + h[:, None] * (DOP853.B @ k[:, :STAGES])
            error = error_of(k, h, u[rows], new, rtol, atol)
            finite = np.isfinite(error) & np.all(np.isfinite(new), axis=1)
            good = finite & (error <= 1)
            factor = SAFETY * np.maximum(error, 1e-300) ** EXPONENT
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
                inside = k[dense] if at_once else _more(rates, u[rows[dense]], k[dense], h[dense])
                terms = _extension(u[rows[dense]], new[dense], inside, h[dense])
                x = (times[index] - before[which]) / h[which]
                values[rows[which], index] = u[rows[which]] + _inside(terms[place], x)
            moved = rows[good]
            t[moved], u[moved], f[moved] = after[good], new[good], k[good, STAGES]
            next_time[moved] = passed[good]
            stuck = ~good & (step[rows] <= ROUNDING * np.maximum(np.abs(t[rows]), ROUNDING))
            active[rows] = (t[rows] < end) & ~stuck
    return values, t >= end


def _first_step(
    rates: Rates, u: Rows, f: Rows, rtol: float, atol: float, longest: float
) -> Float[np.ndarray, " q"]:
    """By the sizes of the solution and of its first two derivatives (Hairer et al., II.4)."""
    scale = atol + rtol * np.abs(u)
    d0, d1 = _norm(u / scale), _norm(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(np.where(small, 1e-6, 0.01 * d0 / np.where(d1 > 0, d1, 1.0)), longest)
    d2 = _norm((rates(u + h0[:, None] * f) - f) / scale) / h0
    most = np.maximum(d1, d2)
    h1 = np.where(
        most <= 1e-15, np.maximum(1e-6, 1e-3 * h0), (0.01 / np.maximum(most, 1e-300)) ** -EXPONENT
    )
    step = np.minimum(np.minimum(100 * h0, np.where(np.isfinite(h1), h1, h0)), longest)
    return np.where(np.isfinite(step) & (step > 0), step, 1e-6)


def stages(rates: Rates, u: Rows, f: Rows, h: Float[np.ndarray, " q"]) -> tuple[Stages, Rows]:
    """Velocities at all stages of a step, that at its end included, and where it ends."""
    k = np.empty((len(u), STAGES + 1, u.shape[1]))
    k[:, 0] = f
    for s in range(1, STAGES):
        k[:, s] = rates(u + h[:, None] * (DOP853.A[s, :s] @ k[:, :s]))
    new = u + h[:, None] * (DOP853.B @ k[:, :STAGES])
    k[:, STAGES] = rates(new)
    return k, new


def _more(
    rates: Rates, u: Rows, k: Stages, h: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q all n"]:
    """The stages that fill a step in as well."""
    k = np.concatenate([k, np.empty((len(k), len(TABLEAU) - STAGES - 1, k.shape[2]))], axis=1)
    for s in range(STAGES + 1, len(TABLEAU)):
        k[:, s] = rates(u + h[:, None] * (TABLEAU[s, :s] @ k[:, :s]))
    return k


def error_of(
    k: Stages,
    h: Float[np.ndarray, " q"],
    u: Rows,
    new: Rows,
    rtol: float,
    atol: float,
) -> Float[np.ndarray, " q"]:
    """The error of a step over what is allowed: that of order 5, corrected by that of order 3."""
    scale = atol + rtol * np.maximum(np.abs(u), np.abs(new))
    k = k[:, : STAGES + 1]
    fifth, third = _norm(DOP853.E5 @ k / scale), _norm(DOP853.E3 @ k / scale)
    size = np.sqrt(fifth**2 + 0.01 * third**2)
    return np.where(size == 0, 0.0, h * fifth**2 / np.where(size == 0, 1.0, size))


def _pairs(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and for each of them the numbers from its first to before its last."""
    counts = last - first
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) + (first - np.cumsum(counts) + counts)[which]


def _extension(
    u: Rows, new: Rows, k: Stages, h: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q 7 n"]:
    """Coefficients of the solution inside a step."""
    h, change = h[:, None], new - u
    begin, finish = h * k[:, 0], h * k[:, STAGES]
    terms = [change, begin - change, 2 * change - begin - finish]
    return np.stack([*terms, *(h * (d @ k) for d in DOP853.D)], axis=1)


def _inside(terms: Float[np.ndarray, "q 7 n"], x: Float[np.ndarray, " q"]) -> Rows:
    """How far the solution has come when the share x of a step is done."""
    result = np.zeros_like(terms[:, 0])
    for number in range(terms.shape[1]):
        share = x if number % 2 == 0 else 1 - x
        result = (result + terms[:, -1 - number]) * share[:, None]
    return result


def _norm(x: Float[np.ndarray, "q n"]) -> Float[np.ndarray, " q"]:
    """The root mean square over components."""
    return np.sqrt(np.mean(x**2, axis=1))
