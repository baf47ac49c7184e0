"""Which starts go where: the probability of reaching each rest point or set of them."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import beta

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, State, StateLike, WholeNumber
from sgdlimits.dynamics.flow import ends_of
from sgdlimits.dynamics.flow.init import flat
from sgdlimits.dynamics.model import Limit, Model, as_state
from sgdlimits.dynamics.rest.roots import are_roots, polish
from sgdlimits.dynamics.rest.search import describe
from sgdlimits.dynamics.rest.sets import on_rings, rest_sets
from sgdlimits.tasks.base import Task

ARRIVED = 0.1  # an end farther than this from rest, relative to 1 + its size, has not arrived
NOWHERE = -1


class Basins(NamedTuple):
    """Where each start ends, and a description of every basin."""

    reached: np.ndarray  # for each start the number of the basin, −1 if it did not arrive
    labels: list[Any]
    states: list[State]  # a rest point in each basin
    stability: list[str]
    dimension: list[int]


@double_precision
def basins(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike | xr.Dataset | Callable[[int, int], StateLike],
    time: Number = 200.0,
    *,
    into: Callable[[State], Hashable] | None = None,
    count: WholeNumber = 4096,
    seed: WholeNumber = 0,
    confidence: Number = 0.95,
) -> xr.Dataset:
    """The probability of reaching each rest point, or connected set of them.

    Every start is followed for ``time`` and then to the rest point next to it. Starts near a
    rest point that is unstable may still be on their way: see ``stability``, and take more time.

    Args:
        init: the law of the starts: states along a leading axis; or a function of
            (count, seed) that returns such states; or the result of ``simulate``, whose end
            points are followed, so that SGD in finite dimension is sorted in the same way.
        time: how long to follow them, in units of dim/step samples.
        into: sort by this label of the rest point that is reached, not by connected sets.
        count: how many starts to draw if ``init`` is a function.
        seed: given to that function.
        confidence: of the exact binomial intervals.

    Returns:
        A Dataset over ``basin``, most probable first: ``probability``, ``low``, ``high``,
        ``hits``, ``stability``, ``kernel_dimension`` and the statistics of one rest point;
        and over ``run`` the basin that it ``reached``, −1 where a start did not come to rest.

    >>> import numpy as np, sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> starts = {"m": np.array([-0.1, 0.1, 0.2, 0.3]), "r2": np.ones(4)}
    >>> basins = limit.basins(starts, time=30.0)
    >>> basins.m.values.round(6), basins.probability.values
    (array([ 1., -1.]), array([0.75, 0.25]))
    """
    self.check_constant_step("basins")
    time, share = _checks.positive("time", time), _checks.fraction("confidence", confidence)
    count = _checks.integer("count", count, least=1)
    seed = _checks.integer("seed", seed, least=0)
    starts = _starts(self.task, init, count, seed)
    vectors = flat(self.model, starts, len(next(iter(starts.values()))))
    model = self.cheaper(vectors, "at the starts")
    ends = ends_of(model, vectors, time)
    arrived = jnp.asarray(ends[np.all(np.isfinite(ends), axis=1)])
    fine = self.suited(arrived, smooth=True)[0] if len(arrived) else model
    sorted_ends = _sorted(fine, model, ends, into)
    return _summary(self.task, sorted_ends, share, self.provenance | {"time": time, "seed": seed})


def _starts(task: Task, init: Any, count: int, seed: int) -> State:
    """The states that a law stands for: given, drawn, or where runs have ended."""
    if isinstance(init, xr.Dataset):
        if "run" not in init.dims or not set(task.shapes) <= set(init.data_vars):
            raise _checks.InputError(
                f"init={dict(init.sizes)} is not allowed: a Dataset must hold runs, "
                f"over time or at its end, of the statistics {list(task.shapes)}"
            )
        ends = init.isel(time=-1) if "time" in init.dims else init
        dims = task.layout.dims
        return {name: ends[name].transpose("run", *dims[name]).values for name in task.shapes}
    states = init(count, seed) if callable(init) else init
    if not isinstance(states, Mapping) or set(states) != set(task.shapes):
        given = list(states) if isinstance(states, Mapping) else type(states).__name__
        raise _checks.InputError(
            f"init={given} is not allowed: init must be states along a leading axis (a dict of "
            f"{list(task.shapes)}), a function of (count, seed) that returns them, or runs"
        )
    sizes = {np.shape(value)[:1] for value in states.values()}
    size = next(iter(sizes), ())
    if len(sizes) != 1 or any(
        np.ndim(states[name]) != len(shape) + 1 for name, shape in task.shapes.items()
    ):
        shapes = {name: np.shape(states[name]) for name in task.shapes}
        raise _checks.InputError(
            f"init of shapes {shapes} is not allowed: every statistic must have one leading "
            "axis, the same for all"
        )
    return task.check_state(states, runs=size[0], argument="init")


def _sorted(
    fine: Model, model: Model, ends: np.ndarray, into: Callable[[State], Hashable] | None
) -> Basins:
    """Sort ends of long solutions by the connected set of rest points they are close to.

    ``model`` has the drift that was followed, ``fine`` the one in which rest points are described.

    Basins are sorted by how many starts reach them. ``into`` names basins by its own label of the
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
        members, home = rest_sets(model, roots, on_rings(model, roots))
        labels: list[Any] = list(range(len(members)))
    else:
        states = as_state(model.task.layout.unravel(np.asarray(roots)))
        names = [into({name: x[i] for name, x in states.items()}) for i in range(len(roots))]
        labels = list(dict.fromkeys(names))
        home = np.array([labels.index(name) for name in names])
        members = [roots[home == basin] for basin in range(len(labels))]
    order = np.argsort(-np.bincount(home, minlength=len(labels)), kind="stable")
    reached[finite] = np.argsort(order)[home]
    points = [describe(fine, polish(fine, members[basin][:1])) for basin in order]
    return Basins(
        reached=reached,
        labels=list(range(len(order))) if into is None else [labels[basin] for basin in order],
        states=[point.state for point in points],
        stability=[point.stability for point in points],
        dimension=[point.kernel_dimension for point in points],
    )


def _summary(task: Task, basins: Basins, confidence: float, attrs: Mapping[str, Any]) -> xr.Dataset:
    """Probabilities with intervals, and what is known of every basin, as a Dataset."""
    total = len(basins.reached)
    counts = np.bincount(basins.reached[basins.reached >= 0], minlength=len(basins.labels))
    low, high = exact_interval(counts, total, confidence)
    values: dict[str, Any] = {
        "probability": counts / total,
        "low": low,
        "high": high,
        "hits": counts,
        "stability": np.array(basins.stability, dtype=str),
        "kernel_dimension": np.array(basins.dimension, dtype=int),
    }
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(values, ("basin",))
    for name, shape in task.shapes.items():
        values[name] = np.array([state[name] for state in basins.states]).reshape(-1, *shape)
        dims[name] = ("basin", *task.layout.dims[name])
    values["reached"] = basins.reached
    dims["reached"] = ("run",)
    coords = {"basin": basins.labels, "run": np.arange(total)} | task.layout.coords
    lost = int(np.sum(basins.reached == NOWHERE))
    extra = {"kind": "basins", "starts": total, "not_arrived": lost, "confidence": confidence}
    attrs = {**attrs, **extra}
    return results.build(values, dims, coords, attrs, **task.layout.kinds)


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
