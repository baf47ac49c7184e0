"""Phase retrieval with a two-layer network of squares (AKLS23)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Flag, Index, Number, Real, WholeNumber, Word
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily


class PhaseRetrieval(MultiIndexFamily):
    r"""x ~ N(0, I), y = a² + √noise ε, f = (1/p) Σ_i v_i s_i², loss ½(y − f)².

    In the units of AKLS23, ``width`` is p, its γ is our step and its time is ours divided by p.

    Args:
        width: number of neurons p.
        noise: variance of the label noise.
        spherical: every row of W keeps norm 1.
        readout: "trained" to make v a statistic; with "fixed" all v_i = 1.

    >>> PhaseRetrieval().least_dim
    2
    """

    noise: float
    readout: str = eqx.field(static=True)

    def __init__(
        self,
        *,
        width: WholeNumber = 1,
        noise: Number = 0.0,
        spherical: Flag = True,
        readout: Word = "fixed",
    ):
        self.noise = _checks.nonnegative("noise", noise)
        self.readout = _checks.choice("readout", readout, ("fixed", "trained"))
        super().__init__(
            width=width,
            anchors=("teacher",),
            trained=readout == "trained",
            spherical=spherical,
            kinks="none",
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """½(y − f)²."""
        squares = fields**2
        f = jnp.sum(squares if readout is None else readout * squares) / self.width
        return (label - f) ** 2 / 2

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The squared projection plus noise of variance ``noise``."""
        return anchors[0] ** 2 + jnp.sqrt(self.noise) * noise

    @property
    def noisy(self) -> bool:
        """Where their variance is not zero."""
        return self.noise > 0

    @property
    def committee(self) -> Committee | None:
        """Exact: all moments are those of a quadratic form."""
        return Committee("square", 1 / self.width, 1.0, self.noise)
