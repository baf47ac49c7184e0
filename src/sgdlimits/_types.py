"""Array aliases and the letters used in shapes.

Shape letters, everywhere: ``K`` neurons, ``r`` anchors, ``k`` mixture components,
``n`` flat coordinates, ``q`` quadrature nodes, ``d`` data dimension, ``runs`` independent runs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

State = dict[str, np.ndarray]
"""Summary statistics by name, as float64 arrays: what users pass in and get back."""

Real = float | np.floating[Any] | Float[Array, ""]
"""A real number, concrete or traced."""

Reals = float | np.floating[Any] | Float[Array, "..."]
"""A real number or an array of them, concrete or traced."""

Activation = Callable[[Float[Array, "..."]], Float[Array, "..."]]
"""A scalar function that acts elementwise on JAX arrays."""

Index = int | Int[Array, ""]
"""A whole number, concrete or traced."""

Values = np.ndarray | np.floating[Any]
"""What NumPy gives for an array or a number: an array of numbers, or one number."""


Metric = str | Callable[..., Any]
"""What is averaged over samples: "risk", "error", or a function of (fields, readout, label)."""


class Estimate(NamedTuple):
    """A number or array and the estimated error of each of its entries."""

    value: np.ndarray | Float[Array, "..."]
    error: np.ndarray | Float[Array, "..."]


# Arguments, validated where they enter: an integer is a number too, and 1e4 is a whole one.
Number = float
WholeNumber = float
Word = str
Flag = bool
# anything that can be read as a state: numbers, lists or arrays by name, a Dataset without time
StateLike = Mapping[str, Any] | xr.Dataset
Matrix = Sequence[Sequence[float]] | np.ndarray
Numeric = float | Sequence[Any] | np.ndarray  # a number, or numbers in an array of any shape
Numbers = Sequence[float] | np.ndarray | xr.DataArray  # such as times, or values along an axis
