"""What the experiments on phase retrieval share: its risk, and SGD beside SDE and ODE."""

from typing import Any

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
        """SGD, SDE and ODE, all from overlaps 1/√d: the size that random ones have.

        Their exits, (9), are first passages; those that wait when the time is over are marked.
        """
        task = sl.tasks.PhaseRetrieval(width=self.width, noise=self.noise, spherical=True)
        limit = sl.effective_dynamics(task, step=self.step)
        overlaps = np.full((self.width, 1), self.dim**-0.5)
        start = {"M": overlaps, "R": np.eye(self.width) - overlaps @ overlaps.T}
        sgd = self.simulate(task, seed, step=self.step, init=start, points=POINTS)
        paths: Any = {"dim": self.dim, "time": self.time, "runs": self.runs, "seed": seed + 1}
        sde = limit.sample_paths(start, points=POINTS, **paths)
        results = {"sgd": sgd, "sde": sde, "ode": limit.solve(start, times=sgd.time)}
        excess = float(limit.risk(start)) - self.noise / 2
        level = self.noise / 2 + (1 - self.threshold) * excess
        event = (limit.quantity("risk"), "<", level)
        size: Any = {"dim": self.dim, "runs": self.runs, "max_time": self.time}
        by_sgd = sl.first_passage(task, event, step=self.step, seed=seed, init=start, **size)
        by_sde = limit.sample_paths(start, points=3, until=event, **paths)
        exits = {
            "sgd_exit": by_sgd,
            "sde_exit": by_sde.drop_vars("time").rename(passage_time="time"),
            "ode_exit": limit.first_passage(event, start, self.time),
        }
        kept = {name: x[["time", "censored"]] for name, x in exits.items()}
        return {name: risk(result, self.noise) for name, result in results.items()} | kept

    def comparisons(self, data: Data) -> list[Check]:
        """Law of the overlap when the ODE exits, and exit times: SGD against the SDE."""
        at = data["ode"].time.values.searchsorted(float(data["ode_exit"].time))
        overlaps = [data[kind].overlap.values[:, at] for kind in COLOURS]
        exits = {kind: data[f"{kind}_exit"] for kind in COLOURS}
        waiting = ", ".join(f"{kind.upper()} {int(x.censored.sum())}" for kind, x in exits.items())
        note = f"runs that wait at t = {self.time:g} are counted there: {waiting}"
        times = [exits[kind].time.values for kind in COLOURS]
        return [
            checks.distribution("law of m at the exit of the ODE: SGD against SDE", *overlaps),
            checks.mean("mean exit time, SGD minus SDE", times[0] - times[1], 0.0, note=note),
        ]

    def draw(self, data: Data) -> Figure:
        """Risk over time on the left; on the right the part of runs that have not exited."""
        figure, panels = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.25, 1))
        left, right = panels[0]
        ode = float(data["ode_exit"].time)
        for kind, colour in COLOURS.items():
            name = kind.upper()
            sl.plot.runs(data[kind].risk, label=name, color=colour, axes=left)
            sl.plot.survival(data[f"{kind}_exit"], label=name, color=colour, axes=right)
        left.plot(data["ode"].time, data["ode"].risk, "k", lw=2, label="ODE")
        left.axhline(self.noise / 2, color="k", ls=":", lw=1, label="Δ/2")
        right.axvline(ode, color="k", lw=1.6)
        right.set(ylabel="part of runs before exit", title=f"threshold T = {self.threshold:g}")
        left.set(ylabel="population risk")
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


def excess(state: dict[str, Any]) -> Any:
    """The risk over Δ/2 of one state on the sphere, (42), in a tenth of the time of the limit's."""
    m = state["M"][:, 0]
    gram, p = state["R"] + m[:, None] * m, len(m)
    return 1 + ((gram**2).sum() - 2 * p * (m**2).sum()) / p**2
