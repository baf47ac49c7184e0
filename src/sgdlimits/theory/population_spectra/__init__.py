"""Blocks of the population Hessian and gradient matrix in summary statistics (BGHJ23 sec. 3, 4).

``softmax``: regression on k Gaussian classes, where the blocks are exact at any precision.
``two_layer``: the ReLU network on the XOR mixture, to leading order in large precision, where the
blocks live on μ and ν.

All blocks are those of the loss without ridge, which adds ``ridge`` times the identity to the
diagonal blocks of the Hessian.
"""

from sgdlimits.theory.population_spectra.softmax import (
    PopulationBlock,
    softmax_gradient,
    softmax_hessian,
)
from sgdlimits.theory.population_spectra.two_layer import (
    xor_gradient,
    xor_hessian,
    xor_readout_gradient,
    xor_readout_hessian,
)

__all__ = [
    "PopulationBlock",
    "softmax_gradient",
    "softmax_hessian",
    "xor_gradient",
    "xor_hessian",
    "xor_readout_gradient",
    "xor_readout_hessian",
]
