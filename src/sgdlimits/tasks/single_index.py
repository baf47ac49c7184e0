"""Single-index models, learned by one neuron (J24, chapter 11)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Activation, Flag, Index, Number, Real, Word
from sgdlimits.tasks.activations import NamedActivation, resolve, roughest
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily


class SingleIndex(MultiIndexFamily):
    r"""x ~ N(0, I), y = link(⟨x, v⟩) + √noise ε, loss (y − student(⟨x, w⟩))², without a ½.

    Args:
        link: "erf", "relu", "square", "tanh" or an elementwise JAX function.
        student: likewise; the link itself by default.
        noise: variance of the label noise.
        spherical: w keeps norm 1.

    >>> SingleIndex("square").spherical
    True
    """

    noise: float
    _link: NamedActivation = eqx.field(static=True)
    _student: NamedActivation = eqx.field(static=True)

    def __init__(
        self,
        link: Word | Activation = "square",
        *,
        student: Word | Activation | None = None,
        noise: Number = 0.0,
        spherical: Flag = True,
    ):
        self._link = resolve("link", link)
        self._student = self._link if student is None else resolve("student", student)
        self.noise = _checks.nonnegative("noise", noise)
        super().__init__(
            width=1,
            anchors=("teacher",),
            spherical=spherical,
            kinks=roughest(self._link, self._student),
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """(y − student(s))²."""
        return (label - self._student.function(fields)[0]) ** 2

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The link of the projection plus noise of variance ``noise``."""
        return self._link.function(anchors)[0] + jnp.sqrt(self.noise) * noise

    @property
    def noisy(self) -> bool:
        """Where their variance is not zero."""
        return self.noise > 0

    @property
    def committee(self) -> Committee | None:
        """Exact for erf and the square, if student and link are the same."""
        return self.squared if self._link.exact else None

    @property
    def squared(self) -> Committee | None:
        """The risk is known for ReLU too."""
        if self._link != self._student or not self._link.paired:
            return None
        return Committee(self._link.name, 1.0, 1.0, self.noise, loss_weight=2.0)

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, a caller's own functions among them."""
        own = {"link": self._link.argument, "student": self._student.argument}
        return super().arguments() | own

    @property
    def link(self) -> str:
        """Name of the link."""
        return self._link.name

    @property
    def student(self) -> str:
        """Name of the student's activation."""
        return self._student.name
