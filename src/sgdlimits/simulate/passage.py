"""``first_passage``: when an event happens to many runs of SGD."""

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._events import EventLike, event_of
from sgdlimits._moves import MomentumLike, StepLike, moves
from sgdlimits._precision import double_precision
from sgdlimits._types import Flag, Number, StateLike, WholeNumber, Word
from sgdlimits.simulate.chunks import run_chunks
from sgdlimits.simulate.clock import steps_at
from sgdlimits.simulate.dataset import passages
from sgdlimits.simulate.setting import setting_of, starts_of
from sgdlimits.tasks.base import Task


@double_precision
def first_passage(
    task: Task,
    event: EventLike,
    dim: WholeNumber = 2000,
    runs: WholeNumber = 1000,
    max_time: Number = 100.0,
    *,
    step: StepLike = 1.0,
    batch: WholeNumber = 1,
    momentum: MomentumLike = 0.0,
    readout_step: Number = 1.0,
    normalised: Flag = False,
    sphere: Word = "rescaled",
    seed: WholeNumber = 0,
    init: StateLike | None = None,
    method: Word = "chain",
) -> xr.Dataset:
    """Run SGD until an event happens, and tell for every run at which step it did.

    The event is looked at after every step; a run to which it has happened stands still. No
    trajectory is kept. Runs are those of ``simulate`` with the same arguments.

    Args:
        task: what is learned.
        event: ``("M[0,teacher]", ">", 0.3)``, ``("m", "<", 0.1)``, ``("risk", "<", 0.1)`` or
            ``("error", "<", 0.1)``, the same with a JAX function of the state, a dict of arrays, in
            place of a name, or such a function alone, which crosses zero from whichever side it
            starts on. Risk and error are population means, ``limit.quantity``: where they have no
            closed form they take much longer than a step.
        dim: the data dimension d.
        runs: number of independent runs.
        max_time: how long each is watched, in units of dim/step steps.
        step: c in δ = c/dim; this and the following are those of ``simulate``.
        batch: how many fresh samples the gradient of a step is averaged over.
        momentum: β, or ("slow", κ).
        readout_step: ε.
        normalised: whether gradients are divided by their norm.
        sphere: "rescaled" or "tangential".
        seed: of all randomness. Run i is the same whatever ``runs`` and cores.
        init: the state all runs start from, or one state per run along a leading axis.
        method: "chain", "direct" or "population".

    Returns:
        A Dataset over ``run``: ``step``, the number of steps taken when the event has happened,
        ``time``, the statistics then; ``censored`` for runs to which it has not happened, with the
        state at ``max_time``; ``at_start`` for those of which it held before the first step, with
        time 0; ``diverged`` for those that are no longer finite. Runs are censored when the
        quantity of the event ceases to be a number. :func:`sgdlimits.results.survival` estimates
        the law of the times, censored ones included, and :func:`sgdlimits.plot.survival` draws it.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.SpikedTensor(snr=2.0)
    >>> passage = sl.first_passage(task, ("m", ">", 0.5), dim=500, runs=64, max_time=4.0)
    >>> passage.time.dims, bool((passage.m > 0.5)[~passage.censored].all())
    (('run',), True)
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
    count = _checks.integer("runs", runs, least=1)
    read = event_of(event, setting.layout)
    longest = _checks.positive("max_time", max_time)
    marks = steps_at(how, setting.dim, np.array([0.0, longest]), "max_time")
    starts = starts_of(setting, count, init)
    read.warn_of_sides(read.heights(starts))
    recorded = run_chunks(setting, starts, marks.steps, event=read)
    end = float(marks.times[-1])
    told = passages(setting, recorded, read, 0, end)
    flags = results.divergence(recorded.values, np.array([end]))
    told["diverged"] = flags["diverged"]
    layout = setting.layout
    return results.build(
        told | {name: x[:, -1] for name, x in recorded.values.items()},
        {name: ("run", *dims) for name, dims in layout.dims.items()}
        | dict.fromkeys(told, ("run",)),
        {"run": np.arange(count)} | layout.coords,
        {"kind": "passage"} | setting.noted | {"event": read.words, "max_time": end},
        states=list(task.shapes),
        symmetric=layout.symmetric,
    )
