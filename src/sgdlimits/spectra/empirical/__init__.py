"""Spectra of matrices of data: at given weights, and along training."""

from sgdlimits.spectra.empirical.matrices import Empirical
from sgdlimits.spectra.empirical.tracking import track

__all__ = ["Empirical", "track"]
