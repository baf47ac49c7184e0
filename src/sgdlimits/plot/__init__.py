"""Pictures: one function per kind of picture, each returns a matplotlib ``Figure``.

Figures are made without pyplot: nothing is shown or kept in global state, so all of this works
without a display. ``save(figure, path)`` writes them.
"""

from sgdlimits.plot import style
from sgdlimits.plot.bifurcation import bifurcation
from sgdlimits.plot.closability import closability
from sgdlimits.plot.compare import compare
from sgdlimits.plot.convergence import convergence
from sgdlimits.plot.files import save
from sgdlimits.plot.landscape import landscape
from sgdlimits.plot.learning_curve import learning_curve
from sgdlimits.plot.over_runs import band, runs
from sgdlimits.plot.panels import facets, legend_below, panels
from sgdlimits.plot.plane import plane
from sgdlimits.plot.portrait import portrait
from sgdlimits.plot.proportions import proportions
from sgdlimits.plot.spectra import (
    alignment,
    eigenvalues_over_time,
    eigenvectors,
    outlier_curves,
    spectrum,
)
from sgdlimits.plot.sphere import animate_sphere, sphere
from sgdlimits.plot.survival import survival
from sgdlimits.plot.symbols import symbol

__all__ = [
    "alignment",
    "animate_sphere",
    "band",
    "bifurcation",
    "closability",
    "compare",
    "convergence",
    "eigenvalues_over_time",
    "eigenvectors",
    "facets",
    "landscape",
    "learning_curve",
    "legend_below",
    "outlier_curves",
    "panels",
    "plane",
    "portrait",
    "proportions",
    "runs",
    "save",
    "spectrum",
    "sphere",
    "style",
    "survival",
    "symbol",
]
