"""Learning curves: a population mean at every state of a result."""

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._names import explained
from sgdlimits._precision import double_precision
from sgdlimits._types import Metric
from sgdlimits.dynamics.measures.at_state import WORK
from sgdlimits.dynamics.model import COARSE_NODES, model_of, name_of
from sgdlimits.tasks import Task

RTOL = 1e-5  # error of the mean, relative to that of absolute values
CHOSEN, JUDGED = 4, 8  # states for which a rule is chosen, and by which its error is judged


@explained
@double_precision
def measure(task: Task, dataset: xr.Dataset, metric: Metric = "risk") -> xr.Dataset:
    """Add what a metric is on average over fresh samples, at every state of a result.

    One quadrature rule serves all states: the cheapest with an error of 1e-5 at some of them, and
    the best that takes some ten seconds of one core if there is none. Its largest error at some of
    the states, one standard deviation, is noted.

    Args:
        task: whose data, loss and decisions are meant; its statistics are those of the result.
        dataset: a simulation, a solution, or paths: anything with the statistics of a task, over
            whatever other dims.
        metric: "risk", the population loss without the ridge; "error", the 0–1 error of the task's
            own decision rule; or a JAX function ``metric(fields, readout, label)`` of one sample.

    Returns:
        The dataset with one more variable, called "risk", "error" or as the function is, over
        ``run`` and ``time``, or whatever its statistics are over. Its attribute ``risk_error`` (or
        ``error_error``, ...) is the error that quadrature leaves. Runs that diverged have NaN.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.PhaseRetrieval()
    >>> runs = sl.simulate(task, dim=200, runs=8, step=0.1, time=10.0, points=3)
    >>> sl.measure(task, runs).risk.mean("run").values.round(2)
    array([1.99, 0.  , 0.  ])
    """
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    name = name_of(metric)
    over, vectors = _states(task, dataset, name)
    mean = model_of(task, step=1.0, nodes=COARSE_NODES).mean(metric)
    finite = np.flatnonzero(np.all(np.isfinite(vectors), axis=1))
    values, stated = np.full(len(vectors), np.nan), 0.0
    if len(finite):
        mean = mean.suited(vectors[_some(finite, CHOSEN)], RTOL, WORK / len(finite))
        stated = float(np.max(mean.errors(vectors[_some(finite, JUDGED)])))
        values[finite] = mean.table(vectors[finite])
    shape = [dataset.sizes[dim] for dim in over]
    return dataset.assign({name: (over, values.reshape(shape), {f"{name}_error": stated})})


def _states(task: Task, dataset: xr.Dataset, name: str) -> tuple[list[str], np.ndarray]:
    """What the statistics of a result are over, and their flat vectors."""
    layout = task.layout
    if not isinstance(dataset, xr.Dataset) or not set(layout.shapes) <= set(dataset.data_vars):
        given = list(dataset.data_vars) if isinstance(dataset, xr.Dataset) else dataset
        raise _checks.InputError(
            f"dataset={given!r} is not allowed: it must be a Dataset that holds "
            f"{', '.join(layout.shapes)}, the statistics of {type(task).__name__}"
        )
    for part, dims in layout.dims.items():
        sizes = {dim: dataset[part].sizes.get(dim) for dim in dims}
        if tuple(sizes.values()) != layout.shapes[part]:
            raise _checks.InputError(
                f"dataset[{part!r}] with the sizes {dict(dataset[part].sizes)} is not allowed: "
                f"{part} of this task has {dict(zip(dims, layout.shapes[part], strict=True))}"
            )
    if name in layout.shapes or name in dataset.coords or name in dataset.dims:
        raise _checks.InputError(
            f"metric={name} is not allowed: the dataset has another {name}; give the function "
            "another name"
        )
    parts = xr.broadcast(
        *(dataset[part].reset_coords(drop=True) for part in layout.dims),
        exclude=list(layout.coords),
    )
    over = [str(dim) for dim in parts[0].dims if dim not in layout.coords]
    if parts[0].size == 0:  # no runs
        return over, np.zeros((0, len(layout.coordinates)))
    pairs = zip(layout.dims.items(), parts, strict=True)
    states = {name: part.transpose(*over, *dims).values for (name, dims), part in pairs}
    return over, np.reshape(layout.ravel(states), (-1, len(layout.coordinates)))


def _some(rows: np.ndarray, count: int) -> np.ndarray:
    """A few of them, evenly spread, the first and the last among them."""
    return rows[np.linspace(0, len(rows) - 1, count).round().astype(int)]
