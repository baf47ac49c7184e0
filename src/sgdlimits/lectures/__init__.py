"""The lecture notes' experiments themselves: data drawn, matrices formed, estimators fitted.

One file per topic. Nothing is known here of the theorems, which are in ``sgdlimits.theory``: that
the two agree is evidence for both. Source of all topics: the lecture notes (J24).
"""

from sgdlimits.lectures import (
    attention,
    covariance,
    descent,
    lazy,
    networks,
    regression,
    residual,
    smoothing,
    tokens,
)
from sgdlimits.lectures.entries import LAWS, Law
from sgdlimits.lectures.feed_forward import FeedForward

__all__ = [
    "LAWS",
    "FeedForward",
    "Law",
    "attention",
    "covariance",
    "descent",
    "lazy",
    "networks",
    "regression",
    "residual",
    "smoothing",
    "tokens",
]
