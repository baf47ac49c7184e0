"""A task no paper treats: a two-layer tanh network with hinge loss on three Gaussian classes."""

import jax
import jax.numpy as jnp
import numpy as np

import sgdlimits as sl


def hinge(s, v, y):
    """One sample: local fields s = Wx, readout v, label y."""
    return jax.nn.relu(1 - y * jnp.sum(v * jnp.tanh(s)))


task = sl.tasks.MultiIndexTask(
    loss=hinge,
    width=2,
    anchors=["a", "b"],
    means=[[1, 0], [0, 1], [-1, -1]],
    labels=[1, -1, -1],
    precision=5.0,
    ridge=0.02,
    readout="trained",
)
start = task.random_state(dim=2000, seed=1)
runs = sl.simulate(task, dim=2000, runs=128, time=20.0, init=start)
limit = sl.effective_dynamics(task).solve(start, times=runs.time)
sl.plot.save(sl.plot.compare(runs, limit), "pictures/your_own_task.png")

gap = np.abs(runs.M.mean("run") - limit.M).max()
print(f"largest gap between mean and limit: {float(gap):.4f}")
assert gap < 0.03
