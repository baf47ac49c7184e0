"""Two Gaussian classes and a two-layer ReLU network (paper 000, section 4)."""

from sgdlimits._types import Number, WholeNumber
from sgdlimits.tasks.relu_classifier import ReluClassifier


class BinaryMixture(ReluClassifier):
    r"""x ~ N((2y − 1)μ, I/precision) with y ~ Ber(1/2); ŷ = σ(v · relu(Wx)), cross-entropy, ridge.

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
