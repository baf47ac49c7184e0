"""Spiked matrices and tensors: recover v from Y = λ v^{⊗k} + W (BGJ22, sections 3 and 7)."""

import equinox as eqx
import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Reals, State, WholeNumber
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.initial import InitialLaw
from sgdlimits.tasks.layout import Layout, Statistic

_LAYOUT = Layout((Statistic("m"), Statistic("r2", nonnegative=True)))


class SpikedTensor(Task):
    r"""SGD on L(x, Y) = ‖Y − x^{⊗k}‖² + (ridge/2)‖x‖², Y = snr · v^{⊗k} + W, W i.i.d. Gaussian.

    The statistics are m = ⟨x, v⟩ and r2 = ‖x − mv‖². With R² = m² + r2,
    Φ = −2 snr mᵏ + R^{2k} + (ridge/2) R², and the gradient noise is a Gaussian vector with
    covariance 4k R^{2k−2} I + 4k(k−1) R^{2k−4} xxᵀ.

    Args:
        order: k, 2 for a matrix.
        snr: λ, the strength of the signal.
        ridge: α.

    >>> SpikedTensor(order=3, snr=4.0)
    SpikedTensor(order=3, snr=4.0, ridge=0.0)
    """

    order: int = eqx.field(static=True)
    snr: float
    ridge: float

    def __init__(self, *, order: WholeNumber = 2, snr: Number = 1.2, ridge: Number = 0.0):
        self.order = _checks.integer("order", order, least=2)
        self.snr = _checks.nonnegative("snr", snr)
        self.ridge = _checks.nonnegative("ridge", ridge)

    def population_loss(self, overlap: Reals, radius: Reals) -> Reals:
        """Φ up to a constant, from m and r2."""
        return self.risk(overlap, radius) + self.ridge / 2 * (overlap**2 + radius)

    def risk(self, overlap: Reals, radius: Reals) -> Reals:
        """The same without the ridge: E‖Y − x^{⊗k}‖² − E‖Y‖² = −2 snr mᵏ + R^{2k}."""
        return -2 * self.snr * overlap**self.order + (overlap**2 + radius) ** self.order

    def noise_variances(self, squared_norm: Reals) -> tuple[Reals, Reals]:
        """(A, B) such that the gradient noise at x has covariance A·I + B·xxᵀ, from ‖x‖²."""
        k = self.order
        return 4 * k * squared_norm ** (k - 1), 4 * k * (k - 1) * squared_norm ** (k - 2)

    @property
    def layout(self) -> Layout:
        """Two numbers; r2 is a squared norm."""
        return _LAYOUT

    @property
    def least_dim(self) -> int:
        """The signal and one direction orthogonal to it."""
        return 2

    def draw_states(self, dim: int, generator: np.random.Generator, count: int) -> State:
        """The statistics of x ~ N(0, I/dim)."""
        return {
            "m": generator.normal(size=count) / dim**0.5,
            "r2": generator.chisquare(dim - 1, size=count) / dim,
        }

    def with_law(self, states: State, law: InitialLaw) -> State:
        """The vector x multiplied, or its overlap given."""
        law.without({"readout": "has no readout"}, type(self).__name__)
        m, r2 = law.variance**0.5 * states["m"], law.variance * states["r2"]
        if law.overlap is not None:
            m = np.full(m.shape, _checks.array("overlap", law.overlap, ()))
        return {"m": m, "r2": r2}

    def search_states(self, count: int, seed: int) -> State:
        """Random overlaps and radii of order one: rest points may be far from random starts."""
        generator = np.random.default_rng(seed)
        states = super().search_states(count, seed)
        states["m"] = states["m"] + generator.uniform(-2, 2, size=count)
        states["r2"] = states["r2"] * generator.uniform(0, 2, size=count)
        return states
