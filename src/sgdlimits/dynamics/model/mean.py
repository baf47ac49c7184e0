"""What a quantity is on average over fresh samples, as a function of the flat statistics."""

import abc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks, _cores
from sgdlimits._compiled import compiled
from sgdlimits._progress import progress
from sgdlimits._types import Metric

Vector = Float[Array, " n"]
Given = Float[Array | np.ndarray, " n"]  # a vector that is not traced
Rows = Float[Array | np.ndarray, "q n"]

RISK, ERROR = "risk", "error"
ROOMS = (8, 64, 512)  # vectors that a program has room for
TOGETHER = 32  # vectors at once: their small matrices are taken apart together


class Mean(eqx.Module):
    """A population mean: the risk, the 0–1 error, or what somebody's own metric is on average."""

    # --- must implement -------------------------------------------------------------------------

    @abc.abstractmethod
    def at(self, vector: Vector) -> Float[Array, ""]:
        """The mean at a state."""

    # --- only needed where it is a sum over quadrature nodes ------------------------------------

    @property
    def exact(self) -> bool:
        """Whether it is known in closed form."""
        return True

    def suited(self, vectors: Rows, rtol: float, nodes: float) -> "Mean":
        """The same by the cheapest rule that is accurate to rtol at these vectors; else the best.

        No rule takes more time than so many random nodes.
        """
        return self

    def errors(self, vectors: Rows) -> Float[np.ndarray, " q"]:
        """Estimated errors at some vectors, due to quadrature."""
        return np.zeros(len(vectors))

    def estimate(self, vector: Given) -> tuple[float, float]:
        """The mean at one vector, and its error."""
        return float(self.table(vector[None])[0]), float(self.errors(vector[None])[0])

    # --- given ----------------------------------------------------------------------------------

    def table(self, vectors: Rows) -> Float[np.ndarray, " q"]:
        """The mean at every vector.

        Three programs serve any number of rows: for eight of them, 64, and 512, which threads take
        in turn.
        """
        rows, room = np.asarray(vectors), next((n for n in ROOMS if n >= len(vectors)), ROOMS[-1])
        chunks = [rows[i : i + room] for i in range(0, len(rows), room)]
        program = _long if room == ROOMS[-1] else _brief

        def one(chunk: np.ndarray) -> np.ndarray:
            with jax.enable_x64(True):  # a setting of each thread
                padded = chunk[np.minimum(np.arange(room), len(chunk) - 1)]
                values = np.asarray(program(self, jnp.asarray(padded)))[: len(chunk)]
            advance(1)
            return values

        with progress("averages", len(chunks)) as advance:
            first = one(chunks[0])  # compiled here, or each of the threads would compile the same
            with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
                return np.concatenate([first, *pool.map(one, chunks[1:])])


def name_of(metric: Metric) -> str:
    """What a metric is called: "risk", "error", or the name of a function."""
    if isinstance(metric, str):
        return _checks.choice("metric", metric, (RISK, ERROR))
    if not callable(metric):
        raise _checks.InputError(
            f"metric={metric!r} is not allowed: metric must be 'risk', 'error' or a function of "
            "(fields, readout, label)"
        )
    name: Any = getattr(metric, "__name__", "metric")
    return name if str(name).isidentifier() else "metric"  # a lambda has no name


def _at_each(mean: Mean, vectors: Array) -> Array:
    return jax.lax.map(mean.at, vectors, batch_size=min(TOGETHER, len(vectors)))


_brief, _long = compiled(_at_each), eqx.filter_jit(_at_each)
