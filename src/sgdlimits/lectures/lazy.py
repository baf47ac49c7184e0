"""Two layers with a scale α: their Jacobian, their flow, and how much features move.

    f(x; θ) = (α/√m) Σ_j b_j σ(⟨w_j, x⟩),    θ = (w_1, …, w_m),    b_j = ±1, half of each

The second layer is not trained; the w_j start on the unit sphere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array
from scipy import integrate, special

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._types import Flag, Matrix, Number, Numbers, WholeNumber, Word
from sgdlimits.lectures._sizes import affordable

_TOLERANCE = 1e-11  # of the flow
_FARTHEST = 0.05  # that weights move in a round, as a root mean square over neurons


class Smooth(NamedTuple):
    """An activation with bounded derivatives."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    largest: float  # |σ″|


def _bell(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2))


def _hump(z: np.ndarray) -> np.ndarray:
    """1 − tanh², without cancellation where it is small."""
    return np.asarray(4 * special.expit(2 * z) * special.expit(-2 * z))


SMOOTH = {
    "softplus": Smooth(
        lambda z: np.logaddexp(0.0, z),
        special.expit,
        lambda z: special.expit(z) * special.expit(-z),
        0.25,
    ),
    "tanh": Smooth(
        np.tanh,
        _hump,
        lambda z: -2 * np.tanh(z) * _hump(z),
        4 / (3 * np.sqrt(3)),
    ),
    "erf": Smooth(
        lambda z: special.erf(z / np.sqrt(2)),
        _bell,
        lambda z: -z * _bell(z),
        float(_bell(np.array(1.0))),
    ),
}
"""Activations by name; "erf" is erf(z/√2)."""


class Constants(NamedTuple):
    """What Theorem 9.1 asks for, measured at a start."""

    misfit: float  # ‖y − f₀‖
    smallest: float  # singular values of the Jacobian
    largest: float
    lipschitz: float  # of the Jacobian, a bound from above over all weights
    seen: float  # a bound from below: how fast the Jacobian changes at the start


@dataclass(frozen=True)
class TwoLayers:
    """The model.

    Args:
        width: m, even.
        scale: α.
        activation: "softplus", "tanh" or "erf".
    """

    width: WholeNumber
    scale: Number = 1.0
    activation: Word = "softplus"

    def __post_init__(self) -> None:
        m = _checks.integer("width", self.width, least=2)
        if m % 2:
            raise _checks.InputError(f"width={m} is not allowed: width must be even")
        object.__setattr__(self, "width", m)
        _checks.positive("scale", self.scale)
        _checks.choice("activation", self.activation, list(SMOOTH))

    def start(
        self, dim: WholeNumber, *, seed: WholeNumber = 0, centred: Flag = False
    ) -> np.ndarray:
        """Weights on the unit sphere, one row for each neuron.

        Args:
            dim: d.
            seed: of the weights.
            centred: whether the second half repeats the first, so that f = 0 at the start.

        >>> model = TwoLayers(4)
        >>> bool(abs(model.values(model.start(3, centred=True), [[1.0, 2.0, 3.0]])[0]) < 1e-14)
        True
        """
        d = _checks.integer("dim", dim, least=1)
        affordable(width=int(self.width), dim=d)
        rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
        rows = rng.standard_normal((int(self.width), d))
        if _checks.flag("centred", centred):
            rows[int(self.width) // 2 :] = rows[: int(self.width) // 2]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def values(self, weights: Matrix, features: Matrix) -> np.ndarray:
        """f(x), for each row of features."""
        w, X = self._checked(weights, features)
        return np.asarray(SMOOTH[self.activation].value(X @ w.T) @ self._readout())

    def jacobian(self, weights: Matrix, features: Matrix) -> np.ndarray:
        """∂f(x_i)/∂θ, one row for each sample, neuron after neuron."""
        w, X = self._checked(weights, features)
        slopes = SMOOTH[self.activation].slope(X @ w.T) * self._readout()
        return np.asarray((slopes[:, :, None] * X[:, None, :]).reshape(len(X), -1))

    def constants(self, weights: Matrix, features: Matrix, targets: Numbers) -> Constants:
        """Misfit, singular values and Lipschitz constant of the Jacobian.

        The bound from above is (α/√m) max|σ″| max_i‖x_i‖ ‖X‖; the one from below is the largest of
        (α/√m) ‖(σ″(⟨w_j, x_i⟩)⟨z, x_i⟩²)_i‖ over neurons j and z = x/‖x‖ of the samples.

        >>> model = TwoLayers(2, activation="tanh")
        >>> found = model.constants([[0.0], [0.0]], [[2.0]], [1.0])
        >>> found.misfit, round(found.smallest, 12), found.seen <= found.lipschitz
        (1.0, 2.0, True)
        """
        w, X = self._checked(weights, features)
        y = _checks.array("targets", targets, (len(X),))
        singular = np.linalg.svd(self.jacobian(w, X), compute_uv=False)
        smallest = float(singular[-1]) if len(X) <= w.size else 0.0
        sigma, lengths = SMOOTH[self.activation], np.linalg.norm(X, axis=1)
        unit = self.scale / np.sqrt(float(self.width))
        upper = unit * sigma.largest * lengths.max() * np.linalg.norm(X, 2)
        along = (X @ (X / np.maximum(lengths, 1e-300)[:, None]).T) ** 2
        lower = unit * np.sqrt((sigma.curvature(X @ w.T) ** 2).T @ along**2).max()
        misfit = float(np.linalg.norm(y - self.values(w, X)))
        return Constants(misfit, smallest, float(singular[0]), float(upper), float(lower))

    def flow(
        self, weights: Matrix, features: Matrix, targets: Numbers, *, times: Numbers
    ) -> xr.Dataset:
        """Gradient flow on ‖y − f‖²/(2n).

        Returns:
            Over time: ``weights``, flat, and ``loss``.

        >>> flow = TwoLayers(2).flow([[1.0], [1.0]], [[1.0]], [0.5], times=[0.0, 100.0])
        >>> bool(flow.loss[-1] < 1e-12)
        True
        """
        w, X = self._checked(weights, features)
        y = _checks.array("targets", targets, (len(X),))
        t = _checks.array("times", times, (len(times),))
        if len(t) == 0 or t[0] < 0 or np.any(np.diff(t) <= 0):
            raise _checks.InputError(
                f"times={_checks.shown(t)} is not allowed: times must increase from 0 on"
            )
        sigma, readout = SMOOTH[self.activation], self._readout()

        def force(_: float, flat: np.ndarray) -> np.ndarray:
            fields = X @ flat.reshape(w.shape).T
            error = y - sigma.value(fields) @ readout
            return ((error[:, None] * sigma.slope(fields) * readout).T @ X).ravel() / len(X)

        solution = integrate.solve_ivp(
            force, (0.0, max(float(t[-1]), 1e-300)), w.ravel(), "DOP853", t,
            rtol=_TOLERANCE, atol=_TOLERANCE,
        )  # fmt: skip
        if not solution.success:
            raise RuntimeError(f"the flow could not be solved: {solution.message}")
        path = solution.y.T
        losses = [np.mean((y - self.values(row.reshape(w.shape), X)) ** 2) / 2 for row in path]
        dims = {"weights": ("time", "parameter"), "loss": ("time",)}
        coords = {"time": t, "parameter": np.arange(w.size)}
        attrs = {"kind": "flow of two layers", "width": self.width, "scale": self.scale}
        statistics = {"weights": path, "loss": np.array(losses)}
        return results.build(statistics, dims, coords, attrs | {"activation": self.activation})

    def _readout(self) -> np.ndarray:
        m = int(self.width)
        return np.repeat([1.0, -1.0], m // 2) * self.scale / np.sqrt(m)

    def _checked(self, weights: Matrix, features: Matrix) -> tuple[np.ndarray, np.ndarray]:
        X = _samples(features)
        return _checks.array("weights", weights, (int(self.width), X.shape[1])), X


@double_precision
def transition(
    features: Matrix,
    targets: Numbers,
    *,
    scales: Numbers,
    widths: Numbers,
    activation: Word = "softplus",
    rounds: WholeNumber = 1000,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Training of every scale and width at once, from a centred start: how much features move.

    Gradient descent whose step is as large as the kernel of the moment allows, but moves weights by
    at most 0.05. All cells are one program: narrow networks are padded by neurons without weight.

    Returns:
        Over scale and width: ``motion``, ‖θ − θ₀‖/‖θ₀‖; ``kernel_change``, ‖K − K₀‖/‖K₀‖ of the
        tangent kernel at the samples; ``left``, the loss over that at the start.

    >>> grid = transition([[1.0, 0.0]], [1.0], scales=[1.0, 100.0], widths=[2, 8])
    >>> bool((grid.left < 1e-6).all()), bool(grid.motion[0, 0] > 30 * grid.motion[1, 1])
    (True, True)
    """
    X = _samples(features)
    y = _checks.array("targets", targets, (len(X),))
    _checks.choice("activation", activation, list(SMOOTH))
    alphas = _checks.array("scales", scales, (len(scales),))
    if np.any(alphas <= 0) or len(alphas) == 0:
        raise _checks.InputError(
            f"scales={_checks.shown(alphas)} is not allowed: scales must be positive"
        )
    sizes = [TwoLayers(m).width for m in np.asarray(widths)]
    count, largest = _checks.integer("rounds", rounds, least=1), int(max(sizes))
    pairs = TwoLayers(largest).start(X.shape[1], seed=seed)[: largest // 2]
    start = np.repeat(pairs, 2, axis=0)  # neurons in pairs of opposite sign
    signs = np.tile([1.0, -1.0], largest // 2)
    used = (np.arange(largest) < np.array(sizes)[:, None]) / np.sqrt(np.array(sizes))[:, None]
    readouts = alphas[:, None, None] * signs * used
    found = _train(readouts, start, X, y, count, activation)
    statistics = {name: np.asarray(part) for name, part in found.items()}
    dims = dict.fromkeys(statistics, ("scale", "width"))
    attrs = {"kind": "two layers over scale and width", "activation": activation, "seed": seed}
    return results.build(statistics, dims, {"scale": alphas, "width": np.array(sizes)}, attrs)


_TRACED: dict[str, Callable[[Array], Array]] = {
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "erf": lambda z: jax.scipy.special.erf(z / jnp.sqrt(2.0)),
}


@partial(jax.jit, static_argnames=("rounds", "activation"))
def _train(
    readouts: Array, start: Array, X: Array, y: Array, rounds: int, activation: str
) -> dict[str, Array]:
    gram, sigma = X @ X.T, _TRACED[activation]

    def state(w: Array, readout: Array) -> tuple[Array, Array, Array]:
        fields = X @ w.T
        value, slope = jax.jvp(sigma, (fields,), (jnp.ones_like(fields),))
        slopes = slope * readout
        return y - value @ readout, slopes, gram * (slopes @ slopes.T)

    def one(readout: Array) -> dict[str, Array]:
        size = jnp.sum(readout != 0)

        def step(w: Array, _: None) -> tuple[Array, None]:
            error, slopes, kernel = state(w, readout)
            move = (error[:, None] * slopes).T @ X
            length = jnp.linalg.norm(move) / jnp.sqrt(size)
            stable = 1 / jnp.linalg.norm(kernel)
            return w + move * jnp.minimum(stable, _FARTHEST / jnp.maximum(length, 1e-300)), None

        end, _ = jax.lax.scan(step, start, None, rounds)
        error, _, kernel = state(end, readout)
        first = state(start, readout)[2]
        return {
            "motion": jnp.linalg.norm(end - start) / jnp.sqrt(size),
            "kernel_change": jnp.linalg.norm(kernel - first) / jnp.linalg.norm(first),
            "left": jnp.sum(error**2) / jnp.sum(y**2),
        }

    return jax.vmap(jax.vmap(one))(readouts)


def _samples(features: Matrix) -> np.ndarray:
    X = _checks.array("features", features, None)
    if X.ndim != 2 or X.size == 0:
        raise _checks.InputError(
            f"features has shape {X.shape}, which is not allowed: features must be a matrix with a "
            "row for each sample"
        )
    return X
