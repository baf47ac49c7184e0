"""Statistics over the runs of a result: mean, spread and standard error of the mean."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from sgdlimits import _checks


@dataclass(frozen=True)
class Ensemble:
    """Mean over runs of one statistic, its standard deviation over runs, its standard error.

    At each of the ``recorded`` times, those (as a mask over all) at which some run has a value.
    """

    recorded: np.ndarray
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
    diverged = dataset["diverged"].values == True  # noqa: E712 - NaN where joined results lack it
    return dataset.isel(run=np.flatnonzero(~diverged)), int(diverged.sum())


def ensemble(values: xr.DataArray) -> Ensemble | None:
    """Return the summary of a statistic with dims run and time, None if there are no runs.

    The error of the mean is from independent runs, never from the steps of one run. Runs that were
    joined may be recorded at different times: what is NaN is left out, and counts for nothing.
    """
    array = np.asarray(values.transpose("run", "time").values, dtype=float)
    if len(array) == 0:
        return None
    counts = np.sum(~np.isnan(array), axis=0)
    recorded = counts > 0
    array, counts = array[:, recorded], counts[recorded]
    mean = np.nansum(array, axis=0) / counts
    squares = np.nansum((array - mean) ** 2, axis=0)
    spread = np.sqrt(squares / np.maximum(counts - 1, 1))
    return Ensemble(recorded, mean=mean, deviation=spread, error=spread / np.sqrt(counts))


def describe(word: str, count: int, diverged: int) -> str:
    """Return the legend's text for ``count`` runs, with the number that diverged.

    >>> describe("mean of", 97, 3)
    'mean of 97 runs (3 diverged)'
    """
    lost = f" ({diverged} diverged)" if diverged else ""
    if count == 0:
        return f"no run left{lost}"
    return (f"{word} {count} runs" if count > 1 else "one run") + lost
