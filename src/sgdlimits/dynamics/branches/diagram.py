"""Bifurcation diagrams: all rest points of the effective dynamics while one parameter moves."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, Numbers, StateLike, WholeNumber, Word
from sgdlimits._warn import warn
from sgdlimits.dynamics.branches.continuation import MOST_POINTS, Curve, Tracer
from sgdlimits.dynamics.branches.moving import MovingModel, changed, moving_model
from sgdlimits.dynamics.branches.special_points import Examined, examine
from sgdlimits.dynamics.model import Limit, as_state
from sgdlimits.dynamics.rest import FixedPoint, fixed_points
from sgdlimits.dynamics.rest.walk import connected

SEARCHES = (0.03, 0.34, 0.67, 0.98)  # positions in the range, away from round numbers
APART = 1e-5  # rest points closer than this are the same


class Branch(NamedTuple):
    """A curve of rest points, or of rings of them, with what happens along it."""

    tracer: Tracer
    curve: Curve
    points: list[Examined]


@double_precision
def bifurcations(  # noqa: D417 - a method: self needs no word
    self: Limit,
    parameter: Word,
    low: Number,
    high: Number,
    *,
    init: StateLike | None = None,
    search_at: Numbers | Number | None = None,
    seed: WholeNumber = 0,
    count: WholeNumber = 64,
) -> xr.Dataset:
    r"""Follow the rest points h(u; p) = 0 and their stability while a parameter p moves.

    Rest points are searched for at a few values of p; each curve of them is followed both ways by
    pseudo-arclength, through its folds, until it leaves [low, high], closes, or ends: where it
    stops being a state, or at a jump of the drift of a noiseless ReLU network. Of a ring of rest
    points one member is followed.

    Assumes that the drift is smooth in u and p, up to jumps where the field of a noiseless ReLU
    neuron is zero; Sobol quadrature of kinks (ReLU networks of more than four noisy fields) is not.
    A curve that exists at none of the values in ``search_at``, or that no start leads to, is
    missed. All other parameters, and the step unless it is the one that moves, are those of the
    limit.

    Args:
        parameter: name of a real parameter of the task, such as "snr", "ridge", "precision" or
            "noise"; or "step".
        low: least value of the parameter.
        high: largest value; where it is more than ten times ``low``, steps are even in log p.
        init: states from which rest points are searched for at each value in ``search_at``, along
            a leading axis; random ones by default.
        search_at: values of the parameter at which to search; four of them by default.
        seed: of the random starts.
        count: how many random starts.

    Returns:
        A Dataset over ``branch`` and ``point``, in order along the branch, padded with NaN and "".
        Its variables are the statistics; coordinates at each point are the parameter under its
        name, ``growth`` (largest real part of an eigenvalue of the drift's Jacobian), ``stability``
        as in ``fixed_points`` and ``special``: "fold", "branch" (another branch crosses), "hopf",
        "end" or "". ``kernel_dimension`` of a branch is the dimension of its rings, 0 for points.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3))
    >>> diagram = limit.bifurcations("snr", 2.0, 5.0, init={"m": [1.0], "r2": [1.0]})
    >>> fold = diagram.snr.values[diagram.special.values == "fold"]
    >>> float(abs(fold[0] - sl.theory.spiked_tensor.critical_snr(3))) < 1e-9
    True
    """
    self.check_constant_step("bifurcations")
    task, seed = self.learned, _checks.integer("seed", seed, least=0)
    family = moving_model(self, parameter, low, high)
    values = _search_values(family, parameter, search_at)
    branches: list[Branch] = []
    with progress("following rest points", len(values)) as advance:
        for value in values:
            limit = Limit(*changed(task, self.moves, parameter, value), self.rtol, self.nodes)
            points = fixed_points(limit, init, seed=seed, count=count)
            if points and not branches:
                family = _suited(self, family, limit, points)
            for point in points:
                for state in point.orbit:
                    x = np.append(limit.ravel(state), family.position(value))
                    if not any(_passes(branch, x) for branch in branches):
                        branches += _followed(family, x, point.kernel_dimension)
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
        "rtol": self.rtol,
        "nodes": self.nodes,
        "seed": seed,
        **self.moves.words,
    }
    if parameter != "step":
        attrs["step"] = self.step
    return _dataset(family, branches, parameter, attrs)


def _suited(
    diagram: Limit, family: MovingModel, limit: Limit, points: Sequence[FixedPoint]
) -> MovingModel:
    """The same family with expectations as accurate as asked for at some rest points."""
    if diagram.nodes is not None:
        return family
    vectors = jnp.asarray([limit.ravel(point.state) for point in points])
    model, _ = family.first.suited(vectors, diagram.rtol, smooth=True)
    return eqx.tree_at(lambda family: family.first, family, model)


def _search_values(family: MovingModel, parameter: str, search_at: Any) -> list[float]:
    if search_at is None:
        return [float(family.value(position)) for position in SEARCHES]
    values = np.atleast_1d(_checks.array("search_at", search_at, None))
    low, high = float(family.low), float(family.high)
    if values.ndim > 1 or values.size == 0 or np.any((values < low) | (values > high)):
        raise _checks.InputError(
            f"search_at={_checks.shown(values)} is not allowed: "
            f"search_at must list values of {parameter} between low={low:g} and high={high:g}"
        )
    return values.tolist()


def _followed(family: MovingModel, x: np.ndarray, kernel: int) -> list[Branch]:
    tracer = Tracer(family, kernel)
    curve = tracer.curve(x)
    # a single point is no curve: the search took a near miss for a rest point
    return [Branch(tracer, curve, examine(tracer, curve))] if len(curve.points) > 1 else []


def _passes(branch: Branch, x: np.ndarray) -> bool:
    """Whether the branch passes through a rest point, or through the ring that it lies on."""
    fixed = np.eye(len(x))[-1]
    for before, after in itertools.pairwise(branch.curve.points):
        positions = before.x[-1], after.x[-1]
        if not min(positions) <= x[-1] <= max(positions):
            continue
        share = (
            (x[-1] - positions[0]) / (positions[1] - positions[0])
            if positions[0] != positions[1]
            else 0.0
        )
        guess = before.x + share * (after.x - before.x)
        near = branch.tracer.solve(before.x, np.append(guess[:-1], x[-1]), fixed)
        if near is not None and _same(branch.tracer, near.x, x):
            return True
    return False


def _same(tracer: Tracer, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two rest points at one value of the parameter are the same, or on the same ring."""
    close = APART * max(1.0, float(np.linalg.norm(other)))
    if not tracer.kernel:
        return bool(np.linalg.norm(other - one) < close)
    model = tracer.family.at(float(other[-1]))
    return connected(model, one[:-1], other[:-1], arrived=close)


def _warn(branches: list[Branch], parameter: str, values: list[float]) -> None:
    if not branches:
        searched = ", ".join(f"{value:.4g}" for value in values)
        warn(
            f"no rest point was found at {parameter} = {searched}: give init, or other values in "
            "search_at"
        )
    long = sum("long" in branch.curve.ends for branch in branches)
    if long:
        warn(f"{long} of {len(branches)} branches were cut short after {MOST_POINTS} points")


def _dataset(
    family: MovingModel, branches: list[Branch], parameter: str, attrs: dict[str, Any]
) -> xr.Dataset:
    task, shape = (
        family.first.task,
        (len(branches), max((len(b.points) for b in branches), default=0)),
    )
    layout = task.layout
    size = len(layout.coordinates)
    x = np.full((*shape, size + 1), np.nan)
    growth = np.full(shape, np.nan)
    stability, special = np.full(shape, "", "<U8"), np.full(shape, "", "<U8")
    for number, branch in enumerate(branches):
        for position, (point, spectrum, kind) in enumerate(branch.points):
            x[number, position] = point.x
            growth[number, position] = spectrum.values[0].real
            stability[number, position] = spectrum.stability
            special[number, position] = kind
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
        as_state(layout.unravel(x[..., :-1])),
        {name: over + dims for name, dims in layout.dims.items()},
        coords | layout.coords,
        attrs,
        **layout.kinds,
    )
