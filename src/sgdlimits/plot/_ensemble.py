"""Statistics over the runs of a result: mean, spread and standard error of the mean."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from sgdlimits import _checks


@dataclass(frozen=True)
class Ensemble:
    """Mean over runs of one statistic, its standard deviation over runs, its standard error."""

    time: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    error: np.ndarray


def finished(dataset: xr.Dataset) -> tuple[xr.Dataset, int]:
    """Return the runs that did not diverge, and how many did.

    A result without runs, such as a solution of the limit, counts as one run.
    """
    if "run" not in dataset.dims:
        dataset = dataset.drop_vars("run", errors="ignore").expand_dims("run")
    if "diverged" not in dataset:
        return dataset, 0
    if dataset["diverged"].dims != ("run",):
        others = [str(dim) for dim in dataset["diverged"].dims if dim != "run"]
        raise _checks.InputError(
            f"runs over {', '.join(others)} are not allowed: choose one entry by runs.sel"
        )
    diverged = dataset["diverged"].values.astype(bool)
    return dataset.isel(run=np.flatnonzero(~diverged)), int(diverged.sum())


def ensemble(values: xr.DataArray) -> Ensemble | None:
    """Return the summary of a statistic with dims run and time, None if there are no runs.

    The error of the mean is from independent runs, never from the steps of one run.
    """
    array = values.transpose("run", "time").values
    count = len(array)
    if count == 0:
        return None
    spread = array.std(axis=0, ddof=1) if count > 1 else np.zeros(array.shape[1])
    return Ensemble(
        time=values["time"].values,
        mean=array.mean(axis=0),
        deviation=spread,
        error=spread / np.sqrt(count),
    )


def describe(word: str, count: int, diverged: int) -> str:
    """Return the legend's text for ``count`` runs, with the number that diverged.

    >>> describe("mean of", 97, 3)
    'mean of 97 runs (3 diverged)'
    """
    lost = f" ({diverged} diverged)" if diverged else ""
    if count == 0:
        return f"no run left{lost}"
    return (f"{word} {count} runs" if count > 1 else "one run") + lost
