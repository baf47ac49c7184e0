"""Spectra predicted from the summary statistics alone: no data, no matrix of size dim."""

from sgdlimits.spectra.effective.outliers import Outlier
from sgdlimits.spectra.effective.path import EffectivePath, Transition, effective_path
from sgdlimits.spectra.effective.spectrum import EffectiveSpectrum, effective

__all__ = [
    "EffectivePath",
    "EffectiveSpectrum",
    "Outlier",
    "Transition",
    "effective",
    "effective_path",
]
