"""The XOR arrangement of four Gaussians and a two-layer ReLU network (BGJ22, section 5)."""

from sgdlimits._types import Number, WholeNumber
from sgdlimits.tasks.relu_classifier import ReluClassifier


class XorMixture(ReluClassifier):
    r"""Means ±μ have label 1, means ±ν label 0; ŷ = σ(v · relu(Wx)), cross-entropy, ridge.

    Args:
        width: number of neurons K.
        precision: λ; data have noise of variance 1/λ in every direction. ``math.inf`` for none.
        ridge: α; adds (α/2)(‖v‖² + ‖W‖²) to the loss.

    >>> XorMixture().anchors
    ('mu', 'nu')
    """

    def __init__(self, *, width: WholeNumber = 4, precision: Number = 10.0, ridge: Number = 0.1):
        super().__init__(
            width=width,
            anchors=("mu", "nu"),
            means=[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]],
            labels=[1.0, 1.0, 0.0, 0.0],
            precision=precision,
            ridge=ridge,
        )
