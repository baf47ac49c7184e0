"""Two Gaussian classes and a two-layer ReLU network (BGJ22, section 4)."""

from sgdlimits._types import Number, WholeNumber
from sgdlimits.tasks.relu_classifier import ReluClassifier


class BinaryMixture(ReluClassifier):
    r"""x ~ N((2y − 1)μ, I/precision) with y ~ Ber(1/2); ŷ = σ(v · relu(Wx)), cross-entropy, ridge.

    Args:
        precision: λ; data have noise of variance 1/λ in every direction. ``math.inf`` for none.
        ridge: α; adds (α/2)(‖v‖² + ‖W‖²) to the loss.
        width: number of neurons K.

    >>> BinaryMixture(precision=100.0).shapes
    {'v': (2,), 'M': (2, 1), 'R': (2, 2)}
    """

    def __init__(self, *, precision: Number = 10.0, ridge: Number = 0.1, width: WholeNumber = 2):
        super().__init__(
            width=width,
            anchors=("mu",),
            means=[[1.0], [-1.0]],
            labels=[1.0, 0.0],
            precision=precision,
            ridge=ridge,
        )
