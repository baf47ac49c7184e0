"""Self-attention as a flow of particles on the sphere, for any matrices, heads and temperature.

    ẋ_i = P_{x_i} (Σ_h V_h Σ_j A^h_ij x_j + w σ(a x_i + b)),   P_x y = y − ⟨x, y⟩x

    A^h_ij = e^{β⟨Q_h x_i, K_h x_j⟩} / Z,   Z their sum over j, or n if not normalised

Parameters do not change in time. Source: J24 ch. 14, (1.3)–(1.7).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import _checks, results
from sgdlimits._compiled import compiled
from sgdlimits._precision import double_precision
from sgdlimits._types import Flag, Number, Numbers, Numeric
from sgdlimits.lectures.feed_forward import ACTIVATIONS, FeedForward, layer
from sgdlimits.lectures.tokens import on_sphere

STEPS = 200_000  # of the solver, at most
LARGEST = 700.0  # exponents without softmax: beyond, numbers overflow
SCORES = 1e300  # entries of QᵀK: beyond, scores overflow


@double_precision
def flow(
    points: Numeric,
    times: Numbers,
    *,
    inverse_temperature: Number | Numbers = 1.0,
    query: Numeric | None = None,
    key: Numeric | None = None,
    value: Numeric | None = None,
    feed_forward: FeedForward | None = None,
    normalised: Flag = True,
    tolerance: Number = 1e-9,
) -> xr.Dataset:
    """Particles along the flow.

    It is solved for y = ‖y‖x with ẏ = ‖y‖ẋ, by an explicit method of order five with adaptive
    steps. The direction x does not depend on the norm of y, which the exact solution keeps at 1: so
    setting it to 1, as is done with what is returned, changes nothing but rounding.

    Args:
        points: x_i(0), over particle and coordinate, or over run, particle and coordinate; what is
            not of norm 1 is divided by its norm.
        times: increasing, from 0 on.
        inverse_temperature: β ≥ 0, or several: then the result has a dim ``inverse_temperature``.
        query: Q, one matrix or one for each head; the identity by default.
        key: K, of the same shape.
        value: V, one matrix or one for each head; the identity by default.
        feed_forward: none by default.
        normalised: whether attention is divided by its sum, as softmax does, or by n.
        tolerance: relative and absolute error allowed in a step.

    Returns:
        ``points`` over time, particle and coordinate, before them inverse_temperature and run if
        there are several; ``norm_error`` over time, the largest distance of ‖y‖ from 1.

    >>> path = flow([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0], inverse_temperature=0.0)
    >>> product = float(path.points[1, 0] @ path.points[1, 1])
    >>> bool(abs(product - np.tanh(1.0)) < 1e-8)
    True
    """
    X = on_sphere(points)
    if X.ndim > 3:
        raise _checks.InputError(
            f"points has shape {X.shape}, which is not allowed: points must have at most the "
            "dimensions run, particle and coordinate"
        )
    b = _temperatures(inverse_temperature)
    parts = _parts(X.shape[-1], query, key, value, feed_forward)
    _refuse_overflow(b, parts, normalised)
    runs = X if X.ndim == 3 else X[None]
    n, d = X.shape[-2:]
    lanes = np.broadcast_to(runs, (b.size, *runs.shape)).reshape(-1, n, d)
    t = _times(times)
    Y = _solve(lanes, np.repeat(b.ravel(), len(runs)), t, parts, normalised, tolerance, _identity)
    norms = np.linalg.norm(Y, axis=-1, keepdims=True)
    leading, coords = [], {}
    if b.ndim:
        leading, coords = ["inverse_temperature"], {"inverse_temperature": b}
    if X.ndim == 3:
        leading, coords = [*leading, "run"], coords | {"run": np.arange(len(runs))}
    sizes = [len(coords[name]) for name in leading]
    coords |= {"time": t, "particle": np.arange(n), "coordinate": np.arange(d)}
    statistics = {
        "points": np.moveaxis(Y / norms, 0, 1).reshape(*sizes, len(t), n, d),
        "norm_error": np.max(np.abs(norms - 1), axis=(1, 2, 3)),
    }
    dims = {"points": (*leading, "time", "particle", "coordinate"), "norm_error": ("time",)}
    return results.build(
        statistics, dims, coords, _attributes(inverse_temperature, n, d, parts, normalised)
    )


@double_precision
def phases(
    points: Numeric,
    times: Numbers,
    *,
    inverse_temperature: Numbers,
    query: Numeric | None = None,
    key: Numeric | None = None,
    value: Numeric | None = None,
    close: Number = 1e-3,
    tolerance: Number = 1e-6,
) -> xr.Dataset:
    """The share of pairs that have met, 1 − ⟨x_i, x_j⟩ ≤ ``close``, over β and time.

    All β are one batched run of the flow from the same particles; of it only the share is kept.

    Args:
        points: x_i(0), over particle and coordinate.
        times: increasing, from 0 on.
        inverse_temperature: several β ≥ 0.
        query: Q, one matrix or one for each head; the identity by default.
        key: K, of the same shape.
        value: V, one matrix or one for each head; the identity by default.
        close: how near to 1 the product of a pair has to be.
        tolerance: relative and absolute error allowed in a step.

    Returns:
        ``together`` over inverse_temperature and time, ``norm_error`` over time as of :func:`flow`.

    >>> found = phases([[1.0, 0.0], [0.0, 1.0]], [0.0, 9.0], inverse_temperature=[0.0, 20.0])
    >>> found.together.values
    array([[0., 1.],
           [0., 0.]])
    """
    X, b, t = on_sphere(points), _temperatures(inverse_temperature), _times(times)
    if X.ndim != 2 or b.ndim != 1:
        name, shape, wanted = (
            ("points", X.shape, "two") if X.ndim != 2 else ("inverse_temperature", (), "one")
        )
        raise _checks.InputError(
            f"{name} has shape {shape}, which is not allowed: {name} must have {wanted} dimensions"
        )
    parts = _parts(X.shape[-1], query, key, value, None)
    lanes = np.broadcast_to(X, (b.size, *X.shape))
    gap = _checks.positive("close", close)
    kept = _solve(lanes, b, t, parts, True, tolerance, _Together(gap))
    statistics = {"together": kept[..., 0].T, "norm_error": kept[..., 1].max(axis=1)}
    dims = {"together": ("inverse_temperature", "time"), "norm_error": ("time",)}
    n, d = X.shape
    attrs = _attributes(inverse_temperature, n, d, parts, True) | {"close": gap}
    return results.build(statistics, dims, {"inverse_temperature": b, "time": t}, attrs)


@double_precision
def velocity(
    points: Numeric,
    *,
    inverse_temperature: Number = 1.0,
    query: Numeric | None = None,
    key: Numeric | None = None,
    value: Numeric | None = None,
    feed_forward: FeedForward | None = None,
    normalised: Flag = True,
) -> np.ndarray:
    """The velocities ẋ_i, tangent to the sphere, of the points of :func:`flow`.

    >>> velocity([[1.0, 0.0], [0.0, 1.0]], inverse_temperature=0.0)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    X = on_sphere(points)
    parts = _parts(X.shape[-1], query, key, value, feed_forward)
    b = _checks.nonnegative("inverse_temperature", inverse_temperature)
    _refuse_overflow(np.array(b), parts, normalised)
    one = jnp.vectorize(lambda x: _velocity(x, b, parts, normalised), signature="(n,d)->(n,d)")
    found = np.asarray(one(X))
    if not np.all(np.isfinite(found)):
        raise _checks.InputError(
            f"value={_checks.shown(value)} is not allowed: value, and feed_forward, must be small "
            "enough for finite velocities"
        )
    return found


class _Parts(NamedTuple):
    """What moves the particles: QᵀK and V of each head, None for identities; the other layer."""

    scores: Any
    values: Any
    feed_forward: Any
    activation: str


class _Together(eqx.Module):
    """Share of pairs that are close, and the largest distance of a norm from 1."""

    close: float

    def __call__(self, Y: Float[Array, "lanes n d"]) -> Float[Array, "lanes 2"]:
        norms = jnp.linalg.norm(Y, axis=-1, keepdims=True)
        X, n = Y / norms, Y.shape[1]
        met = jnp.sum(jnp.einsum("lid,ljd->lij", X, X) >= 1 - self.close, axis=(1, 2))
        share = (met - n) / (n * (n - 1))
        return jnp.stack([share, jnp.max(jnp.abs(norms - 1), axis=(1, 2))], axis=-1)


def _identity(Y: Array) -> Array:
    return Y


def _velocity(
    X: Float[Array, "n d"], inverse_temperature: Any, parts: _Parts, normalised: bool
) -> Float[Array, "n d"]:
    if parts.scores is None:
        logits = (X @ X.T)[None]
    else:
        logits = jnp.einsum("hid,jd->hij", jnp.einsum("id,hde->hie", X, parts.scores), X)
    if normalised:  # the largest is taken away before β multiplies, which may overflow
        logits = logits - jnp.max(logits, axis=-1, keepdims=True)
        weights = jax.nn.softmax(inverse_temperature * logits, axis=-1)
    else:
        weights = jnp.exp(inverse_temperature * logits) / len(X)
    pull = weights @ X
    if parts.values is None:
        force = jnp.sum(pull, axis=0)
    else:
        force = jnp.einsum("hid,hed->ie", pull, parts.values)
    if parts.feed_forward is not None:
        outer, inner, shift = parts.feed_forward
        force = force + ACTIVATIONS[parts.activation](X @ inner.T + shift) @ outer.T
    return force - jnp.sum(force * X, axis=-1, keepdims=True) * X


def _solve(
    lanes: np.ndarray, temperatures: np.ndarray, times: np.ndarray, parts: _Parts,
    normalised: Flag, tolerance: Number, save: Callable[[Array], Array],
) -> np.ndarray:  # fmt: skip
    """What ``save`` makes of y at each time, over time and lane."""
    softmax = _checks.flag("normalised", normalised)
    allowed = _checks.positive("tolerance", tolerance)
    kept, done = _program(lanes, temperatures, times, parts, np.asarray(allowed), softmax, save)
    if not bool(done):
        raise _checks.InputError(
            f"times={_checks.shown(times)} is not allowed: times must be within reach of "
            f"{STEPS} steps of the solver, which are short where particles move fast"
            + ("" if softmax else ": without softmax at rates of up to e^β times those with it")
        )
    return np.asarray(kept)


@compiled
def _program(
    lanes: Any, temperatures: Any, times: Any, parts: _Parts, tolerance: Any,
    softmax: bool, save: Callable[[Array], Array],
) -> tuple[Array, Array]:  # fmt: skip
    """All lanes with one common step, so that their products with matrices are one."""

    def field(_: Any, Y: Array, __: Any) -> Array:
        norms = jnp.linalg.norm(Y, axis=-1, keepdims=True)
        one = jax.vmap(lambda x, b: _velocity(x, b, parts, softmax))
        return norms * one(Y / norms, temperatures)

    def size(error: Array) -> Array:  # of the worst lane
        return jnp.sqrt(jnp.max(jnp.mean(error**2, axis=(1, 2))))

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=jnp.maximum(times[-1], 1e-12),
        dt0=None,
        y0=jnp.asarray(lanes),
        saveat=diffrax.SaveAt(ts=times, fn=lambda _, Y, __: save(Y)),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance, norm=size),
        adjoint=diffrax.ForwardMode(),
        max_steps=STEPS,
        throw=False,
    )
    assert solution.ys is not None
    return solution.ys, solution.result == diffrax.RESULTS.successful


def _parts(dim: int, query: Any, key: Any, value: Any, feed_forward: FeedForward | None) -> _Parts:
    Q, K, V = (_heads(name, matrix) for name, matrix in
               (("query", query), ("key", key), ("value", value)))  # fmt: skip
    given = [matrix for matrix in (Q, K, V) if matrix is not None]
    count = max((len(matrix) for matrix in given), default=1)
    for name, matrix in (("query", Q), ("key", K), ("value", V)):
        rows = dim if name == "value" or matrix is None else matrix.shape[1]
        if matrix is not None and matrix.shape != (count, rows, dim):
            wanted = (dim, dim) if name == "value" else ("k", dim)
            raise _checks.InputError(
                f"{name} has shape {matrix.shape}, which is not allowed: {name} must be one "
                f"matrix of shape {wanted} for each of {count} heads"
            )
    scores = None
    if Q is not None or K is not None:
        Q = np.broadcast_to(np.eye(dim), (count, dim, dim)) if Q is None else Q
        K = np.broadcast_to(np.eye(dim), (count, dim, dim)) if K is None else K
        if Q.shape != K.shape:
            raise _checks.InputError(
                f"key has shape {K.shape}, which is not allowed: key must have shape {Q.shape}, "
                "as query has"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.swapaxes(Q, 1, 2) @ K
        if not np.all(abs(scores) <= SCORES):
            raise _checks.InputError(
                f"query={_checks.shown(Q)} is not allowed: query and key must have products of at "
                f"most {SCORES:g}"
            )
    if scores is None and V is not None and count > 1:
        scores = np.broadcast_to(np.eye(dim), (count, dim, dim))
    if V is None and count > 1:
        V = np.broadcast_to(np.eye(dim), (count, dim, dim))
    return _Parts(scores, V, *layer(dim, feed_forward))


def _heads(name: str, matrix: Any) -> np.ndarray | None:
    if matrix is None:
        return None
    M = _checks.array(name, matrix, None)
    if M.ndim not in (2, 3) or M.size == 0:
        raise _checks.InputError(
            f"{name} has shape {M.shape}, which is not allowed: {name} must be a matrix, or one "
            "for each head"
        )
    return M if M.ndim == 3 else M[None]


def _temperatures(inverse_temperature: Any) -> np.ndarray:
    b = _checks.array("inverse_temperature", inverse_temperature, None)
    if b.ndim > 1 or b.size == 0 or np.any(b < 0):
        raise _checks.InputError(
            f"inverse_temperature={_checks.shown(b)} is not allowed: inverse_temperature must be a "
            "number >= 0, or several"
        )
    return b


def _refuse_overflow(inverse_temperature: np.ndarray, parts: _Parts, normalised: Flag) -> None:
    largest = 1.0 if parts.scores is None else np.linalg.norm(parts.scores, 2, axis=(1, 2)).max()
    if (
        not _checks.flag("normalised", normalised)
        and np.max(inverse_temperature) * largest > LARGEST
    ):
        raise _checks.InputError(
            f"inverse_temperature={_checks.shown(inverse_temperature)} is not allowed: "
            f"inverse_temperature must be at most {LARGEST / largest:.6g} without softmax"
        )


def _times(times: Any) -> np.ndarray:
    t = _checks.array("times", times, None)
    if t.ndim != 1 or len(t) == 0 or t[0] < 0 or np.any(np.diff(t) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(t)} is not allowed: times must increase from 0 on"
        )
    return t


def _attributes(
    inverse_temperature: Any, n: int, d: int, parts: _Parts, normalised: Flag
) -> dict[str, Any]:
    heads = 1 if parts.scores is None else len(parts.scores)
    attrs = {"kind": "self-attention", "particles": n, "dim": d, "heads": heads}
    attrs |= {"softmax": int(normalised), "feed_forward": int(parts.feed_forward is not None)}
    return attrs | (
        {"inverse_temperature": float(inverse_temperature)}
        if np.ndim(inverse_temperature) == 0
        else {}
    )
