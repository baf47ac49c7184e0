"""What the experiments on spectra of the XOR network share; above all its readout block.

The readout block vv is that of the weights v of the second layer. It depends on the data through
the K fields Wx only: matrices of fresh data at a given state can be drawn in any dimension that has
room for the weights.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, setting
from sgdlimits.experiments.catalogue._spectra import MATRICES, Spectra, Tracked


class XorSpectra(Spectra):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    width: int = setting(20, "width K", least=8)
    ratio: float = 10.0
    # from 0.1 on SGD forgets hidden classes at λ = 10, at 0.01 idle neurons decay too slowly
    ridge: float = setting(0.05, "ridge β, not given in the paper", above=0, most=0.125)
    time: float = setting(60.0, "duration, in units of d samples", above=10)
    draws: int = setting(20, "fresh data sets at the end", least=3)

    def task(self, precision: float) -> sl.tasks.XorMixture:
        """At one precision λ."""
        return sl.tasks.XorMixture(width=self.width, precision=precision, ridge=self.ridge)


class Readout(XorSpectra, Tracked):
    """One noise level; eigenvalues of the readout block, as many as neurons."""

    precision: float = setting(10.0, "precision λ of the data", above=0)
    points: int = 40

    @property
    def bias(self) -> float:
        """Bound for the relative bias of sums of eigenvalues: at most K terms of the size 1/n."""
        return self.width / self.samples

    def eigenvalues(self, state: State, seed: int) -> xr.DataArray:
        """Of both readout blocks on new data, by decreasing absolute value."""
        task = self.task(self.precision)
        room = self.width + len(task.anchors)
        options: Any = {"init": state, "blocks": ["vv"]}
        tracked = sl.spectra.track(task, room, self.samples, [0.0], seed=seed, **options)
        return tracked.eigenvalues.isel(time=0, block=0, drop=True)

    def fresh(self, state: State, seed: int) -> xr.Dataset:
        """The same on several data sets, over ``draw``; the first has this seed."""

        def look(_: int, seed: int) -> xr.Dataset:
            return xr.Dataset({"eigenvalues": self.eigenvalues(state, seed)})

        return sl.results.over("draw", range(self.draws), look, count(seed))

    def predicted(self, state: State, matrices: Sequence[str] = tuple(MATRICES)) -> xr.DataArray:
        """The same eigenvalues as the effective theory predicts them."""
        task = self.task(self.precision)
        spectra = [
            sl.spectra.effective(task, state, self.ratio, matrix, "vv") for matrix in matrices
        ]
        values = [spectrum.eigenvalues for spectrum in spectra]
        return xr.DataArray(values, {"matrix": list(matrices)}, ("matrix", "rank"))

    def draw_eigenvalues(
        self, panel: Axes, measured: xr.DataArray, predicted: xr.DataArray
    ) -> None:
        """All of them over time, and lines for the prediction."""
        look: Any = {"ms": 3, "color": sl.plot.style.SIMULATION}
        label = f"SGD, d = {self.dim}: all {self.width} eigenvalues"
        panel.plot(measured.time, measured.transpose("time", "rank"), "o", label=label, **look)
        look = {"lw": 0.9, "color": sl.plot.style.LIMIT}
        label = "predicted from the summary statistics"
        panel.plot(predicted.time, predicted.transpose("time", "rank"), label=label, **look)
        panel.set_xlabel(sl.plot.style.TIME_LABEL)


def norms(state: State) -> np.ndarray:
    """|W_i| of all neurons: |W_i|² is the sum of its squared overlaps, and of R_ii."""
    return np.asarray(np.sqrt(np.sum(state["M"] ** 2, axis=1) + np.diag(state["R"])))


def relative_sums(draws: xr.DataArray, target: np.ndarray) -> np.ndarray:
    """The sum of leading eigenvalues in each draw over the predicted one, less 1.

    Nearly equal eigenvalues repel each other, which their sum does not feel.
    """
    leading = draws.transpose("draw", "rank").values[:, : len(target)]
    return np.asarray(leading.sum(axis=1) / target.sum() - 1)


def check_outliers(name: str, eigenvalues: np.ndarray, expected: int, most: int) -> Check:
    """How many eigenvalues of a block stand before the largest ratio of neighbours.

    Args:
        name: of the check.
        eigenvalues: their absolute values count.
        expected: how many should.
        most: so many of the largest are looked at.
    """
    leading = np.sort(np.abs(eigenvalues))[::-1][:most]
    ratios = leading[:-1] / leading[1:]
    note = f"before the largest ratio of neighbours; it is {ratios[expected - 1]:.3g} there"
    return checks.exact(name, np.argmax(ratios) + 1, expected, note=note)
