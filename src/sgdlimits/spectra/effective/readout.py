"""The readout block vv: a K × K matrix without a bulk, and which of its eigenvalues stand out.

With many samples it equals its average over the data, B = Σ_c p_c B_c over the components c. For a
network v · g(Wx) component c adds, up to a remainder O(1/λ), a matrix of rank one,

    B_c ≈ D_c g(Wμ_c) g(Wμ_c)ᵀ     (BGHJ23, Lemmas 4.4 and 4.5),

so a learned block has one eigenvalue of order one for each component with its own g(Wμ_c) ≠ 0, and
the others are O(1/λ). At one given λ we split every B_c into its leading eigenpair and a remainder.
The remainders add up to N = Σ_c p_c (B_c − leading part), the noise. An eigenvalue is an *outlier*
if its absolute value exceeds the threshold 2 ‖N‖, that is, if more than half of it comes from the
leading parts: for a unit eigenvector u of such an eigenvalue x, |uᵀNu| ≤ ‖N‖ < |x|/2. There are at
most as many as components (Weyl's inequality).

So at a random start of a ReLU network there is one, since relu(Wx) has the same positive mean in
every component, and after training there are as many as hidden classes are discerned (BGHJ23,
Figures 2.5 and 2.6). The largest ratio of neighbouring eigenvalues would not do: as the remainders
shrink in training to the span of the g(Wμ_c), eigenvalues beyond the components' vanish altogether,
and the largest ratio is theirs.
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
    """Eigenvalues by decreasing absolute value, eigenvectors in columns, and the threshold."""

    values: np.ndarray
    vectors: np.ndarray
    threshold: float


def readout_spectrum(
    task: MultiIndexFamily, state: State, matrix: str, nodes: int
) -> ReadoutSpectrum:
    """Eigenpairs of the block vv at a state, and the size beyond which they are outliers."""
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
    return ReadoutSpectrum(values, vectors, SIGNAL * float(np.linalg.norm(noise, 2)))


def _without_leading(matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix less the part of its eigenvalue of largest absolute value."""
    values, vectors = _by_size(matrix)
    return matrix - values[0] * np.outer(vectors[:, 0], vectors[:, 0])


def _by_size(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))
    return values[order], vectors[:, order]
