"""Results: labelled arrays with their provenance, saved whole or not at all.

A result is an ``xarray.Dataset`` with one variable per statistic. Its dims are ``run``, ``time``,
``neuron``, ``neuron_`` (second index of R) and ``anchor``; in a bifurcation diagram ``branch`` and
``point`` take the place of ``run`` and ``time``; :func:`over` adds a dim for a parameter that
moves. Its attributes say what was computed. Single statistics have flat names: ``m``, ``r2``,
``v[0]``, ``M[0,mu]``, ``R[0,1]``; :func:`select` takes one out, :func:`to_frame` all of them as the
columns of a table.
"""

from sgdlimits.results.dataset import build, divergence, parameters, select, state, statistics
from sgdlimits.results.files import load, replacing, save
from sgdlimits.results.frame import to_frame
from sgdlimits.results.join import over
from sgdlimits.results.survival import Survival, survival

__all__ = [
    "Survival",
    "build",
    "divergence",
    "load",
    "over",
    "parameters",
    "replacing",
    "save",
    "select",
    "state",
    "statistics",
    "survival",
    "to_frame",
]
