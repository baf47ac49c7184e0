"""Spectra of Hessian and gradient matrices along training, and their effective theory.

``ratio`` is everywhere φ = n/d, samples per dimension.
"""

from sgdlimits.simulate import DataSet, Training, Weights, anchors  # what the matrices are made of
from sgdlimits.spectra.alignment import (
    alignment,
    escape,
    leading_space,
    lives_in,
    principal_angles,
)
from sgdlimits.spectra.effective import (
    EffectivePath,
    EffectiveSpectrum,
    Outlier,
    Transition,
    effective,
    effective_path,
)
from sgdlimits.spectra.empirical import Empirical, track
from sgdlimits.spectra.hidden_classes import hidden_classes
from sgdlimits.spectra.network import Network, Tracker

__all__ = [
    "DataSet",
    "EffectivePath",
    "EffectiveSpectrum",
    "Empirical",
    "Network",
    "Outlier",
    "Tracker",
    "Training",
    "Transition",
    "Weights",
    "alignment",
    "anchors",
    "effective",
    "effective_path",
    "escape",
    "hidden_classes",
    "leading_space",
    "lives_in",
    "principal_angles",
    "track",
]
