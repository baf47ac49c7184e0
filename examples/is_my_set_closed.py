"""Is my set of summary statistics closed? Robust regression with sensors of three kinds.

A user's own JAX loss. Half of the coordinates of x are quiet, the others are noisy, and five of
them are faulty. The overlap with the teacher and the norm of the rest look like a natural pair of
statistics, but how fast the norm changes depends on which half it sits in: the check says so. It
accepts the set with one norm for each half: the faulty sensors still make a difference at every
dim, but it decays.
"""

import jax
import jax.numpy as jnp

import sgdlimits as sl


def deviation(dim):
    """Of each coordinate: quiet, noisy, faulty."""
    place = jnp.arange(dim)
    healthy = jnp.where(place < dim // 2, 0.5, 2.0)
    return jnp.where(place < dim - 5, healthy, 4.0)


def sample(key, dim):
    """The teacher is the first axis; labels have heavy-tailed noise."""
    inputs, noise = jax.random.split(key)
    x = deviation(dim) * jax.random.normal(inputs, (dim,))
    return {"x": x, "y": x[0] + jax.random.laplace(noise) / 2}


def loss(w, datum):
    """Pseudo-Huber loss of the residual."""
    return jnp.sqrt(1 + (datum["y"] - w @ datum["x"]) ** 2) - 1


def init(key, dim):
    """Small weights, so that the first thing learned is the teacher."""
    return jax.random.normal(key, (dim,)) / jnp.sqrt(dim)


def one_norm(w, dim):  # noqa: ARG001
    """Overlap and squared norm of the rest."""
    return jnp.stack([w[0], w[1:] @ w[1:]])


def two_norms(w, dim):
    """Overlap and one squared norm for each half."""
    quiet, noisy = w[1 : dim // 2], w[dim // 2 :]
    return jnp.stack([w[0], quiet @ quiet, noisy @ noisy])


sets = {
    "overlap, norm": (one_norm, ["overlap", "norm"]),
    "overlap, quiet norm, noisy norm": (two_norms, ["overlap", "quiet", "noisy"]),
}
STEP, STATES, LEVELS = 0.5, 32, 2
found = {}
for title, (statistics, names) in sets.items():
    triple = sl.Triple(loss, sample, statistics, init, names)
    found[title] = sl.closability(triple, (50, 200, 800), step=STEP, states=STATES, levels=LEVELS)
    print(found[title].report)
figure = sl.plot.closability(found)
caption = f"robust regression · step {STEP} · {STATES} states at each of {LEVELS} levels"
sl.plot.style.put_caption(figure, caption)
sl.plot.save(figure, "pictures/is_my_set_closed.png")

incomplete, complete = found.values()
assert incomplete.open_statistics == ("norm",)
assert complete.closed
# and 'closed' is not for lack of resolution: the remainder is seen, and it is small in the end
noisy, error = (part[:, 2] / complete.mean_square[:, 2] for part in complete.unexplained)
assert noisy[0] > 10 * error[0]
assert noisy[-1] < noisy[0] / 5
