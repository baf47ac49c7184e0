"""Closed-form results of the papers, in plain NumPy and independent of the general engine.

One module per model. Times are δ·steps with δ = step/dim, except where a docstring says otherwise.
Formulas that a paper misprints are corrected, and their docstrings say so. Keys such as BGJ22 are
those of ``docs/references.bib``.
"""

from sgdlimits.theory import (
    attention,
    binary_mixture,
    double_descent,
    gaussian_mixture,
    hermite,
    implicit_bias,
    lazy,
    marchenko_pastur,
    mean_field,
    nadaraya_watson,
    nearest_neighbours,
    ntk,
    phase_retrieval,
    population_spectra,
    regimes,
    resolvents,
    saad_solla,
    spiked_tensor,
    stieltjes,
    xor,
)

__all__ = [
    "attention",
    "binary_mixture",
    "double_descent",
    "gaussian_mixture",
    "hermite",
    "implicit_bias",
    "lazy",
    "marchenko_pastur",
    "mean_field",
    "nadaraya_watson",
    "nearest_neighbours",
    "ntk",
    "phase_retrieval",
    "population_spectra",
    "regimes",
    "resolvents",
    "saad_solla",
    "spiked_tensor",
    "stieltjes",
    "xor",
]
