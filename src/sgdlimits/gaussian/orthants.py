"""Expectations of functions with kinks on the coordinate planes, as accurate as of smooth ones."""

import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float

TINY, NEARLY_ONE = 1e-300, 1 - 1.2e-16  # where the normal quantile stays finite


def orthant_nodes(
    mean: Float[Array, " dim"],
    factor: Float[Array, "dim dim"],
    nodes: Float[Array, " order"],
    weights: Float[Array, " order"],
) -> tuple[Float[Array, "q dim"], Float[Array, "q dim"], Float[Array, " q"]]:
    r"""Nodes for x = mean + Lη, η ~ N(0, I), that respect the planes x_i = 0.

    One coordinate after the other is split at zero. Given the ones before it, x_i has sign ε with
    probability p = Φ(ε m_i / L_ii), m_i its conditional mean, and then η_i = −ε Φ⁻¹(Φ(z) p) for a
    standard normal z. A Gauss rule for z sees a smooth function of z even where the integrand has
    kinks or jumps at x_i = 0, and both nodes and weights are smooth in mean and L.

    Args:
        mean: of x.
        factor: lower triangular L with positive diagonal.
        nodes: of a one-dimensional rule for a standard normal.
        weights: of that rule.

    Returns:
        x, η and weights for each of the (2·order)^dim nodes.

    >>> rule = (jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5]))
    >>> x, eta, weights = orthant_nodes(jnp.array([0.3]), jnp.array([[1.0]]), *rule)
    >>> bool(jnp.abs(weights.sum() - 1) < 1e-6), x.shape
    (True, (4, 1))
    """
    dim, share = factor.shape[0], ndtr(nodes)
    signs = jnp.array([1.0, -1.0])[:, None]
    eta = jnp.zeros((1, 0))
    total = jnp.ones(1)
    for i in range(dim):
        center = (mean[i] + eta @ factor[i, :i]) / factor[i, i]
        side = ndtr(signs * center[:, None, None])
        new = -signs * ndtri(jnp.clip(side * share, TINY, NEARLY_ONE))
        each = new.shape[1] * new.shape[2]
        total = (total[:, None, None] * side * weights).ravel()
        eta = jnp.concatenate([jnp.repeat(eta, each, axis=0), new.reshape(-1, 1)], axis=1)
    return mean + eta @ factor.T, eta, total
