"""Gradient descent and gradient flow of least squares and of classification, to very long times."""

import numpy as np
import xarray as xr
from scipy import integrate

from sgdlimits import _checks, results
from sgdlimits._types import Matrix, Number, Numbers, WholeNumber, Word
from sgdlimits.lectures._sizes import affordable

LOSSES = ("square", "logistic", "exponential")
_TOLERANCE = 1e-10  # of the flow
_LARGEST = 1e300  # times of a flow


def separable_data(
    dim: WholeNumber, samples: WholeNumber, *, gap: Number = 0.2, seed: WholeNumber = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows with the sign of their first coordinate as label, which is at least ``gap``.

    Returns:
        Rows and labels ±1.

    >>> features, labels = separable_data(3, 10)
    >>> features.shape, bool((labels * features[:, 0] >= 0.2).all())
    ((10, 3), True)
    """
    d, n = _checks.integer("dim", dim, least=1), _checks.integer("samples", samples, least=1)
    affordable(samples=n, dim=d)
    rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
    X = rng.standard_normal((n, d))
    labels = np.where(X[:, 0] >= 0, 1.0, -1.0)
    X[:, 0] += _checks.nonnegative("gap", gap) * labels
    return X, labels


def gradient_descent(
    features: Matrix,
    targets: Numbers,
    *,
    loss: Word = "square",
    step: Number | None = None,
    steps: WholeNumber = 1000,
    start: Numbers | None = None,
    points: WholeNumber = 101,
) -> xr.Dataset:
    """Gradient descent w ← w − η∇L(w), with all data in each step.

        L(w) = (1/n) Σ_i (⟨w, x_i⟩ − y_i)²   or   (1/n) Σ_i ℓ(y_i⟨w, x_i⟩)

    with ℓ(u) = log(1 + e^(−u)) or e^(−u).

    Args:
        features: rows x_i.
        targets: y_i; labels ±1 unless the loss is "square".
        loss: "square", "logistic" or "exponential".
        step: η; by default half of where the square and the logistic loss become unstable.
        steps: how many.
        start: w at the start, zero by default.
        points: recorded, of them as many as differ, evenly in the logarithm.

    Returns:
        ``weights`` over time and coordinate, ``loss`` over time; ``time`` = η · steps taken.

    >>> path = gradient_descent([[1.0, 1.0]], [2.0], steps=100)
    >>> path.weights[-1].values.round(9)
    array([1., 1.])
    """
    X, y, w = _data(features, targets, loss, start)
    count = _checks.integer("steps", steps, least=1)
    shown = _checks.integer("points", points, least=2)
    curvature = float(np.linalg.norm(X, 2) ** 2 / len(X))
    bound = {"square": 1.0, "logistic": 8.0, "exponential": 8.0}[loss] / max(curvature, 1e-300)
    eta = bound / 2 if step is None else _checks.positive("step", step)
    if loss != "exponential" and eta >= bound:
        raise _checks.InputError(
            f"step={step!r} is not allowed: step must be below {bound:.6g}, where gradient descent "
            "becomes unstable for these features"
        )
    spaced = np.geomspace(1, count, shown - 1).round().astype(int)
    marks = np.unique(np.concatenate([[0], spaced]))
    kept, now = np.empty((len(marks), len(w))), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for row, mark in enumerate(marks):
            for _ in range(mark - now):
                w = w + eta * _force(X, y, w, loss, 0.0)
            kept[row], now = w, mark
    return _path(X, y, loss, eta * marks, kept, {"kind": "gradient descent", "step": eta})


def gradient_flow(
    features: Matrix,
    targets: Numbers,
    *,
    loss: Word = "logistic",
    times: Numbers,
    start: Numbers | None = None,
) -> xr.Dataset:
    """Gradient flow ẇ = −∇L(w), L as in :func:`gradient_descent`, solved in the time log(1 + t).

    There the force (1 + t)(1/n) Σ_i e^(−⟨w, x̄_i⟩) x̄_i stays of order one, and its logarithms are
    added before exponentials are taken: t = 1e30 costs no more than t = 1e3.

    Args:
        features: rows x_i.
        targets: y_i, as in :func:`gradient_descent`.
        loss: "square", "logistic" or "exponential".
        times: increasing, from 0 on, at most 1e300.
        start: w at time 0, zero by default.

    Returns:
        ``weights`` over time and coordinate, ``loss`` over time.

    >>> flow = gradient_flow([[1.0]], [1.0], loss="exponential", times=[0.0, 1.0, 1e30])
    >>> bool(abs(flow.weights[:, 0] - np.log1p([0.0, 1.0, 1e30])).max() < 1e-7)
    True
    """
    X, y, w = _data(features, targets, loss, start)
    t = _checks.array("times", times, None)
    if t.ndim != 1 or len(t) == 0 or t[0] < 0 or t[-1] > _LARGEST or np.any(np.diff(t) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(t)} is not allowed: times must increase from 0 on, to 1e300"
        )
    depths = np.log1p(t)

    def force(depth: float, w: np.ndarray) -> np.ndarray:
        return _force(X, y, w, loss, depth)

    def jacobian(depth: float, w: np.ndarray) -> np.ndarray:
        return -(X.T * _curvatures(X, y, w, loss, depth)) @ X

    with np.errstate(over="ignore", invalid="ignore"):
        if not np.all(np.isfinite(force(0.0, w))):
            raise _checks.InputError(
                f"start={_checks.shown(w)} is not allowed: start must have a finite gradient"
            )
        solution = integrate.solve_ivp(
            force, (0.0, max(depths[-1], 1e-12)), w, "Radau", depths, jac=jacobian,
            rtol=_TOLERANCE, atol=_TOLERANCE,
        )  # fmt: skip
    if not solution.success:
        raise RuntimeError(f"the flow could not be solved: {solution.message}")
    return _path(X, y, loss, t, solution.y.T, {"kind": "gradient flow"})


def _force(X: np.ndarray, y: np.ndarray, w: np.ndarray, loss: str, depth: float) -> np.ndarray:
    """−exp(depth) ∇L(w)."""
    if loss == "square":
        return np.asarray(-2 * np.exp(depth) * (X @ w - y) @ X / len(X))
    products = y * (X @ w)
    logs = -products if loss == "exponential" else -np.logaddexp(0.0, products)
    return np.asarray((y * np.exp(depth + logs)) @ X / len(X))


def _curvatures(X: np.ndarray, y: np.ndarray, w: np.ndarray, loss: str, depth: float) -> np.ndarray:
    """exp(depth) ℓ''/n at each sample."""
    if loss == "square":
        return np.full(len(X), 2 * np.exp(depth) / len(X))
    products = y * (X @ w)
    logs = -products
    if loss == "logistic":
        logs = -np.logaddexp(0.0, products) - np.logaddexp(0.0, -products)
    return np.asarray(np.exp(depth + logs) / len(X))


def _data(
    features: Matrix, targets: Numbers, loss: str, start: Numbers | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _checks.choice("loss", loss, LOSSES)
    X = _checks.array("features", features, None)
    if X.ndim != 2 or X.size == 0:
        raise _checks.InputError(
            f"features has shape {X.shape}, which is not allowed: features must be a matrix with a "
            "row for each sample"
        )
    y = _checks.array("targets", targets, (len(X),))
    if loss != "square" and not np.all(np.abs(y) == 1):
        raise _checks.InputError(
            f"targets={_checks.shown(y)} is not allowed: targets must be 1 or −1 for this loss"
        )
    w = np.zeros(X.shape[1])
    return X, y, w if start is None else _checks.array("start", start, w.shape)


def _path(
    X: np.ndarray, y: np.ndarray, loss: str, times: np.ndarray, weights: np.ndarray, attrs: dict
) -> xr.Dataset:
    if not np.all(np.isfinite(weights)):
        first = times[np.argmax(~np.all(np.isfinite(weights), axis=1))]
        raise _checks.InputError(
            f"step={attrs.get('step')!r} is not allowed: step must be smaller, the weights are "
            f"infinite at time {first:g}"
        )
    products = weights @ X.T
    if loss == "square":
        values = np.mean((products - y) ** 2, axis=1)
    else:
        u = products * y
        values = np.mean(np.exp(-u) if loss == "exponential" else np.logaddexp(0.0, -u), axis=1)
    statistics = {"weights": weights, "loss": values}
    dims = {"weights": ("time", "coordinate"), "loss": ("time",)}
    coords = {"time": times, "coordinate": np.arange(X.shape[1])}
    size = {"samples": len(X), "dim": X.shape[1], "function": loss}
    return results.build(statistics, dims, coords, attrs | size)
