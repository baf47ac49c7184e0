"""Diffusive limits in which some statistics are rescaled and the others stay macroscopic."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.dynamics.model import coordinates
from sgdlimits.dynamics.rescaled import LinearSDE, Transition, gaussian_paths
from sgdlimits.tasks import Task

SUBSTEPS = 4  # linearisations between two recorded times


class PartlyRescaledSDE:
    r"""dx = ∂h_x/∂x(x*, y) x dt + √Σ_xx(x*, y) dB with dy = h_y(x*, y) dt.

    x = √dim·(u − u*) for the statistics in ``rescaled``, y are the others; h_x must vanish at x*
    for every y on the way (paper 000, (3.2): √n·m diffuses while r² follows its ODE).

    Args:
        coordinates: names of all statistics.
        rescaled: which of them are rescaled.
        path: maps times to the macroscopic vectors there, with x = x*.
        linearise: maps a vector to the drift, its Jacobian and the diffusion matrix there.
    """

    def __init__(
        self,
        coordinates: list[str],
        rescaled: list[str],
        path: Callable[[np.ndarray], np.ndarray],
        linearise: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    ):
        self.coordinates = coordinates
        self.rescaled = rescaled
        self._path = path
        self._linearise = linearise
        self._indices = [coordinates.index(name) for name in rescaled]

    def sample(
        self,
        time: Number,
        runs: WholeNumber = 64,
        seed: WholeNumber = 0,
        initial: Any = None,
        points: WholeNumber = 201,
    ) -> xr.DataArray:
        """Paths over ``run``, ``time`` and ``statistic``: rescaled ones, and the others as is.

        Args:
            time: where to stop.
            runs: number of paths.
            seed: of the noise.
            initial: rescaled statistics at time 0, a vector or one for each run; zero by default.
            points: number of equally spaced times, 0 and ``time`` included.
        """
        time = _checks.positive("time", time)
        points = _checks.integer("points", points, least=2)
        edges = np.linspace(0, time, (points - 1) * SUBSTEPS + 1)
        centers = (edges[:-1] + edges[1:]) / 2
        along = self._path(np.concatenate([[0.0], centers]))[1:]
        transitions = self._transitions(along, time / ((points - 1) * SUBSTEPS))
        rescaled = gaussian_paths(self.rescaled, transitions, time, runs, seed, initial)
        rescaled = rescaled.isel(time=slice(None, None, SUBSTEPS))
        values = self._path(rescaled.time.values)
        macroscopic = xr.DataArray(
            np.broadcast_to(values, (rescaled.sizes["run"], *values.shape)),
            dims=("run", "time", "statistic"),
            coords={"run": rescaled.run, "time": rescaled.time, "statistic": self.coordinates},
        )
        others = [name for name in self.coordinates if name not in self.rescaled]
        joined = xr.concat([rescaled, macroscopic.sel(statistic=others)], dim="statistic")
        return joined.sel(statistic=self.coordinates)

    def _transitions(self, vectors: np.ndarray, duration: float) -> list[Transition]:
        chosen = np.ix_(self._indices, self._indices)
        transitions = []
        for vector in vectors:
            drift, jacobian, diffusion = self._linearise(vector)
            check_rest("the named statistics, on the way of the others", drift[self._indices])
            linear = LinearSDE(self.rescaled, jacobian[chosen], diffusion[chosen])
            transitions.append(linear.transition(duration))
        return transitions


def check_rest(what: str, drift: np.ndarray) -> None:
    """Raise ValueError if the drift is not small: there is no diffusive limit away from rest."""
    size = float(np.max(np.abs(drift), initial=0.0))
    if size > 1e-6:
        raise _checks.InputError(
            f"at is not allowed: the drift of {what} is {size:.3g}, but a diffusive limit needs a "
            "rest point, where it is below 1e-6"
        )


def rescaled_names(task: Task, only: Sequence[str]) -> list[str]:
    """Flat names of the statistics that ``only`` names one by one ("M[0,mu]") or as a group."""
    names = coordinates(task)
    chosen = [name for name in names if name in only or name.split("[")[0] in only]
    unknown = [name for name in only if name not in {*names, *task.shapes}]
    if unknown or not chosen:
        raise _checks.InputError(
            f"only={list(only)!r} is not allowed: only must name statistics among "
            f"{', '.join([*task.shapes, *names])}"
        )
    return chosen
