"""k Gaussian classes and multinomial logistic regression (BGHJ23)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Matrix, Number, Numbers, Real, WholeNumber
from sgdlimits.tasks.multi_index import MultiIndexFamily


class GaussianMixture(MultiIndexFamily):
    r"""x ~ N(μ_c, I/precision) with probability weights[c]; softmax of Wx, cross-entropy, ridge.

    Anchor b is the mean μ_b, so M[a, b] = x^a · μ_b.

    Args:
        classes: number of classes k, and of rows of W.
        weights: probabilities of the classes; equal by default.
        means_gram: Gram matrix of the means; the identity by default.
        precision: λ; data have noise of variance 1/λ in every direction. ``math.inf`` for none.
        ridge: α; adds (α/2)‖W‖² to the loss.

    >>> GaussianMixture(classes=2).anchors
    ('mu0', 'mu1')
    """

    classes: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        classes: WholeNumber = 3,
        weights: Numbers | None = None,
        means_gram: Matrix | None = None,
        precision: Number = 10.0,
        ridge: Number = 0.01,
    ):
        self.classes = _checks.integer("classes", classes, least=2)
        if means_gram is not None:
            means_gram = _checks.gram("means_gram", means_gram, self.classes)
        super().__init__(
            width=self.classes,
            anchors=tuple(f"mu{c}" for c in range(self.classes)),
            gram=means_gram,
            means=np.eye(self.classes),
            weights=weights,
            labels=np.arange(self.classes),
            precision=precision,
            ridge=ridge,
            kinks="none",
        )

    @property
    def means_gram(self) -> np.ndarray:
        """Gram matrix of the class means."""
        return self.gram

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """−s_y + log Σ_c exp(s_c)."""
        own = jnp.sum(jnp.where(jnp.arange(self.width) == label, fields, 0.0))
        return jax.nn.logsumexp(fields) - own

    def decide(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None
    ) -> Float[Array, ""]:
        """The class of the largest field, the first one of equal ones."""
        return jnp.argmax(fields).astype(float)
