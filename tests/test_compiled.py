"""Programs that compile fast give the same numbers, alone or inside others."""

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits._compiled import compiled


@compiled
def wave(x: jax.Array, power: int = 2) -> jax.Array:
    return jnp.sin(x) ** power


def test_alone_and_inside_other_programs() -> None:
    x = np.linspace(0.0, 1.0, 5)
    with jax.enable_x64(True):
        points = jnp.asarray(x)
        results = [
            wave(points),
            jax.jit(wave)(points),
            jax.vmap(wave)(points),
            jax.jit(jax.vmap(lambda y: wave(y, power=2)))(points),
        ]
        slopes = jax.vmap(jax.jit(jax.grad(wave)))(points)
    for result in results:
        np.testing.assert_allclose(result, np.sin(x) ** 2, rtol=1e-14)
    np.testing.assert_allclose(slopes, np.sin(2 * x), rtol=1e-14)
