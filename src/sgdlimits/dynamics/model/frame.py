"""How the fields of a multi-index task depend on independent normal variables at a state."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits.tasks.multi_index import MultiIndexFamily

JaxState = dict[str, Float[Array, "..."]]

PRIVATE = 1e-7  # noise of its own that every field is given, relative to its size: no 0/0
FLOOR = 1e-10  # the same where a field vanishes
ROUNDS = 4  # of orthogonal iteration
LEAST = 1e-15  # eigenvalues of R below this part of the largest one are rounding


class Frame(NamedTuple):
    """Centred fields are F z, z ~ N(0, I); what they are made of has the mean V z given z.

    The fields are y = s if labels depend on the component alone, else y = (a, s): the anchor fields
    a come first, and last, if it decides where something switches, the label noise. They are made
    of independent normals η: a = center + Aη₁ and s = inward·a + Cη₂.
    """

    inward: Float[Array, "K r"]  # s = inward · a + s⊥
    anchors: Float[Array, "r r"]  # A, a square root of the covariance of the anchor fields
    orthogonal: Float[Array, "K K"]  # C, a square root of the covariance of s⊥
    factor: Float[Array, "m m"]  # F, its first columns the directions of largest variance
    mixing: Float[Array, "n m"]  # V
    order: Int[Array, " m"] | None  # rows of F in this order are lower triangular

    def parts(self, z: Float[Array, "m q"]) -> tuple[Float[Array, "r q"], Float[Array, "K q"]]:
        """Means of the centred anchor fields and of s⊥ given z."""
        of_anchors, of_orthogonal = self.maps()
        return of_anchors @ z, of_orthogonal @ z

    def maps(self) -> tuple[Float[Array, "r m"], Float[Array, "K m"]]:
        """What takes z to these means."""
        r, K = len(self.anchors), len(self.orthogonal)
        return self.anchors @ self.mixing[:r], self.orthogonal @ self.mixing[r : r + K]

    def spread(self) -> Float[Array, "r r"]:
        """A square root of the covariance of the anchor fields given z."""
        r = len(self.anchors)
        known = self.mixing[:r] @ self.mixing[:r].T
        rest = self.anchors @ (jnp.eye(r) - known) @ self.anchors.T
        return square_root((rest + rest.T) / 2)


def frame_of(
    task: MultiIndexFamily,
    state: JaxState,
    *,
    arranged: Callable[[Float[Array, "m n"]], Int[Array, " m"]] | None = None,
    noise: bool = False,
) -> Frame:
    """The frame at a state.

    Args:
        task: what is learned.
        state: where.
        arranged: tells from what fields are made of in which order they are taken: then F is lower
            triangular. By default its columns follow the principal directions of the fields'
            correlations.
        noise: whether the label noise is one of the fields.
    """
    K, r = task.width, len(task.anchors)
    inward = inward_of(task, state["M"])
    A = square_root(jnp.asarray(task.gram / task.precision + task.spike))
    C = square_root(state["R"] / task.precision)
    made_of = jnp.concatenate([inward @ A, C], axis=1)
    if task.labels is None:
        first = jnp.concatenate([A, jnp.zeros((r, K))], axis=1)
        made_of = jnp.concatenate([first, made_of])
    if noise:
        made_of = jax.scipy.linalg.block_diag(made_of, jnp.ones((1, 1)))
    order = None if arranged is None else arranged(made_of)
    return Frame(inward, A, C, *_whitened(made_of, order), order)


def inward_of(task: MultiIndexFamily, M: Float[Array, "K r"]) -> Float[Array, "K r"]:
    """M P⁻¹: coefficients of the parts of the weights within the span of the anchors.

    By Cholesky: a general inverse, with its permutations, is a tenth of a program to compile.
    """
    factor = jnp.linalg.cholesky(jnp.asarray(task.gram))
    return jax.scipy.linalg.cho_solve((factor, True), M.T).T


def _whitened(B: Float[Array, "m n"], order: Int[Array, " m"] | None) -> tuple[Array, Array]:
    """F and V with F Vᵀ = B and orthonormal columns of V."""
    m, n = B.shape
    size = jax.lax.stop_gradient(jnp.sqrt(jnp.sum(B**2, axis=1)) + FLOOR)
    scaled = jnp.concatenate([B / size[:, None], PRIVATE * jnp.eye(m)], axis=1)
    fixed = jax.lax.stop_gradient(scaled)
    turn = _principal(fixed) if order is None else jnp.eye(m)[:, order]
    V, upper = _qr((turn.T @ scaled).T)
    return size[:, None] * (turn @ upper.T), V[:n]


def _principal(B: Float[Array, "m n"]) -> Float[Array, "m m"]:
    """Nearly the eigenvectors of BBᵀ, by falling eigenvalue, but smooth in B where they cross.

    Where all eigenvalues are equal, the first direction is one in which all fields move alike.
    """
    m = len(B)
    waves = np.cos(np.pi * (np.arange(m)[:, None] + 0.55) * np.arange(m) / m)
    turn = jnp.asarray(np.linalg.qr(waves + 0.05 * np.sin(np.arange(m * m)).reshape(m, m))[0])
    return jax.lax.fori_loop(0, ROUNDS, lambda _, turn: _qr(B @ (B.T @ turn))[0], turn)


def _qr(matrix: Float[Array, "n m"]) -> tuple[Float[Array, "n m"], Float[Array, "m m"]]:
    """The QR decomposition with a positive diagonal: a smooth function."""
    Q, R = jnp.linalg.qr(matrix)
    signs = jax.lax.stop_gradient(jnp.where(jnp.diag(R) < 0, -1.0, 1.0))
    return Q * signs, signs[:, None] * R


@jax.custom_jvp
def square_root(covariance: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """C with CCᵀ = covariance, by its eigenvectors; never singular, by less than rounding."""
    vectors, root = _eigen_root(covariance)
    return vectors * root


def _eigen_root(covariance: Float[Array, "m m"]) -> tuple[Array, Array]:
    """Eigenvectors by falling eigenvalue, and the roots of these."""
    values, vectors = jnp.linalg.eigh(covariance)
    values = jnp.maximum(values, LEAST * values[-1]) + FLOOR**2
    return vectors[:, ::-1], jnp.sqrt(values[::-1])


@square_root.defjvp
def _square_root_jvp(
    primals: tuple[Float[Array, "m m"]], tangents: tuple[Float[Array, "m m"]]
) -> tuple[Array, Array]:
    r"""Let dC = U X with X lower triangular: whatever C is, dC Cᵀ + C dCᵀ = dR.

    Eigenvalues may be equal: which root of R is taken does not matter, so its eigenvectors need not
    be differentiated. Only a growing eigenvalue that was zero makes dC large.
    """
    (covariance,), (change,) = primals, tangents
    vectors, root = _eigen_root(covariance)
    inner = vectors.T @ change @ vectors / root
    return vectors * root, vectors @ (jnp.tril(inner, -1) + jnp.diag(jnp.diag(inner)) / 2)
