"""One dataset over a parameter that moves, in place of one dataset for each of its values."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, Word
from sgdlimits.results.dataset import parameters

_SAME = 1e-9  # relative: coordinates that differ by less are rounded differently, not others


def over(
    name: Word,
    values: Sequence[Number] | Sequence[Word] | np.ndarray,
    function: Callable[..., xr.Dataset],
    *others: Iterable[Any],
    fill: Flag = False,
) -> xr.Dataset:
    """Call a function for each value, as ``map`` does, and join its datasets along a new dim.

    The results must have the same variables, with the same dims and the same coordinates: where
    they do not, this is an error, unless ``fill`` says that missing entries become NaN. What is
    noted in the attributes stays there if it is the same for all values, and becomes a coordinate
    along the new dim if it is not, such as the seed.

    Args:
        name: of the new dim, such as ``"snr"``; it comes first.
        values: its labels, numbers or words, each once. ``math.inf`` is a number.
        function: of one value, returns a dataset.
        others: further arguments of the function, one for each value: to give each its own seed,
            ``over("snr", snrs, run, itertools.count(seed))`` calls ``run(snr, seed)``.
        fill: whether results may lack labels of a dim that others have, such as times. Floating
            point numbers are NaN there; anything else, such as ``diverged``, cannot be filled.

    >>> def overlaps(snr):
    ...     return xr.Dataset({"m": ("run", [snr, -snr])}, attrs={"dim": 100})
    >>> joined = over("snr", [0.8, 1.2], overlaps)
    >>> joined.m.dims, joined.m.sel(snr=1.2).values, joined.attrs
    (('snr', 'run'), array([ 1.2, -1.2]), {'dim': 100})
    """
    labels = _labels(name, values)
    rows = list(zip(values, *others, strict=False))
    if len(rows) < len(labels):
        raise _checks.InputError(
            f"others={len(rows)} is not allowed: there must be one for each of the "
            f"{len(labels)} values of {name}"
        )
    members = [function(*row) for row in rows]
    words = [f"{name}={label}" for label in labels]
    for word, member in zip(words, members, strict=True):
        if not isinstance(member, xr.Dataset):
            raise _checks.InputError(
                f"function returned {type(member).__name__} for {word}, which is not allowed: it "
                "must return a Dataset"
            )
        if name in member.variables or name in member.dims:
            raise _checks.InputError(
                f"name={name!r} is not allowed: the results of the function have a {name!r} already"
            )
    # what continues a simulation is no longer of use: there is one for each value
    members = [member.drop_vars("internal_state", errors="ignore") for member in members]
    members = [_aligned(members[0], member) for member in members]
    for word, member in zip(words, members, strict=True):
        _compare(members[0], member, words[0], word, fill=_checks.flag("fill", fill))
    joined = xr.concat(
        [member.drop_attrs(deep=False) for member in members],
        dim=xr.DataArray(labels, dims=name, name=name),
        data_vars="all",
        coords="different",
        compat="equals",
        join="outer" if fill else "exact",
    ).transpose(name, ...)
    return _with_attributes(joined, members, name)


def _labels(name: str, values: Any) -> np.ndarray:
    labels = np.asarray(values)
    number = labels.dtype.kind in "fiu" and not np.any(np.isnan(labels))
    if labels.ndim != 1 or len(labels) == 0 or not (number or labels.dtype.kind == "U"):
        raise _checks.InputError(
            f"values={_checks.shown(values)} is not allowed: values must be numbers, or words, for "
            f"the labels of {name}"
        )
    if len(np.unique(labels)) < len(labels):
        raise _checks.InputError(
            f"values={_checks.shown(values)} is not allowed: values of {name} must differ"
        )
    return labels


def _aligned(first: xr.Dataset, member: xr.Dataset) -> xr.Dataset:
    """The member with the coordinates of the first, where they are the same but for rounding."""
    near = {
        dim: first[dim]
        for dim in first.indexes
        if dim in member.indexes
        and first[dim].dtype.kind == "f"
        and first.sizes[dim] == member.sizes[dim]
        and np.allclose(first[dim], member[dim], rtol=_SAME, atol=0, equal_nan=True)
    }
    return member.assign_coords(near)


def _compare(first: xr.Dataset, member: xr.Dataset, one: str, other: str, *, fill: bool) -> None:
    """Raise an error that says in what the result for ``other`` differs from that for ``one``."""
    shapes = [{str(k): v.dims for k, v in part.data_vars.items()} for part in (first, member)]
    if shapes[0] != shapes[1]:
        apart = sorted({key for key, _ in set(shapes[0].items()) ^ set(shapes[1].items())})
        raise _checks.InputError(
            f"the results for {one} and {other} are not allowed: they differ in "
            f"{', '.join(apart)}; variables and their dims must be the same"
        )
    for dim in first.dims:
        labelled = dim in first.indexes and dim in member.indexes
        if labelled and first.indexes[dim].equals(member.indexes[dim]):
            continue
        if not labelled and first.sizes[dim] == member.sizes[dim]:
            continue
        sizes = f"{first.sizes[dim]} and {member.sizes[dim]} entries"
        if not fill or not labelled:
            hint = "fill=True makes what is missing NaN" if labelled else f"{dim} has no labels"
            raise _checks.InputError(
                f"the results for {one} and {other} are not allowed: they differ in {dim}, "
                f"{sizes}; {hint}"
            )
        solid = [k for k, v in first.data_vars.items() if dim in v.dims and v.dtype.kind != "f"]
        if solid:
            raise _checks.InputError(
                f"fill=True is not allowed for {solid[0]}: of type {first[solid[0]].dtype}, it "
                f"cannot be NaN where {dim} is missing, {sizes}"
            )


def _with_attributes(joined: xr.Dataset, members: list[xr.Dataset], name: str) -> xr.Dataset:
    """What all members share as attributes; what they do not, as coordinates along ``name``."""
    notes = [dict(member.attrs) for member in members]
    tasks = [parameters(member) for member in members]
    shared, moving = _split(notes)
    shared_parameters, moving_parameters = _split(tasks)
    for key, entries in (moving_parameters | moving).items():
        if key in (name, "parameters"):
            continue
        plain = all(isinstance(entry, int | float | str) for entry in entries)
        if plain and key not in joined.variables and key not in joined.dims:
            joined = joined.assign_coords({key: (name, np.array(entries))})
        else:
            shared[key] = json.dumps(entries, default=str)
    if any("parameters" in note for note in notes):
        shared["parameters"] = json.dumps(shared_parameters)
    return joined.assign_attrs(shared)


def _split(notes: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Entries that are the same in all dicts, and lists of those that are not."""
    keys = dict.fromkeys(key for note in notes for key in note)
    lists = {key: [note.get(key) for note in notes] for key in keys}
    same = {key: entries[0] for key, entries in lists.items() if _alike(entries)}
    return same, {key: entries for key, entries in lists.items() if key not in same}


def _alike(entries: list[Any]) -> bool:
    return len({json.dumps(entry, default=str) for entry in entries}) == 1
