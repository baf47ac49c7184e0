"""The readout block vv: a K × K matrix without a bulk, and which of its eigenvalues stand out.

With many samples it equals its average over the data, B = Σ_c p_c B_c over the components c. For a
network v · g(Wx) component c adds, up to a remainder O(1/λ), a matrix of rank one,

    B_c ≈ D_c g(Wμ_c) g(Wμ_c)ᵀ     (BGHJ23, Lemmas 4.4 and 4.5),

so the block of a trained network has one eigenvalue of order one for each component with its own
g(Wμ_c) ≠ 0, and the others are O(1/λ). The rule at one given λ: split every B_c into its leading
eigenpair and a remainder; the remainders add up to the noise N = Σ_c p_c (B_c − leading part).
Then, from the largest absolute value down, an eigenvalue is an *outlier* if

    |x_i| > 2 ‖N on the span of the eigenvectors u_i, u_{i+1}, …, u_K‖,

so that more than half of it comes from the leading parts, and it is more than twice what the noise
makes of any direction that the larger ones leave. The first that fails ends the outliers, and its
bound is the threshold; there are no more of them than components.

This agrees with BGHJ23, Figures 2.5 and 2.6: at a random start of a ReLU network there is one
outlier, since relu(Wx) has the same positive mean in every component, and after training there are
as many as hidden classes are discerned. The largest ratio of neighbouring eigenvalues would not do:
it cannot say "none" or "all", and when neurons have collapsed onto the means, eigenvalues beyond
those vanish altogether and the largest ratio is theirs. Two limits of the rule: an eigenvalue that
is small beside the others may stand out while the output at its mean is still below any margin; and
in a network so confident that the few samples near the decision boundary dominate B_c, no part of
rank one leads it, and the rule counts too few.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from sgdlimits._precision import as_arrays
from sgdlimits._types import State
from sgdlimits.spectra.derivatives import readout_matrix
from sgdlimits.spectra.effective.law import law_at
from sgdlimits.tasks import MultiIndexFamily

SIGNAL = 2.0  # an outlier is larger than so many times the noise


class ReadoutSpectrum(NamedTuple):
    """All eigenpairs of the block, and where outliers end."""

    values: np.ndarray  # by decreasing absolute value
    vectors: np.ndarray  # in columns
    outliers: int  # the first so many values
    threshold: float  # between the absolute values of outliers and those of all others


def readout_spectrum(
    task: MultiIndexFamily, state: State, matrix: str, nodes: int
) -> ReadoutSpectrum:
    """The block vv at a state, averaged over the data with so many nodes per component."""
    law = law_at(task, state, nodes)
    parts = [
        np.asarray(
            readout_matrix(
                as_arrays(task),
                matrix,
                jnp.asarray(fields),
                jnp.asarray(state["v"]),
                jnp.asarray(labels),
                jnp.asarray(probabilities),
            )
        )
        for fields, labels, probabilities in zip(
            law.fields, law.labels, law.probabilities, strict=True
        )
    ]
    values, vectors = _by_size(np.sum(parts, axis=0))
    noise = np.sum([_without_leading(part) for part in parts], axis=0)
    most = min(len(parts), len(values))
    for count in range(most):
        left = vectors[:, count:]
        threshold = SIGNAL * float(np.linalg.norm(left.T @ noise @ left, 2))
        if not abs(values[count]) > threshold:
            return ReadoutSpectrum(values, vectors, count, threshold)
    next_value = abs(float(values[most])) if most < len(values) else 0.0
    return ReadoutSpectrum(values, vectors, most, max(threshold, next_value))


def _without_leading(matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix less the part of its eigenvalue of largest absolute value."""
    values, vectors = _by_size(matrix)
    return matrix - values[0] * np.outer(vectors[:, 0], vectors[:, 0])


def _by_size(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues by decreasing absolute value, and eigenvectors in columns."""
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))
    return values[order], vectors[:, order]
