"""Spectra of Hessian and gradient matrices along training, and their effective theory."""

from sgdlimits.spectra.alignment import (
    alignment,
    escape,
    leading_space,
    lives_in,
    principal_angles,
)
from sgdlimits.spectra.data import DataSet, Training, Weights, anchors
from sgdlimits.spectra.effective import EffectiveSpectrum, Outlier, effective
from sgdlimits.spectra.empirical import Empirical
from sgdlimits.spectra.network import Network
from sgdlimits.spectra.network_track import Tracker
from sgdlimits.spectra.path import EffectivePath, Transition, effective_path
from sgdlimits.spectra.track import hidden_classes, track

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
