"""How the summary statistics of a task are laid out, and what makes arrays of them a state.

Everything that flattens, labels, saves, draws or validates statistics asks the layout. It works on
NumPy arrays and on JAX arrays, traced ones included.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks

_NEGATIVE = 1e-9  # a smallest eigenvalue above minus this, relative to the size, is rounding


@dataclasses.dataclass(frozen=True)
class Statistic:
    """One summary statistic: a number, a vector or a matrix.

    Args:
        name: such as "R".
        dims: names of its axes, such as ("neuron", "neuron_"); none for a number.
        labels: coordinate values along each axis.
        symmetric: a matrix equal to its transpose; only its upper triangle is a free coordinate.
        nonnegative: a number (or each entry of a vector) that is not negative, or a symmetric
            matrix that is positive semidefinite.
        readout: whether it is part of the readout, which may move with a step of its own.

    >>> Statistic("R", ("neuron", "neuron_"), ((0, 1), (0, 1)), symmetric=True).flat_names
    ('R[0,0]', 'R[0,1]', 'R[1,1]')
    """

    name: str
    dims: tuple[str, ...] = ()
    labels: tuple[tuple[Any, ...], ...] = ()
    symmetric: bool = False
    nonnegative: bool = False
    readout: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """One length per axis."""
        return tuple(len(labels) for labels in self.labels)

    @functools.cached_property
    def entries(self) -> tuple[np.ndarray, ...]:
        """Index arrays of the free entries, in the order of the flat coordinates."""
        if self.symmetric:
            return np.triu_indices(self.shape[0])
        return tuple(index.ravel() for index in np.indices(self.shape))

    @functools.cached_property
    def places(self) -> np.ndarray:
        """Of every entry of a symmetric matrix, its number among the free ones."""
        places = np.zeros(self.shape, int)
        places[self.entries] = np.arange(len(self.entries[0]))
        return np.maximum(places, places.T)

    @functools.cached_property
    def flat_names(self) -> tuple[str, ...]:
        """Names of the free entries: "m", "v[0]", "M[0,mu]", "R[0,1]"."""
        if not self.shape:
            return (self.name,)
        words = [
            [str(labels[i]) for i in index]
            for labels, index in zip(self.labels, self.entries, strict=True)
        ]
        return tuple(f"{self.name}[{','.join(parts)}]" for parts in zip(*words, strict=True))


@dataclasses.dataclass(frozen=True)
class Layout:
    """The statistics of a task in the order of their flat coordinates."""

    statistics: tuple[Statistic, ...]

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each statistic, by name."""
        return {statistic.name: statistic.shape for statistic in self.statistics}

    @functools.cached_property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of each statistic."""
        return {statistic.name: statistic.dims for statistic in self.statistics}

    @functools.cached_property
    def coords(self) -> dict[str, list[Any]]:
        """Coordinate values along every axis that a statistic has."""
        return {
            dim: list(labels)
            for statistic in self.statistics
            for dim, labels in zip(statistic.dims, statistic.labels, strict=True)
        }

    @functools.cached_property
    def symmetric(self) -> list[str]:
        """Names of the symmetric matrices."""
        return [statistic.name for statistic in self.statistics if statistic.symmetric]

    @property
    def kinds(self) -> dict[str, list[str]]:
        """What results note of the statistics: their names, and those of symmetric matrices."""
        return {"states": list(self.shapes), "symmetric": self.symmetric}

    @functools.cached_property
    def nonnegative(self) -> list[str]:
        """Flat names of what cannot be negative: the diagonals of Gram matrices among them."""
        return [
            name
            for statistic in self.statistics
            if statistic.nonnegative
            for name, *index in zip(statistic.flat_names, *statistic.entries, strict=True)
            if not statistic.symmetric or index[0] == index[1]
        ]

    @functools.cached_property
    def of_readout(self) -> np.ndarray:
        """Of every flat coordinate, whether it is part of the readout."""
        counts = [len(statistic.flat_names) for statistic in self.statistics]
        return np.repeat([statistic.readout for statistic in self.statistics], counts)

    @functools.cached_property
    def coordinates(self) -> list[str]:
        """Flat names of all free entries, in order."""
        return [name for statistic in self.statistics for name in statistic.flat_names]

    def indices(self, dim: str, label: Any) -> np.ndarray:
        """Positions among the flat coordinates of all entries with this label along an axis.

        An entry of a symmetric matrix belongs to both of its indices, whatever its second axis is
        called.
        """
        chosen = []
        for statistic in self.statistics:
            mine = np.zeros(len(statistic.flat_names), dtype=bool)
            for axis, name in enumerate(statistic.dims):
                if name == dim or (statistic.symmetric and statistic.dims[0] == dim):
                    mine |= statistic.entries[axis] == statistic.labels[axis].index(label)
            chosen.append(mine)
        return np.flatnonzero(np.concatenate(chosen))

    # --- flat coordinates -----------------------------------------------------------------------

    def ravel(self, state: Mapping[str, Any]) -> Float[Array | np.ndarray, "*lead n"]:
        """Flatten a state; of symmetric matrices only the upper triangle is kept.

        Arrays may have leading axes. NumPy gives NumPy, without a program to compile.
        """
        values = [state[statistic.name] for statistic in self.statistics]
        xp: Any = jnp if any(isinstance(value, jax.Array) for value in values) else np
        parts = []
        for statistic, value in zip(self.statistics, values, strict=True):
            array = xp.asarray(value)
            lead = array.shape[: array.ndim - len(statistic.shape)]
            parts.append(array[(..., *statistic.entries)].reshape(*lead, -1))
        return xp.concatenate(parts, axis=-1)

    def unravel(
        self, vector: Float[Array | np.ndarray, "*lead n"]
    ) -> dict[str, Float[Array | np.ndarray, "..."]]:
        """The state that flattens to ``vector``, or states to vectors along leading axes."""
        state, start = {}, 0
        for statistic in self.statistics:
            size = len(statistic.flat_names)
            part = vector[..., start : start + size]
            start += size
            if statistic.symmetric:
                state[statistic.name] = part[..., statistic.places]
            else:
                state[statistic.name] = part.reshape((*part.shape[:-1], *statistic.shape))
        return state

    # --- what makes it a state ------------------------------------------------------------------

    def smallest(self, state: Mapping[str, Any]) -> Float[Array | np.ndarray, ""]:
        """The smallest number or eigenvalue among the statistics that must not be negative."""
        chosen = [statistic for statistic in self.statistics if statistic.nonnegative]
        traced = any(isinstance(state[statistic.name], jax.Array) for statistic in chosen)
        xp: Any = jnp if traced else np
        values = [(statistic, xp.asarray(state[statistic.name])) for statistic in chosen]
        least = [
            xp.min(xp.linalg.eigvalsh(value) if statistic.symmetric else value)
            for statistic, value in values
        ]
        return xp.asarray(xp.min(xp.stack([xp.asarray(xp.inf), *least])))

    def clip(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The nearest state: negative numbers and eigenvalues become zero where they must not be.

        Arrays may have leading axes; what is not finite stays as it is.
        """
        return {
            statistic.name: _clipped(statistic, state[statistic.name])
            if statistic.nonnegative
            else state[statistic.name]
            for statistic in self.statistics
        }

    def check(self, state: Mapping[str, np.ndarray], argument: str) -> None:
        """Raise InputError if a state with the right names and shapes cannot occur."""
        for statistic in self.statistics:
            name, value = statistic.name, state[statistic.name]
            given = f"{argument}[{name!r}]={_checks.shown(value)} is not allowed: {name} must be"
            if statistic.symmetric and not np.allclose(
                value, np.swapaxes(value, -1, -2), rtol=1e-9, atol=1e-12
            ):
                raise _checks.InputError(f"{given} symmetric")
            if not statistic.nonnegative:
                continue
            if not statistic.symmetric:
                if np.any(value < 0):
                    raise _checks.InputError(f"{given} >= 0")
                continue
            smallest = np.min(np.linalg.eigvalsh(value))
            if smallest < -_NEGATIVE * max(1e-3, np.max(np.abs(value))):
                raise _checks.InputError(
                    f"{given} positive semidefinite (its smallest eigenvalue is {smallest:.3g})"
                )


def _clipped(statistic: Statistic, value: Any) -> Any:
    if statistic.symmetric:
        return clipped(value)
    return value.__array_namespace__().where(value < 0, 0.0, value)


def clipped(value: Any) -> Any:
    """The nearest positive semidefinite matrix; leading axes may be there, NaN stays as it is."""
    xp = value.__array_namespace__()
    finite = xp.all(xp.isfinite(value), axis=(-2, -1), keepdims=True)
    values, vectors = xp.linalg.eigh(xp.where(finite, value, 0.0))
    positive = (vectors * xp.maximum(values, 0.0)[..., None, :]) @ xp.swapaxes(vectors, -1, -2)
    below = xp.any(values < 0, axis=-1)[..., None, None]
    return xp.where(below, positive, value)  # untouched where there is nothing to mend
