"""What the experiments on phase retrieval share: its risk, and SGD beside SDE and ODE."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, setting
from sgdlimits.experiments.shared import Sgd

POINTS = 101
COLOURS = {"sgd": sl.plot.style.SIMULATION, "sde": sl.plot.style.PATHS}


class RiskOverTime(Sgd):
    """Neurons on the sphere; the paper's γ is the step, and its time is ours divided by p."""

    width: int = setting(1, "number of neurons p", least=1)
    step: float = setting(0.05, "step γ", above=0)
    noise: float = setting(0.5, "variance Δ of the label noise", above=0)
    threshold: float = setting(0.5, "share T of the excess risk lost at exit", above=0, most=0.9)
    dim: int = setting(3000, "dimension d", least=100)
    runs: int = setting(200, "independent runs of SGD, and of the SDE", least=20)
    time: float = 6.0

    def compute(self, seed: int) -> Data:
        """SGD, SDE and ODE, all from overlaps 1/√d: the size that random ones have."""
        task = sl.tasks.PhaseRetrieval(width=self.width, noise=self.noise, spherical=True)
        limit = sl.effective_dynamics(task, step=self.step)
        overlaps = np.full((self.width, 1), self.dim**-0.5)
        start = {"M": overlaps, "R": np.eye(self.width) - overlaps @ overlaps.T}
        sgd = self.simulate(task, seed, step=self.step, init=start, points=POINTS)
        sde = limit.sample_paths(
            start, dim=self.dim, time=self.time, runs=self.runs, seed=seed + 1, points=POINTS
        )
        results = {"sgd": sgd, "sde": sde, "ode": limit.solve(start, times=sgd.time)}
        return {name: risk(result, self.noise) for name, result in results.items()}

    def comparisons(self, data: Data) -> list[Check]:
        """Law of the overlap when the ODE exits, and exit times: SGD against the SDE."""
        times = self.exit_times(data)
        at = data["ode"].time.values.searchsorted(times["ode"][0])
        overlaps = [data[kind].overlap.values[:, at] for kind in COLOURS]
        means = ", ".join(f"{kind.upper()} {np.nanmean(x):.3f}" for kind, x in times.items())
        return [
            checks.distribution("law of m at the exit of the ODE: SGD against SDE", *overlaps),
            checks.mean(
                "mean exit time, SGD minus SDE",
                times["sgd"] - times["sde"],
                0.0,
                note=means,
                leave_out="runs that never exit",
            ),
        ]

    def exit_times(self, data: Data) -> dict[str, np.ndarray]:
        """When the share T of the excess risk is lost, (9), by each run and the ODE; or NaN."""
        times = {}
        for kind, result in data.items():
            excess = np.atleast_2d(result.risk.values) - self.noise / 2
            below = excess <= (1 - self.threshold) * excess[:, :1]
            first = result.time.values[below.argmax(axis=1)]
            times[kind] = np.where(below.any(axis=1), first, np.nan)
        return times

    def draw(self, data: Data) -> Figure:
        """Risk over time on the left, histograms of exit times on the right."""
        figure, panels = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.25, 1))
        left, right = panels[0]
        times = self.exit_times(data)
        bins = np.linspace(0, np.nanmax([times["sgd"], times["sde"]]), 25)
        for kind, colour in COLOURS.items():
            name = kind.upper()
            sl.plot.runs(data[kind].risk, label=name, color=colour, axes=left)
            right.hist(times[kind], bins, color=colour, alpha=0.3)
            right.hist(times[kind], bins, color=colour, histtype="step", lw=1.4)
            right.axvline(np.nanmean(times[kind]), color=colour, ls="--", label=f"mean, {name}")
        left.plot(data["ode"].time, data["ode"].risk, "k", lw=2, label="ODE")
        left.axhline(self.noise / 2, color="k", ls=":", lw=1, label="Δ/2")
        right.axvline(times["ode"][0], color="k", lw=2)
        left.set(ylabel="population risk")
        right.set(xlabel=f"exit time, threshold T = {self.threshold:g}", ylabel="runs")
        return sl.plot.legend_below(figure, 6)


def risk(result: xr.Dataset, noise: float) -> xr.Dataset:
    """The population risk (6), with Q = R + M Mᵀ, and the overlap of the first neuron."""
    overlaps = result.M.isel(anchor=0).transpose(..., "neuron").values
    orthogonal = result.R.transpose(..., "neuron", "neuron_").values
    gram = orthogonal + overlaps[..., :, None] * overlaps[..., None, :]
    width = overlaps.shape[-1]
    norms = np.diagonal(gram, axis1=-2, axis2=-1)
    cross = (norms + 2 * overlaps**2).sum(axis=-1) / width
    network = norms.sum(axis=-1) ** 2 + 2 * (gram**2).sum(axis=(-2, -1))
    values = (3 + noise) / 2 - cross + network / (2 * width**2)
    overlap = result.M.isel(anchor=0, neuron=0, drop=True)
    return xr.Dataset({"risk": overlap.copy(data=values), "overlap": overlap}, attrs=result.attrs)
