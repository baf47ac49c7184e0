"""Which starts go where: the probability of reaching each rest point or set of them."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import beta

from sgdlimits import results
from sgdlimits._types import State
from sgdlimits.dynamics.fixed_points import describe
from sgdlimits.dynamics.model import Model, as_state
from sgdlimits.dynamics.rest_sets import rest_sets
from sgdlimits.dynamics.roots import are_roots, polish
from sgdlimits.tasks import Task

ARRIVED = 0.1  # an end farther than this from rest, relative to 1 + its size, has not arrived
NOWHERE = -1


class Basins(NamedTuple):
    """Where each start ends, and a description of every place."""

    reached: np.ndarray  # for each start the number of the place, −1 if it did not arrive
    labels: list[Any]
    states: list[State]  # a rest point in each place
    stability: list[str]
    dimension: list[int]


def basins(
    fine: Model, model: Model, ends: np.ndarray, into: Callable[[State], Hashable] | None = None
) -> Basins:
    """Sort ends of long solutions by the connected set of rest points they are close to.

    ``model`` has the drift that was followed, ``fine`` the one in which places are described.

    Places are sorted by how many starts reach them. ``into`` names places by its own label of the
    rest point that each start reaches, in place of connected sets.
    """
    reached = np.full(len(ends), NOWHERE)
    finite = np.flatnonzero(np.all(np.isfinite(ends), axis=1))
    if len(finite):
        roots = polish(model, ends[finite])
        near = np.linalg.norm(roots - ends[finite], axis=1)
        near /= 1 + np.linalg.norm(roots, axis=1)
        rest = are_roots(model, roots) & (near < ARRIVED)
        finite, roots = finite[rest], roots[rest]
    if len(finite) == 0:
        return Basins(reached, [], [], [], [])
    if into is None:
        members, home = rest_sets(model, roots)
        labels: list[Any] = list(range(len(members)))
    else:
        states = as_state(jax.vmap(model.unravel)(jnp.asarray(roots)))
        names = [into({name: x[i] for name, x in states.items()}) for i in range(len(roots))]
        labels = list(dict.fromkeys(names))
        home = np.array([labels.index(name) for name in names])
        members = [roots[home == place] for place in range(len(labels))]
    order = np.argsort(-np.bincount(home, minlength=len(labels)), kind="stable")
    reached[finite] = np.argsort(order)[home]
    found = [describe(fine, polish(fine, members[place][:1])) for place in order]
    return Basins(
        reached=reached,
        labels=list(range(len(order))) if into is None else [labels[place] for place in order],
        states=[point.state for point in found],
        stability=[point.stability for point in found],
        dimension=[point.kernel_dimension for point in found],
    )


def summary(task: Task, found: Basins, confidence: float, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Probabilities with intervals, and what is known of every place, as a Dataset."""
    total = len(found.reached)
    counts = np.bincount(found.reached[found.reached >= 0], minlength=len(found.labels))
    low, high = exact_interval(counts, total, confidence)
    values: dict[str, Any] = {
        "probability": counts / total,
        "low": low,
        "high": high,
        "hits": counts,
        "stability": np.array(found.stability, dtype=str),
        "kernel_dimension": np.array(found.dimension, dtype=int),
    }
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(values, ("place",))
    for name, shape in task.shapes.items():
        values[name] = np.array([state[name] for state in found.states]).reshape(-1, *shape)
        dims[name] = ("place", *task.dims[name])
    values["reached"] = found.reached
    dims["reached"] = ("run",)
    coords = {"place": found.labels, "run": np.arange(total)} | task.labels_of_dims
    lost = int(np.sum(found.reached == NOWHERE))
    extra = {"kind": "basins", "starts": total, "not_arrived": lost, "confidence": confidence}
    return results.build(values, dims, coords, {**attrs, **extra})


def exact_interval(
    counts: np.ndarray, total: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Clopper–Pearson interval of proportions: covers the truth at least as often as it says.

    >>> low, high = exact_interval(np.array([0, 5]), 10, 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    tail = (1 - confidence) / 2
    low = np.where(counts > 0, beta.ppf(tail, np.maximum(counts, 1), total - counts + 1), 0.0)
    rest = np.maximum(total - counts, 1)
    high = np.where(counts < total, beta.ppf(1 - tail, counts + 1, rest), 1.0)
    return low, high
