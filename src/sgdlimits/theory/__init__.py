"""Closed-form results of the papers, in plain NumPy and independent of the general engine.

One module per model. Times are delta * steps with delta = step / dim, except where a docstring
says otherwise. Where a paper misprints a formula, the corrected one stands here.
"""

from sgdlimits.theory import (
    binary_mixture,
    gaussian_mixture,
    marchenko_pastur,
    phase_retrieval,
    population_spectra,
    saad_solla,
    spiked_tensor,
    xor,
)

__all__ = [
    "binary_mixture",
    "gaussian_mixture",
    "marchenko_pastur",
    "phase_retrieval",
    "population_spectra",
    "saad_solla",
    "spiked_tensor",
    "xor",
]
