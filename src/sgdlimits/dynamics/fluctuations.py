"""How far single runs stray from the limit: the Gaussian fluctuations along a solution.

To first order √dim·(u − ū) is a linear SDE along the solution ū, with covariance

    dC/dt = J C + C Jᵀ + Σ,    J = ∇h(ū), Σ = Σ(ū), C(0) = 0.
"""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.dynamics.model import Model
from sgdlimits.dynamics.rescaled import LinearSDE


def deviations(
    model: Model, coordinates: list[str], path: Float[Array, "t n"], times: np.ndarray
) -> np.ndarray:
    """Standard deviations of √dim·(u − ū) at every time, in the coordinates of the path.

    Between two times J and Σ are their means at both ends, and the transition is exact.
    """
    jacobians, diffusions = (np.asarray(x) for x in _along(model, path))
    covariance = np.zeros(jacobians.shape[1:])
    found = [np.diag(covariance)]
    for k, span in enumerate(np.diff(times)):
        both = (jacobians[k] + jacobians[k + 1]) / 2, (diffusions[k] + diffusions[k + 1]) / 2
        transition, noise = LinearSDE(coordinates, *both).transition(float(span))
        covariance = transition @ covariance @ transition.T + noise
        found.append(np.diag(covariance))
    return np.sqrt(np.maximum(found, 0.0))


@eqx.filter_jit
def _along(
    model: Model, path: Float[Array, "t n"]
) -> tuple[Float[Array, "t n n"], Float[Array, "t n n"]]:
    return jax.lax.map(lambda u: (model.jacobian(u), model.diffusion(u)), path)
