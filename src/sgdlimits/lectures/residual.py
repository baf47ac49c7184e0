"""Residual networks and the differential equation that they become as layers multiply."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import integrate

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Matrix, Number, WholeNumber
from sgdlimits.lectures.feed_forward import ACTIVATIONS, FeedForward, layer

_TOLERANCE = 1e-11


@double_precision
def residual_network(
    inputs: Matrix, block: FeedForward, *, layers: WholeNumber, time: Number = 1.0
) -> np.ndarray:
    """Outputs of L residual layers, x ← x + (T/L) w σ(a x + b), with the same block in each.

    These are Euler steps: the distance to :func:`neural_ode` falls like 1/L (J24 ch. 14, (1.1)).

    Args:
        inputs: x, one per row.
        block: w, a, b and σ.
        layers: L.
        time: T; T = L is the network as printed.

    >>> block = FeedForward(outer=[[1.0]], inner=[[0.0]], shift=[1e3])
    >>> residual_network([[0.5]], block, layers=4).tolist()
    [[1.5]]
    """
    X, (outer, inner, shift), activation = _block(inputs, block)
    count = _checks.integer("layers", layers, least=1)
    step = _checks.positive("time", time) / count
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            X = X + step * np.asarray(activation(jnp.asarray(X @ inner.T + shift))) @ outer.T
    return _finite(X, time)


@double_precision
def neural_ode(inputs: Matrix, block: FeedForward, *, time: Number = 1.0) -> np.ndarray:
    """The solution of ẋ = w σ(a x + b) at time T, from each of the inputs (J24 ch. 14, (1.2)).

    >>> block = FeedForward(outer=[[1.0]], inner=[[0.0]], shift=[1e3])
    >>> neural_ode([[0.5]], block).round(9).tolist()
    [[1.5]]
    """
    X, (outer, inner, shift), activation = _block(inputs, block)

    def field(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(X.shape)
        return np.asarray(activation(jnp.asarray(x @ inner.T + shift)) @ outer.T).ravel()

    end = _checks.positive("time", time)
    with np.errstate(over="ignore", invalid="ignore"):
        solution = integrate.solve_ivp(
            field, (0.0, end), X.ravel(), "DOP853", rtol=_TOLERANCE, atol=_TOLERANCE
        )
    return _finite(solution.y[:, -1].reshape(X.shape) if solution.success else np.inf, time)


def _finite(outputs: np.ndarray | float, time: Number) -> np.ndarray:
    if not np.all(np.isfinite(outputs)):
        raise _checks.InputError(
            f"time={time!r} is not allowed: time must be so short, or block and inputs so small, "
            "that outputs are finite"
        )
    return np.asarray(outputs)


def _block(
    inputs: Matrix, block: FeedForward
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], Callable[[Array], Array]]:
    X = _checks.array("inputs", inputs, None)
    if X.ndim != 2 or X.size == 0:
        raise _checks.InputError(
            f"inputs has shape {X.shape}, which is not allowed: inputs must be a matrix with a row "
            "for each input"
        )
    arrays, activation = layer(X.shape[1], block)
    if arrays is None:
        raise _checks.InputError("block=None is not allowed: block must be a FeedForward")
    return X, arrays, ACTIVATIONS[activation]
