"""The parts of a tree of parameters, by name: how a user says which block of a matrix is meant.

A part is a leaf of the tree, or all leaves below a node. Its name is the path to it, whose steps
are joined by slashes: in ``{"hidden": [weight, bias], "out": weight}`` the parts are "hidden/0",
"hidden/1", "hidden" and "out". "all" is the whole tree.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks

ALL = "all"


def part_names(params: Any) -> list[str]:
    """Names of all leaves, of nodes with several leaves but not all, and "all"."""
    leaves_of = parts(params)
    leaves = [_name(path) for path, _ in _leaves(params) if path]
    several = [name for name, own in leaves_of.items() if 1 < len(own) < len(leaves_of[ALL])]
    return [*leaves, *several, ALL]


def parts(params: Any) -> dict[str, tuple[int, ...]]:
    """The name of every part, and the numbers of its leaves in the order of the tree."""
    by_path: dict[Any, tuple[int, ...]] = {}
    for number, (path, _) in enumerate(_leaves(params)):
        for length in range(1, len(path) + 1):
            by_path[path[:length]] = (*by_path.get(path[:length], ()), number)
    by_name: dict[str, tuple[int, ...]] = {}
    for path, numbers in by_path.items():
        name = _name(path)
        if name in by_name or name == ALL:
            raise _checks.InputError(
                f"params has a second part named {name!r}, which is not allowed: names of blocks "
                'must differ, and "all" is the whole tree'
            )
        by_name[name] = numbers
    return {**by_name, ALL: tuple(range(number + 1))}


def leaf_values(params: Any) -> list[np.ndarray]:
    """The leaves as float64, if all their entries are real and finite."""
    return [
        real_array(f"params at {_name(path)!r}" if path else "params", leaf).astype(float)
        for path, leaf in _leaves(params)
    ]


def real_array(name: str, values: Any) -> np.ndarray:
    """Values as an array of whole numbers or of float64, if all are real and finite."""
    try:
        array = np.asarray(values)
        if not jnp.issubdtype(array.dtype, np.integer) and array.dtype != bool:
            if not jnp.issubdtype(array.dtype, np.floating):
                raise TypeError(f"{array.dtype} is not real")
            array = array.astype(float)
    except (TypeError, ValueError) as error:
        raise _checks.InputError(
            f"{name} has entries that are not real numbers, which is not allowed"
        ) from error
    if not np.all(np.isfinite(array)):
        raise _checks.InputError(f"{name} has entries that are not finite, which is not allowed")
    return array


def _leaves(params: Any) -> list[tuple[Any, Any]]:
    """Paths and leaves, in the order of the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    if not leaves:
        raise _checks.InputError(
            f"params={params!r} is not allowed: it must have at least one array"
        )
    return leaves


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
