"""Level sets of the statistics: move parameters until u has a given value."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from sgdlimits.dynamics.triple import Params, Triple

CORRECTIONS = 40
REACHED = 1e-7  # how near, relative to 1 + |u|


@eqx.filter_jit
def onto_level(
    triple: Triple, dim: int, states: Params, targets: Float[Array, "states k"]
) -> tuple[Params, Bool[Array, " states"]]:
    r"""Each state (along a leading axis) moved to u(x) = its target, and which have arrived.

    Newton's method along the gradients of the statistics, x ← x − Jᵀ(JJᵀ)⁻¹(u(x) − u*), which is
    the shortest way and leaves all other directions alone. J is k × p and JJᵀ k × k, p the number
    of parameters. A state that does not arrive is given back as it was.
    """
    unravel = ravel_pytree(jax.tree.map(lambda x: x[0], states))[1]

    def statistics(x: Float[Array, " p"]) -> Float[Array, " k"]:
        return triple.statistics(unravel(x), dim)

    def move(params: Params, target: Float[Array, " k"]) -> tuple[Params, Array]:
        def newton(x: Array, _: None) -> tuple[Array, None]:
            value, pull = jax.vjp(statistics, x)
            J = jax.vmap(pull)(jnp.eye(len(value)))[0]
            gram = J @ J.T
            ridge = 1e-12 * jnp.trace(gram) * jnp.eye(len(value))  # statistics may depend
            change = J.T @ jnp.linalg.solve(gram + ridge, value - target)
            # far from its target Newton's method overshoots: at most half of the norm at a time
            size = jnp.linalg.norm(change) / (0.5 * jnp.linalg.norm(x) + 1e-300)
            return x - change / jnp.maximum(size, 1.0), None

        start = ravel_pytree(params)[0]
        x, _ = jax.lax.scan(newton, start, None, length=CORRECTIONS)
        distance = jnp.max(jnp.abs(statistics(x) - target) / (1 + jnp.abs(target)))
        arrived = (distance < REACHED) & jnp.all(jnp.isfinite(x))
        return unravel(jnp.where(arrived, x, start)), arrived

    return jax.vmap(move)(states, targets)
