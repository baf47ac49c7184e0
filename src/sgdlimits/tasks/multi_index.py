"""Multi-index tasks: Gaussian mixtures seen through a few directions, as in all the papers."""

import abc
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import (
    Flag,
    Index,
    Matrix,
    Number,
    Numbers,
    Real,
    Reals,
    State,
    WholeNumber,
    Word,
)
from sgdlimits.tasks.activations import KINKS
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.initial import InitialLaw, filled
from sgdlimits.tasks.layout import Layout, Statistic


class Committee(NamedTuple):
    r"""Declares a squared loss between two committees, whose expectations are known exactly.

    loss = (loss_weight / 2) (y - f)², f = student_scale Σ_i v_i σ(s_i),
    y = Σ_n teacher_scale_n σ(a_n) + √noise ε, with σ = erf(·/√2) or the square. The scale of the
    teacher is a number, or one for each of its neurons.
    """

    activation: str
    student_scale: float
    teacher_scale: Reals
    noise: Real
    loss_weight: float = 1.0


class MultiIndexFamily(Task):
    r"""Data x = μ_c + z/√λ in R^d, weights W (K × d), loss a function of s = Wx, v and y.

    Anchors A (r × d, Gram P = AAᵀ) are the class means and teacher directions. Component c has
    probability p_c and mean μ_c = means[c] · A; ``spike`` adds covariance to the anchor fields Ax.
    The summary statistics are v (if the readout is trained), M = WAᵀ and R = W⊥W⊥ᵀ, the Gram matrix
    of the parts orthogonal to the anchors (not Q = WWᵀ: no cancellation when W nearly lies in the
    span of the anchors).

    To make a task, implement ``loss`` and, if labels depend on more than the component, ``label``.
    """

    width: int = eqx.field(static=True)
    anchors: tuple[str, ...] = eqx.field(static=True)
    gram: np.ndarray
    means: np.ndarray
    weights: np.ndarray
    labels: np.ndarray | None
    spike: np.ndarray
    precision: float
    ridge: float
    trained: bool = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)
    kinks: str = eqx.field(static=True)  # "none", "zero" (where a field is zero) or "anywhere"

    def __init__(
        self,
        *,
        width: WholeNumber,
        anchors: Sequence[str],
        gram: Matrix | None = None,
        means: Matrix | None = None,
        weights: Numbers | None = None,
        labels: Numbers | None = None,
        spike: Matrix | None = None,
        precision: Number = 1.0,
        ridge: Number = 0.0,
        trained: Flag = False,
        spherical: Flag = False,
        kinks: Word = "anywhere",
    ):
        self.width = _checks.integer("width", width, least=1)
        self.anchors = _names("anchors", anchors)
        r = len(self.anchors)
        self.gram = np.eye(r) if gram is None else _checks.gram("gram", gram, r)
        self.means = np.zeros((1, r)) if means is None else _checks.array("means", means, None)
        if self.means.ndim != 2 or len(self.means) == 0 or self.means.shape[1] != r:
            raise _checks.InputError(
                f"means has shape {self.means.shape}, which is not allowed: means must have shape "
                f"(k, {r}), one row per component and one column per anchor {self.anchors}"
            )
        k = len(self.means)
        self.weights = (
            np.full(k, 1 / k) if weights is None else _checks.probabilities("weights", weights, k)
        )
        self.labels = None if labels is None else _checks.array("labels", labels, (k,))
        self.spike = np.zeros((r, r)) if spike is None else _checks.covariance("spike", spike, r)
        self.precision = _checks.positive("precision", precision, allow_infinite=True)
        self.ridge = _checks.nonnegative("ridge", ridge)
        self.trained = _checks.flag("trained", trained)
        self.spherical = _checks.flag("spherical", spherical)
        self.kinks = _checks.choice("kinks", kinks, KINKS)

    # --- must implement -------------------------------------------------------------------------

    @abc.abstractmethod
    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """The per-sample loss without its ridge; ``readout`` is None where it is fixed."""

    # --- only needed where labels depend on the anchor fields or on noise -----------------------

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The label of a sample from its component, its anchor fields Ax and a standard normal."""
        if self.labels is None:
            raise TypeError(f"{type(self).__name__} has labels=None and no label method")
        return jnp.asarray(self.labels, float)[component]

    @property
    def noisy(self) -> bool:
        """Whether labels depend on noise; families whose noise has a size know."""
        return self.labels is None

    # --- only needed where samples are classified -----------------------------------------------

    def decide(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None
    ) -> Float[Array, ""]:
        """The label that the network gives a sample; where it is another one, that is an error."""
        raise _checks.InputError(
            f"metric='error' is not allowed: {type(self).__name__} has no decision rule; ask for "
            "its risk, or for a metric(fields, readout, label) of your own"
        )

    # --- only needed for closed forms -----------------------------------------------------------

    @property
    def affine_label_noise(self) -> bool:
        """Whether ``label`` is an affine function of its noise, as in every task of the papers."""
        return True

    @property
    def committee(self) -> Committee | None:
        """The closed form this loss has, if it has one: a gain in accuracy, nothing else."""
        return None

    @property
    def squared(self) -> Committee | None:
        """The closed form that its risk has, if that is all that is known."""
        return self.committee

    # --- given ----------------------------------------------------------------------------------

    def gradients(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """∂ℓ/∂v (zeros where the readout is fixed) and ∂ℓ/∂s of a sample."""
        if self.trained:
            both: Any = jax.grad(self.loss, (1, 0))(fields, readout, label)
            return both
        g = jax.grad(self.loss)(fields, None, label)
        return jnp.zeros_like(g), g

    def examined(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """A function whose program shows where ``gradients`` may have kinks: the loss."""
        return self.loss(fields, readout, label)

    @property
    def layout(self) -> Layout:
        """V (if trained), M and R; R is a Gram matrix. Neurons are numbered, anchors have names."""
        return _layout(self.width, self.anchors, self.trained)

    @property
    def least_dim(self) -> int:
        """Weights and anchors must fit side by side: K + r."""
        return self.width + len(self.anchors)

    @property
    def smallest_dim(self) -> int:
        """The anchors must fit; where K weights do not fit beside them, R is singular."""
        return len(self.anchors)

    def draw_states(self, dim: int, generator: np.random.Generator, count: int) -> State:
        """M has rows N(0, P/dim); R is Wishart, drawn by Bartlett's triangle."""
        K, r = self.width, len(self.anchors)
        state = {"v": generator.normal(size=(count, K))} if self.trained else {}
        M = generator.normal(size=(count, K, r)) @ np.linalg.cholesky(self.gram).T
        C = np.tril(generator.normal(size=(count, K, K)), -1)
        diagonal = np.arange(K)
        squares = generator.chisquare(np.maximum(dim - r - diagonal, 1), size=(count, K))
        C[:, diagonal, diagonal] = np.sqrt(squares)
        C[:, :, dim - r :] = 0.0  # no more columns than directions
        scale = np.full((count, K, 1), dim**-0.5)
        if self.spherical:
            norms = self.squared_norms(M, C @ np.swapaxes(C, -1, -2))
            scale = 1 / np.sqrt(norms)[..., None]
        return state | {"M": scale * M, "R": (scale * C) @ np.swapaxes(scale * C, -1, -2)}

    def with_law(self, states: State, law: InitialLaw) -> State:
        """The readout given, W multiplied, or its part along the anchors given.

        On the sphere directions and norms are independent: R is rescaled row by row.
        """
        missing = {} if self.trained else {"readout": "has a fixed readout, which is no statistic"}
        if self.spherical:
            missing["scale"] = "has weights of norm 1, on the sphere"
        law.without(missing, type(self).__name__)
        changed = dict(states)
        if law.readout is not None:
            readout = filled("readout", law.readout, self.shapes["v"])
            changed["v"] = np.broadcast_to(readout, states["v"].shape).copy()
        changed["M"] = law.variance**0.5 * states["M"]
        changed["R"] = law.variance * states["R"]
        if law.overlap is None:
            return changed
        overlap = filled("overlap", law.overlap, self.shapes["M"])
        if self.spherical:
            inside = self.squared_norms(overlap, np.zeros(self.shapes["R"]))
            if np.any(inside > 1 + 1e-9):
                raise _checks.InputError(
                    f"overlap={_checks.shown(law.overlap)} is not allowed: on the sphere "
                    f"diag(M P⁻¹ Mᵀ) must be at most 1, and it is {_checks.shown(inside)}"
                )
            norms = np.sqrt(np.diagonal(states["R"], axis1=1, axis2=2))
            if np.any((norms == 0) & (inside < 1 - 1e-9)):
                raise _checks.InputError(
                    f"overlap={_checks.shown(law.overlap)} is not allowed: in this dimension there "
                    "is nothing beside the anchors, and diag(M P⁻¹ Mᵀ) must be 1"
                )
            factors = np.sqrt(np.maximum(1 - inside, 0.0)) / np.where(norms > 0, norms, 1.0)
            changed["R"] = factors[:, :, None] * states["R"] * factors[:, None, :]
        changed["M"] = np.broadcast_to(overlap, states["M"].shape).copy()
        return changed

    def squared_norms(self, M: Any, R: Any) -> Any:
        """Squared norms of the rows of W: diag(M P⁻¹ Mᵀ + R)."""
        xp = M.__array_namespace__()
        inside = xp.sum(M * (M @ xp.linalg.inv(xp.asarray(self.gram))), axis=-1)
        return inside + xp.diagonal(R, axis1=-2, axis2=-1)

    def constraint(self, state: Mapping[str, Any]) -> Float[Array | np.ndarray, " m"]:
        """On the sphere, ‖W_i‖² − 1."""
        if not self.spherical:
            return super().constraint(state)
        return self.squared_norms(state["M"], state["R"]) - 1

    def project(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """R is positive semidefinite; on the sphere rows have norm 1."""
        nearest = super().project(state)
        if not self.spherical:
            return nearest
        M, R = nearest["M"], nearest["R"]
        scale = 1 / self.squared_norms(M, R)[..., None] ** 0.5
        return nearest | {"M": M * scale, "R": R * scale * scale.swapaxes(-1, -2)}

    def check_values(self, state: State, argument: str) -> None:
        """R must be symmetric and positive semidefinite; on the sphere rows have norm 1."""
        super().check_values(state, argument)
        if self.spherical:
            norms = self.squared_norms(state["M"], state["R"])
            if np.max(np.abs(norms - 1)) > 1e-6:
                raise _checks.InputError(
                    f"{argument} has squared weight norms {_checks.shown(norms)}, which is not "
                    "allowed: on the sphere diag(M P⁻¹ Mᵀ + R) must be 1 (within 1e-6)"
                )


@functools.cache  # loops on the host ask for it at every step, and it keeps what it has worked out
def _layout(width: int, anchors: tuple[str, ...], trained: bool) -> Layout:
    neurons = tuple(range(width))
    readout = (Statistic("v", ("neuron",), (neurons,), readout=True),) if trained else ()
    M = Statistic("M", ("neuron", "anchor"), (neurons, anchors))
    R = Statistic("R", ("neuron", "neuron_"), (neurons, neurons), symmetric=True, nonnegative=True)
    return Layout((*readout, M, R))


def _names(parameter: str, value: Any) -> tuple[str, ...]:
    # A string is a sequence of names too: anchors="mu" would mean two anchors, m and u.
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if (
        not names
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
    ):
        raise _checks.InputError(
            f"{parameter}={value!r} is not allowed: "
            f"{parameter} must be a list of one or more distinct names"
        )
    return names
