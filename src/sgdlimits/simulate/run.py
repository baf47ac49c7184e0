"""``simulate``: many runs of SGD on one task, as a labelled Dataset."""

import os
from contextlib import nullcontext

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._events import EventLike, event_of
from sgdlimits._moves import MomentumLike, Moves, StepLike, moves
from sgdlimits._precision import double_precision
from sgdlimits._types import Flag, Number, Numbers, StateLike, WholeNumber, Word
from sgdlimits.simulate import checkpoint as checkpoints
from sgdlimits.simulate.chunks import run_chunks
from sgdlimits.simulate.clock import Marks, steps_at
from sgdlimits.simulate.dataset import passages, to_dataset
from sgdlimits.simulate.going_on import End, end_of
from sgdlimits.simulate.setting import setting_of, starts_of
from sgdlimits.simulate.training import increasing_times
from sgdlimits.tasks.base import Task


@double_precision
def simulate(
    task: Task,
    dim: WholeNumber = 2000,
    *,
    runs: WholeNumber = 100,
    time: Number = 10.0,
    step: StepLike = 1.0,
    batch: WholeNumber = 1,
    momentum: MomentumLike = 0.0,
    readout_step: Number = 1.0,
    normalised: Flag = False,
    sphere: Word = "rescaled",
    seed: WholeNumber = 0,
    init: StateLike | None = None,
    method: Word = "chain",
    points: WholeNumber = 201,
    times: Numbers | None = None,
    until: EventLike | None = None,
    continue_from: xr.Dataset | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> xr.Dataset:
    """Run SGD with learning rate δ = step/dim, many times independently.

    ``method="chain"`` simulates the summary statistics themselves, exactly in law, at a cost that
    does not depend on ``dim``. ``method="direct"`` simulates all coordinates of the weights.
    ``method="population"`` takes the same steps along the expected gradient, SGD of endless
    batches: expectations are sums over nodes, and a start at which they are wrong by more than one
    per cent of a sample's gradient is refused. Later states are not judged: where neurons have come
    together or weights are large, compare with ``limit.solve``, which chooses nodes at every state.

    A step at time t takes time δ = c(t)/dim, whatever the batch: time is the sum of all δ.

    Args:
        task: what is learned.
        dim: the data dimension d.
        runs: number of independent runs.
        time: length of a run, in units of dim/step steps; with ``continue_from``, of what is added
            to the time at which those runs ended, which is that of a whole number of steps.
        step: c in δ = c/dim; a JAX function c(t) of time, or pairs (time, step) from each of which
            on that step is taken, the first at time 0.
        batch: how many fresh samples the gradient of a step is averaged over.
        momentum: β in [0, 1): V ← βV + δ∇L, W ← W − V; or ("slow", κ) for β = 1 − κδ and
            U ← βU + δ∇L, W ← W − δU. The velocity is zero at the start.
        readout_step: ε ≥ 0; a trained readout moves with εδ.
        normalised: gradients, without the ridge's, are divided by their norm, times √dim, before
            they are made tangential.
        sphere: on spherical tasks, "rescaled": rows of W are divided by their norms after a step;
            "tangential": besides, gradients are made tangential before it.
        seed: of all randomness. Run i is the same whatever ``runs``, ``points`` and cores.
        init: the state all runs start from, or one state per run along a leading axis; by default
            each run starts from its own random state (``task.random_state``). It may be a Dataset
            without time, such as ``runs.isel(time=-1)``. If that has been simulated with the same
            seed, noise is that of another segment: seeds are pairs (seed, segment), and the
            segment is one more than that of the Dataset. A dict of arrays does not tell where it
            is from: then give another seed.
        method: "chain", "direct" or "population".
        points: number of equally spaced times recorded, at most one per step.
        times: the times to be recorded themselves, increasing, in place of ``time`` and ``points``;
            each is rounded to a whole number of steps.
        until: an event at which a run stops, as of :func:`first_passage`:
            ``("M[0,teacher]", ">", 0.3)``, ``("risk", "<", 0.1)``, the same with a JAX function of
            the state in place of a name, or such a function alone, which crosses zero from either
            side. It is looked at after every step. From then on the statistics of a run stay as
            they are.
        continue_from: what ``simulate`` returned for the same task, dim, runs, moves, seed and
            method: runs go on from its end, to the last bit as if they had not been interrupted.
            :func:`extend` takes all of that from the Dataset.
        checkpoint: a folder, empty or new, in which the state of the work is kept while it lasts:
            if the process is killed, the same call goes on from there. It remains when all is done.

    Returns:
        A Dataset with the statistics by name over ``run`` and ``time``, ``diverged`` per run and
        ``diverged_at``, the first recorded time at which a run was no longer finite. The coordinate
        ``samples`` along ``time`` counts the samples seen, and ``internal_state`` along ``run`` is
        what ``continue_from`` needs. With ``until``: ``passage_step`` and ``passage_time`` of the
        event, ``censored`` for runs to which it did not happen, and ``at_start`` for those of which
        it held at the start.

    >>> import sgdlimits as sl
    >>> runs = sl.simulate(sl.tasks.SpikedTensor(snr=2.0), dim=500, runs=8, time=2.0, points=5)
    >>> dict(runs.sizes)
    {'run': 8, 'time': 5}
    """
    how = moves(
        step=step,
        batch=batch,
        momentum=momentum,
        readout_step=readout_step,
        normalised=normalised,
        sphere=sphere,
    )
    setting = setting_of(task, dim, how, method, seed, init)
    runs = _checks.integer("runs", runs, least=1)
    before = None
    if continue_from is None:
        starts = starts_of(setting, runs, init)
    else:
        if init is not None:
            raise _checks.InputError(
                "init is not allowed together with continue_from: runs go on from where they are"
            )
        before = end_of(continue_from, setting, runs)
        setting, starts = setting._replace(segment=before.segment), before.states
    event = None if until is None else event_of(until, setting.layout)
    if event is not None:
        event.warn_of_sides(event.heights(starts))
    marks = _marks(how, setting.dim, time, points, times, before)
    done, ends = (0, None) if before is None else (before.steps, before.ends)
    whole = np.array([done, *marks.steps[marks.steps > done]])
    folder = (
        nullcontext()
        if checkpoint is None
        else checkpoints.opened(checkpoint, setting, starts, whole, event, ends)
    )
    with folder as kept:
        recorded = run_chunks(setting, starts, whole, event=event, ends=ends, checkpoint=kept)
    values = recorded.values
    if marks.steps[0] <= done:
        values = {name: np.concatenate([starts[name][:, None], values[name]], 1) for name in starts}
    told = {} if event is None else passages(setting, recorded, event, done, marks.times[-1])
    told = {f"passage_{name}" if name in ("step", "time") else name: x for name, x in told.items()}
    notes = {} if event is None else {"event": event.words}
    return to_dataset(setting, values, marks, told, notes, ends=recorded.ends)


def _marks(
    moves: Moves,
    dim: int,
    time: Number,
    points: WholeNumber,
    times: Numbers | None,
    before: End | None,
) -> Marks:
    """Steps and times that are recorded."""
    start = (0, 0.0) if before is None else (before.steps, before.time)
    if times is None:
        length = _checks.positive("time", time)
        count = _checks.integer("points", points, least=2)
        return steps_at(moves, dim, start[1] + np.linspace(0, length, count), "time", start)
    grid = increasing_times(times)
    if grid[0] < start[1] * (1 - 1e-9):
        raise _checks.InputError(
            f"times={_checks.shown(grid)} is not allowed: the runs to be continued have come to "
            f"time {start[1]:g}, and times must not be earlier"
        )
    return steps_at(moves, dim, grid, "times[-1]", start)
