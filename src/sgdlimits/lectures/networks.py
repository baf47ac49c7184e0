"""Real networks of finite width, their tangent kernel and their training by gradient descent.

A network of depth L has L layers with weights; with α⁽⁰⁾ = x,

    z⁽ᵏ⁺¹⁾ = W⁽ᵏ⁾ α⁽ᵏ⁾/√n_k + β b⁽ᵏ⁾,    α⁽ᵏ⁾ = σ(z⁽ᵏ⁾),    f = z⁽ᴸ⁾

and W, b start as independent standard normals: the scale is in the network, not in its start.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import erf
from jaxtyping import Array, Float

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._types import Activation, Matrix, Number, Numbers, WholeNumber
from sgdlimits.lectures._sizes import affordable

Weights = list[tuple[np.ndarray, np.ndarray]]
"""W⁽ᵏ⁾ and b⁽ᵏ⁾ of every layer."""

ACTIVATIONS: dict[str, Activation] = {
    "relu": jax.nn.relu,
    "erf": lambda z: erf(z / jnp.sqrt(2.0)),
    "tanh": jnp.tanh,
}
"""Activations by name; "erf" is erf(z/√2)."""

STABLE = 2.0  # gradient descent on a quadratic diverges from 2/(largest curvature) on
SHARE = 0.05  # of n/(largest eigenvalue of the tangent kernel), the step by default
HALVINGS = 12  # of that step, if the loss rises with it
RISE = 1e-3  # of the loss at the start, by which it may rise, and rounding of the targets' squares
STEPS = 100_000_000  # of gradient descent, at most


@dataclass(frozen=True)
class Network:
    """A fully connected network of one width.

    Args:
        dim: of its inputs.
        width: of all hidden layers.
        depth: L, the number of layers with weights: L − 1 of them have hidden neurons behind them.
        outputs: how many.
        activation: a name of ``ACTIVATIONS``, or a function of JAX arrays, entry by entry.
        bias: β.
    """

    dim: WholeNumber
    width: WholeNumber = 512
    depth: WholeNumber = 2
    outputs: WholeNumber = 1
    activation: str | Activation = "relu"
    bias: Number = 0.0

    def __post_init__(self) -> None:
        for name in ("dim", "width", "depth", "outputs"):
            whole = _checks.integer(name, getattr(self, name), least=1)
            object.__setattr__(self, name, whole)
        _checks.nonnegative("bias", self.bias)
        _elementwise(self.activation)
        affordable(width=int(self.width), dim=int(self.dim))
        affordable(width=int(self.width), outputs=int(self.outputs))
        if self.depth > 2:
            affordable(depth=int(self.depth), **{"width²": int(self.width) ** 2})

    def random_weights(self, seed: WholeNumber = 0) -> Weights:
        """Independent standard normal numbers.

        >>> [W.shape for W, _ in Network(dim=3, width=5, depth=3).random_weights()]
        [(5, 3), (5, 5), (1, 5)]
        """
        rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
        sizes = [int(self.dim), *[int(self.width)] * (int(self.depth) - 1), int(self.outputs)]
        return [
            (rng.standard_normal((after, before)), rng.standard_normal(after))
            for before, after in pairwise(sizes)
        ]

    @double_precision
    def values(self, weights: Weights, inputs: Matrix) -> np.ndarray:
        """f(x), a row for each input."""
        X = _inputs("inputs", inputs, self.dim)
        return np.asarray(self._values(self._checked(weights), X))

    @double_precision
    def tangent_kernel(
        self, weights: Weights, inputs: Matrix, others: Matrix | None = None
    ) -> np.ndarray:
        """⟨∇f_o(x), ∇f_p(x′)⟩ over all weights and biases, without their gradients being formed.

            Σ_k (⟨α⁽ᵏ⁾(x), α⁽ᵏ⁾(x′)⟩/n_k + β²) ⟨∂f_o/∂z⁽ᵏ⁺¹⁾(x), ∂f_p/∂z⁽ᵏ⁺¹⁾(x′)⟩

        since the gradient in W⁽ᵏ⁾ is an outer product. Exact; for n inputs, width m and depth L it
        takes O(L(nm² + n²m)) products and O(nm + n²) numbers, where gradients take O(Ln²m²) and
        O(Lnm²).

        Returns:
            One row for each input and one column for each of ``others``, the inputs by default;
            with several outputs two more axes, o and p.

        >>> network = Network(dim=2, width=4, depth=1)
        >>> network.tangent_kernel(network.random_weights(), [[1.0, 2.0], [2.0, 0.0]])
        array([[2.5, 1. ],
               [1. , 2. ]])
        """
        X = _inputs("inputs", inputs, self.dim)
        Z = X if others is None else _inputs("others", others, self.dim)
        kernel = np.asarray(self.tangent_kernel_of(self._checked(weights), X, Z))
        return kernel[..., 0, 0] if self.outputs == 1 else kernel

    @double_precision
    def train(
        self,
        inputs: Matrix,
        targets: Numbers,
        *,
        tests: Matrix,
        times: Numbers,
        step: Number | None = None,
        seed: WholeNumber = 0,
    ) -> xr.Dataset:
        """Gradient descent with all data in each step, on ‖y − f‖²/(2n).

        Args:
            inputs: x_i, one per row.
            targets: y_i; the network has one output.
            tests: points at which predictions are recorded.
            times: increasing, at which to record, rounded to whole steps; time is η · steps.
            step: η; by default 1/20 of n/(largest eigenvalue of the tangent kernel at the start),
                halved until the loss never rises by more than 0.1 % of what it was at the start:
                where targets are large the kernel grows in training, and steps become large, too.
            seed: of the weights.

        Returns:
            Over time: ``fit`` at the inputs and ``prediction`` at the tests; ``loss``; ``motion``
            of each layer, the operator norm of (W(t) − W(0))/√n_k; ``kernel_change``,
            ‖K(t) − K(0)‖/‖K(0)‖ of the tangent kernel at the inputs.

        >>> network = Network(dim=2, width=64)
        >>> path = network.train([[1.0, 1.0]], [3.0], tests=[[1.0, 1.0]], times=[0.0, 100.0])
        >>> path.prediction[-1].values.round(6)
        array([3.])
        """
        if self.outputs != 1:
            raise _checks.InputError(
                f"outputs={self.outputs} is not allowed: outputs must be 1 to train"
            )
        X, Z = _inputs("inputs", inputs, self.dim), _inputs("tests", tests, self.dim)
        y = _checks.array("targets", targets, (len(X),))
        asked = _checks.array("times", times, None)
        if asked.ndim != 1 or len(asked) == 0 or asked[0] < 0 or np.any(np.diff(asked) <= 0):
            raise _checks.InputError(
                f"times={_checks.shown(asked)} is not allowed: times must increase from 0 on"
            )
        begun = self.random_weights(seed)
        K = np.asarray(self.tangent_kernel_of(begun, X, X))[..., 0, 0]
        largest = float(np.linalg.eigvalsh(K)[-1]) / len(X) if np.all(np.isfinite(K)) else np.inf
        if not 0 < largest < np.inf:
            raise _checks.InputError(
                f"inputs={_checks.shown(X)} is not allowed: inputs must be of a size at which the "
                f"tangent kernel is neither zero nor infinite, not {largest * len(X):.3g}"
            )
        eta = SHARE / largest if step is None else _checks.positive("step", step)
        if eta * largest >= STABLE:
            raise _checks.InputError(
                f"step={step!r} is not allowed: step must be below {STABLE / largest:.6g}, where "
                "gradient descent becomes unstable"
            )
        for _ in range(HALVINGS + 1):
            if asked[-1] / eta > STEPS:
                raise _checks.InputError(
                    f"times={_checks.shown(asked)} is not allowed: times must be at most "
                    f"{STEPS * eta:.3g}, after {STEPS} steps"
                )
            marks = np.round(asked / eta).astype(int)
            rows = self._descent(begun, X, y, Z, eta, marks, K)
            if rows is not None:
                break
            if step is not None:
                raise _checks.InputError(
                    f"step={step!r} is not allowed: step must be smaller, the loss rises with it"
                )
            eta /= 2
        else:
            raise _checks.InputError(
                f"targets={_checks.shown(y)} is not allowed: targets must be smaller, or the width "
                f"larger: the loss rises even with steps of {eta * largest:.1g} n/(largest "
                "eigenvalue of the tangent kernel)"
            )
        names = ("fit", "prediction", "loss", "motion", "kernel_change")
        columns = map(np.array, zip(*rows, strict=True))
        statistics = dict(zip(names, columns, strict=True))
        dims: dict[str, tuple[str, ...]] = {"loss": ("time",), "kernel_change": ("time",)}
        dims |= {"fit": ("time", "sample"), "prediction": ("time", "test")}
        dims |= {"motion": ("time", "layer")}
        coords = {"time": eta * marks, "sample": np.arange(len(X)), "test": np.arange(len(Z))}
        coords |= {"layer": np.arange(int(self.depth))}
        attrs = {"kind": "training of a network", "width": self.width, "depth": self.depth}
        attrs |= {"bias": self.bias, "step": eta, "seed": seed}
        return results.build(statistics, dims, coords, attrs)

    def _descent(
        self, begun: Weights, X: np.ndarray, y: np.ndarray, Z: np.ndarray, eta: float,
        marks: np.ndarray, K: np.ndarray,
    ) -> list[tuple[Any, ...]] | None:  # fmt: skip
        """What is recorded after so many steps each; nothing if the loss rises."""
        sigma = _elementwise(self.activation)
        first = float(np.mean((y - np.asarray(self._values(begun, X))[:, 0]) ** 2) / 2)
        allowed = RISE * first + np.finfo(float).eps * np.mean(y**2)
        rows, now, weights, lowest = [], 0, begun, first
        for mark in marks:
            weights, lowest, rise = _steps(
                weights, lowest, X, y, float(self.bias), eta, int(mark - now), sigma
            )
            if not float(rise) <= allowed:
                return None
            now = mark
            fit = np.asarray(self._values(weights, X))[:, 0]
            motion = [
                np.linalg.norm(np.asarray(W) - start, 2) / np.sqrt(start.shape[1])
                for (W, _), (start, _) in zip(weights, begun, strict=True)
            ]
            kernel = np.asarray(self.tangent_kernel_of(weights, X, X))[..., 0, 0]
            prediction = np.asarray(self._values(weights, Z))[:, 0]
            change = np.linalg.norm(kernel - K) / np.linalg.norm(K)
            rows.append((fit, prediction, np.mean((y - fit) ** 2) / 2, motion, change))
        return rows

    def _checked(self, weights: Weights) -> Weights:
        """Weights of the shapes of :meth:`random_weights`."""
        sizes = [self.dim, *[self.width] * (int(self.depth) - 1), self.outputs]
        shapes = [((after, before), (after,)) for before, after in pairwise(sizes)]
        try:
            given = [(np.shape(W), np.shape(b)) for W, b in weights]
        except (TypeError, ValueError):
            given = []
        if given != shapes:
            raise _checks.InputError(
                f"weights of shapes {given} are not allowed: weights must be pairs of arrays of "
                f"shapes {shapes}"
            )
        return weights

    def _values(self, weights: Weights, X: np.ndarray) -> Array:
        return _forward(weights, X, float(self.bias), _elementwise(self.activation))

    def tangent_kernel_of(
        self, weights: Weights, X: Array | np.ndarray, Z: Array | np.ndarray
    ) -> Array:
        """The same for JAX arrays, within a function that is compiled; always with four axes."""
        return _tangent(weights, X, Z, float(self.bias), _elementwise(self.activation))


@double_precision
def random_feature_kernel(
    inputs: Matrix,
    features: WholeNumber,
    *,
    others: Matrix | None = None,
    activation: str | Activation = "relu",
    seed: WholeNumber = 0,
) -> np.ndarray:
    """(1/m) Σ_j σ(⟨w_j, x⟩) σ(⟨w_j, x′⟩) with m random w_j ~ N(0, I/d).

    Args:
        inputs: x, one per row.
        features: m.
        others: x′, the inputs by default.
        activation: as of a :class:`Network`.
        seed: of the features.

    >>> random_feature_kernel([[1.0]], 3, activation=lambda z: 0 * z + 2)
    array([[4.]])
    """
    X = _inputs("inputs", inputs, None)
    Z = X if others is None else _inputs("others", others, X.shape[1])
    rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
    m = _checks.integer("features", features, least=1)
    affordable(features=m, dim=X.shape[1])
    affordable(inputs=max(len(X), len(Z)), features=m)
    W = rng.standard_normal((m, X.shape[1])) / np.sqrt(X.shape[1])
    sigma = _elementwise(activation)
    left, right = (np.asarray(sigma(jnp.asarray(rows @ W.T))) for rows in (X, Z))
    return left @ right.T / m


def _hidden(
    weights: Weights, X: Array, bias: float, activation: Activation
) -> tuple[Array, list[Array], list[Array]]:
    """f; what goes into each layer; σ′ at each hidden layer."""
    entering, slopes = [jnp.asarray(X)], []
    for number, (W, b) in enumerate(weights):
        z = entering[-1] @ W.T / jnp.sqrt(W.shape[1]) + bias * b
        if number < len(weights) - 1:
            value, slope = jax.jvp(activation, (z,), (jnp.ones_like(z),))
            entering.append(value)
            slopes.append(slope)
    return z, entering, slopes


@partial(jax.jit, static_argnames="activation")
def _forward(weights: Weights, X: Array, bias: float, activation: Activation) -> Array:
    return _hidden(weights, X, bias, activation)[0]


def _sensitivities(weights: Weights, slopes: list[Array], samples: int) -> list[Array]:
    """∂f_o/∂z of each layer, of shape (samples, outputs, neurons)."""
    outputs = len(weights[-1][0])
    now = jnp.broadcast_to(jnp.eye(outputs), (samples, outputs, outputs))
    found = [now]
    for (W, _), slope in zip(reversed(weights[1:]), reversed(slopes), strict=True):
        now = (now @ W) / jnp.sqrt(W.shape[1]) * slope[:, None, :]
        found.append(now)
    return found[::-1]


@partial(jax.jit, static_argnames="activation")
def _tangent(weights: Weights, X: Array, Z: Array, bias: float, activation: Activation) -> Array:
    _, left, left_slopes = _hidden(weights, X, bias, activation)
    _, right, right_slopes = _hidden(weights, Z, bias, activation)
    backward = zip(
        _sensitivities(weights, left_slopes, len(X)),
        _sensitivities(weights, right_slopes, len(Z)),
        strict=True,
    )
    total: Float[Array, "n n_ o p"] = jnp.zeros(())
    for a, b, (d, e) in zip(left, right, backward, strict=True):
        gram = a @ b.T / a.shape[1] + bias**2
        total = total + gram[..., None, None] * jnp.einsum("iok,jpk->ijop", d, e)
    return total


@partial(jax.jit, static_argnames="activation")
def _steps(
    weights: Weights, lowest: Array, X: Array, y: Array, bias: float, eta: float, count: int,
    activation: Activation,
) -> tuple[Weights, Array, Array]:  # fmt: skip
    """So many steps of gradient descent; the lowest loss, and by how much it rose above that."""

    def loss(weights: Weights) -> Array:
        return jnp.mean((y - _forward(weights, X, bias, activation)[:, 0]) ** 2) / 2

    def step(_: int, state: tuple[Weights, Array, Array]) -> tuple[Weights, Array, Array]:
        weights, lowest, rise = state
        now, slopes = jax.value_and_grad(loss)(weights)
        moved = jax.tree.map(lambda w, g: w - eta * g, weights, slopes)
        return moved, jnp.minimum(lowest, now), jnp.maximum(rise, now - lowest)

    begun = jax.tree.map(jnp.asarray, weights)
    begun, low, rise = jax.lax.fori_loop(0, count, step, (begun, lowest, jnp.zeros(())))
    now = loss(begun)
    return begun, jnp.minimum(low, now), jnp.maximum(rise, now - low)


def _elementwise(activation: str | Activation) -> Activation:
    if callable(activation):
        return activation
    return ACTIVATIONS[_checks.choice("activation", activation, list(ACTIVATIONS))]


def _inputs(name: str, value: object, dim: WholeNumber | None) -> np.ndarray:
    rows = _checks.array(name, value, None)
    if rows.ndim != 2 or rows.size == 0 or (dim is not None and rows.shape[1] != dim):
        length = "" if dim is None else f" of {dim} numbers"
        raise _checks.InputError(
            f"{name} has shape {rows.shape}, which is not allowed: {name} must be a matrix with a "
            f"row{length} for each point"
        )
    return rows
