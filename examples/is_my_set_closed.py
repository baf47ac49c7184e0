"""Is my set of summary statistics closed? Robust regression on data with two noise levels.

A user's own JAX loss. Half of the coordinates of x have variance 1, the other half variance 4. The
overlap with the teacher and the norm of the rest look like a natural pair of statistics, but how
fast the norm changes depends on which half it sits in. The check says so, and accepts the set
with one norm for each half.

Usage: python examples/is_my_set_closed.py [FOLDER]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import sgdlimits as sl

DIMS = (50, 100, 200)


def loss(w, datum):
    """Pseudo-Huber loss of the residual."""
    return jnp.sqrt(1 + (datum["y"] - w @ datum["x"]) ** 2) - 1


def sample(key, dim):
    """The teacher is the first axis; labels have heavy-tailed noise."""
    inputs, noise = jax.random.split(key)
    deviation = jnp.where(jnp.arange(dim) < dim // 2, 1.0, 2.0)
    x = deviation * jax.random.normal(inputs, (dim,))
    return {"x": x, "y": x[0] + 0.5 * jax.random.t(noise, 3.0)}


def init(key, dim):
    """Small weights, so that the first thing learned is the teacher."""
    return jax.random.normal(key, (dim,)) / jnp.sqrt(dim)


def naive(w, dim):  # noqa: ARG001
    """Overlap and squared norm of the rest."""
    return jnp.stack([w[0], w[1:] @ w[1:]])


def complete(w, dim):
    """Overlap and one squared norm for each noise level."""
    low, high = w[1 : dim // 2], w[dim // 2 :]
    return jnp.stack([w[0], low @ low, high @ high])


def main(folder: Path) -> None:
    """Check both sets, draw the unexplained variance against dim, assert the verdicts."""
    sets = {
        "naive": sl.Triple(loss, sample, naive, init, ["overlap", "norm"]),
        "complete": sl.Triple(loss, sample, complete, init, ["overlap", "norm low", "norm high"]),
    }
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    found = {}
    for panel, (title, triple) in zip(panels, sets.items(), strict=True):
        found[title] = sl.closability(triple, DIMS, step=0.5, time=2.0, samples=8000)
        print(found[title].report)
        for i, name in enumerate(found[title].names):
            part = found[title].mean_square[:, i]
            value = found[title].unexplained.value[:, i] / part
            error = found[title].unexplained.error[:, i] / part
            panel.errorbar(DIMS, value, 2 * error, marker="o", capsize=3, label=name)
        panel.axhline(0.0, color="0.5", linewidth=0.8)
        panel.set(title=f"{title} set", xlabel="dim", xscale="log", xticks=DIMS)
        panel.set_xticks(DIMS, [str(dim) for dim in DIMS])
        panel.minorticks_off()
        panel.legend(frameon=False)
    panels[0].set_ylabel("unexplained part of the velocity\n(variance / mean square, ± 2 s.e.)")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "is_my_set_closed.png", dpi=200)

    assert found["complete"].closed
    assert "norm" in found["naive"].open_statistics
    assert np.all(found["complete"].unexplained.value[-1] < 0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
