"""Results as a table: one row for each run and time, one column for each statistic."""

from typing import TYPE_CHECKING

import xarray as xr

from sgdlimits import _checks
from sgdlimits.results.dataset import select, statistics

if TYPE_CHECKING:  # it comes with xarray, which makes the table
    import pandas as pd


def to_frame(dataset: xr.Dataset) -> "pd.DataFrame":
    """Return a pandas DataFrame with one column for each statistic, by its flat name.

    Rows are labelled by the remaining dims, run and time, in that order: ``frame.loc[3]`` is run 3,
    ``frame.groupby("time").mean()`` the mean over runs. Of a symmetric matrix the upper triangle is
    there, so that no number is repeated.

    Args:
        dataset: a simulation, a solution, paths, or results joined over a parameter.

    >>> from sgdlimits.results import build
    >>> coords = {"run": [0, 1], "time": [0.0, 1.0], "anchor": ["mu", "nu"]}
    >>> M = [[[0.0, 0.1], [0.2, 0.3]], [[0.4, 0.5], [0.6, 0.7]]]
    >>> frame = to_frame(build({"M": M}, {"M": ("run", "time", "anchor")}, coords, {}))
    >>> list(frame.columns), list(frame.index.names), float(frame.loc[(1, 0.0), "M[nu]"])
    (['M[mu]', 'M[nu]'], ['run', 'time'], 0.5)
    """
    if not isinstance(dataset, xr.Dataset):
        raise _checks.InputError(
            f"dataset of type {type(dataset).__name__} is not allowed: it must be a Dataset"
        )
    names = statistics(dataset)
    if not names:
        raise _checks.InputError(
            f"dataset={list(dataset.data_vars)} is not allowed: it has no statistics over time"
        )
    columns = {name: select(dataset, name).reset_coords(drop=True).drop_attrs() for name in names}
    rows = dict.fromkeys(str(dim) for column in columns.values() for dim in column.dims)
    order = [dim for dim in rows if dim not in ("run", "time")]
    order += [dim for dim in ("run", "time") if dim in rows]
    return xr.Dataset(columns).to_dataframe(order)
