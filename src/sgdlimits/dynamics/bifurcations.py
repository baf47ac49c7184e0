"""Bifurcation diagrams: all rest points of the effective dynamics while one parameter moves."""

import itertools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, StateLike, WholeNumber, Word
from sgdlimits.dynamics.continuation import MOST_POINTS, Curve, Tracer
from sgdlimits.dynamics.effective import DEFAULT_NODES, effective_dynamics
from sgdlimits.dynamics.family import Family, changed, make_family
from sgdlimits.dynamics.model import as_state, coordinates
from sgdlimits.dynamics.special_points import Examined, examine
from sgdlimits.tasks.base import Task

SEARCHES = (0.03, 0.34, 0.67, 0.98)  # places in the range, away from round numbers
APART = 1e-5  # rest points closer than this are the same
STRIDE, WALK_STEPS = 0.2, 40  # a walk along a ring, in units of its distance from the origin


class Branch(NamedTuple):
    """A curve of rest points, or of rings of them, as it was followed and as it was examined."""

    tracer: Tracer
    curve: Curve
    points: list[Examined]


@double_precision
def bifurcations(
    task: Any,
    parameter: Word,
    low: Number,
    high: Number,
    step: Number = 1.0,
    *,
    starts: StateLike | None = None,
    at: Any = None,
    seed: WholeNumber = 0,
    count: WholeNumber = 64,
    nodes: WholeNumber = DEFAULT_NODES,
) -> xr.Dataset:
    r"""Follow the rest points h(u; p) = 0 and their stability while a parameter p moves.

    Rest points are searched for at a few values of p; each curve of them is followed both ways by
    pseudo-arclength, through its folds, until it leaves [low, high], closes, or ends: where it
    stops being a state, or at a jump of the drift of a noiseless ReLU network. Of a ring of rest
    points one member is followed.

    Assumes that the drift is smooth in u and p, up to jumps where the field of a noiseless ReLU
    neuron is zero; Sobol quadrature of kinks (ReLU networks of more than four noisy fields) is not.
    A curve that exists at none of the values in ``at``, or that no start leads to, is missed.

    Args:
        task: what is learned.
        parameter: name of a real parameter of the task, such as "snr", "ridge", "precision" or
            "noise"; or "step".
        low: least value of the parameter.
        high: largest value; where it is more than ten times ``low``, steps are even in log p.
        step: c in the learning rate c/dim.
        starts: states from which rest points are searched for at each value in ``at``, along a
            leading axis; random ones by default.
        at: values of the parameter at which to search; four of them by default.
        seed: of the random starts.
        count: how many random starts.
        nodes: quadrature nodes for expectations that have no closed form.

    Returns:
        A Dataset over ``branch`` and ``point``, in order along the branch, padded with NaN and "".
        Its variables are the statistics; coordinates at each point are the parameter under its
        name, ``growth`` (largest real part of an eigenvalue of the drift's Jacobian), ``stability``
        as in ``fixed_points`` and ``special``: "fold", "branch" (another branch crosses), "hopf",
        "end" or "". ``kernel_dimension`` of a branch is the dimension of its rings, 0 for points.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.SpikedTensor(order=3)
    >>> diagram = sl.bifurcations(task, "snr", 2.0, 5.0, starts={"m": [1.0], "r2": [1.0]})
    >>> fold = diagram.snr.values[diagram.special.values == "fold"]
    >>> float(abs(fold[0] - sl.theory.spiked_tensor.critical_snr(3))) < 1e-9
    True
    """
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    nodes, seed = _checks.integer("nodes", nodes, least=2), _checks.integer("seed", seed, least=0)
    family = make_family(task, parameter, low, high, step, nodes)
    values = _search_values(family, parameter, at)
    branches: list[Branch] = []
    with progress("following rest points", len(values)) as advance:
        for value in values:
            limit = effective_dynamics(*changed(task, step, parameter, value), nodes)
            for found in limit.fixed_points(starts, seed, count):
                x = np.append(limit.ravel(found.state), family.place(value))
                if not any(_passes(branch, x) for branch in branches):
                    branches += _followed(family, x, found.kernel_dimension)
            advance(1.0)
    _warn(branches, parameter, values)
    others = {name: x for name, x in task.parameters().items() if name != parameter}
    attrs = {
        "kind": "bifurcations",
        "task": type(task).__name__,
        "parameters": others,
        "parameter": parameter,
        "low": float(low),
        "high": float(high),
        "searched": values,
        "nodes": nodes,
        "seed": seed,
    }
    if parameter != "step":
        attrs["step"] = float(step)
    return _dataset(family, branches, parameter, attrs)


def _search_values(family: Family, parameter: str, at: Any) -> list[float]:
    if at is None:
        return [float(family.value(place)) for place in SEARCHES]
    values = np.atleast_1d(_checks.array("at", at, None))
    low, high = float(family.low), float(family.high)
    if values.ndim > 1 or values.size == 0 or np.any((values < low) | (values > high)):
        raise _checks.InputError(
            f"at={_checks.shown(values)} is not allowed: "
            f"at must list values of {parameter} between low={low:g} and high={high:g}"
        )
    return values.tolist()


def _followed(family: Family, x: np.ndarray, kernel: int) -> list[Branch]:
    tracer = Tracer(family, kernel)
    curve = tracer.curve(x)
    # a single point is no curve: the search took a near miss for a rest point
    return [Branch(tracer, curve, examine(tracer, curve))] if len(curve.points) > 1 else []


def _passes(branch: Branch, x: np.ndarray) -> bool:
    """Whether the branch passes through a rest point, or through the ring that it lies on."""
    fixed = np.eye(len(x))[-1]
    for before, after in itertools.pairwise(branch.curve.points):
        places = before.x[-1], after.x[-1]
        if not min(places) <= x[-1] <= max(places):
            continue
        share = (x[-1] - places[0]) / (places[1] - places[0]) if places[0] != places[1] else 0.0
        guess = before.x + share * (after.x - before.x)
        here = branch.tracer.solve(before.x, np.append(guess[:-1], x[-1]), fixed)
        if here is not None and _connected(branch.tracer, here.x, x):
            return True
    return False


def _connected(tracer: Tracer, here: np.ndarray, goal: np.ndarray) -> bool:
    """Whether two rest points at one value of the parameter are the same, or on the same ring."""
    fixed = np.eye(len(goal))[-1]
    for _ in range(WALK_STEPS if tracer.kernel else 1):
        way = goal - here
        if np.linalg.norm(way) < APART * max(1.0, float(np.linalg.norm(goal))):
            return True
        stride = STRIDE * float(np.linalg.norm(here[:-1]))
        ahead = here + way * min(1.0, stride / float(np.linalg.norm(way)))
        found = tracer.solve(here, ahead, fixed)
        if found is None or np.linalg.norm(goal - found.x) > 0.99 * np.linalg.norm(way):
            return False
        here = found.x
    return False


def _warn(branches: list[Branch], parameter: str, values: list[float]) -> None:
    if not branches:
        searched = ", ".join(f"{value:.4g}" for value in values)
        _tell(
            f"no rest point was found at {parameter} = {searched}: give starts, or other values at"
        )
    long = sum("long" in branch.curve.ends for branch in branches)
    if long:
        _tell(f"{long} of {len(branches)} branches were cut short after {MOST_POINTS} points")


def _tell(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=5)


def _dataset(
    family: Family, branches: list[Branch], parameter: str, attrs: dict[str, Any]
) -> xr.Dataset:
    task, shape = (
        family.first.task,
        (len(branches), max((len(b.points) for b in branches), default=0)),
    )
    size = len(coordinates(task))
    x = np.full((*shape, size + 1), np.nan)
    growth = np.full(shape, np.nan)
    stability, special = np.full(shape, "", "<U8"), np.full(shape, "", "<U8")
    for number, branch in enumerate(branches):
        for position, (point, spectrum, kind) in enumerate(branch.points):
            x[number, position] = point.x
            growth[number, position] = spectrum.values[0].real
            stability[number, position] = spectrum.stability
            special[number, position] = kind
    vectors = jnp.asarray(x[..., :-1])
    over: tuple[str, ...] = ("branch", "point")
    coords: dict[str, Any] = {
        "branch": np.arange(shape[0]),
        "point": np.arange(shape[1]),
        parameter: (over, np.asarray(family.value(jnp.asarray(x[..., -1])))),
        "growth": (over, growth),
        "stability": (over, stability),
        "special": (over, special),
        "kernel_dimension": ("branch", np.array([b.tracer.kernel for b in branches], dtype=int)),
    }
    return results.build(
        as_state(jax.vmap(jax.vmap(family.first.unravel))(vectors)),
        {name: over + dims for name, dims in task.dims.items()},
        coords | task.labels_of_dims,
        attrs,
    )
