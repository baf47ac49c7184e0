"""Does training the readout change how phase retrieval escapes, and where does the readout go?"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.settings import Settings

POINTS = 81
KINDS = {"fixed": sl.plot.style.SIMULATION, "trained": sl.plot.style.PALETTE["green"]}
CLOSE = 0.1  # relative difference of exit times that the paper would call close


@experiment(
    paper="AKLS23",
    figure="Fig. 5",
    claim="Training the readout from a = 1 does not change when the largest overlap escapes.",
    tiny={"widths": (4,), "dim": 200, "runs": 40, "time": 4.0},
    quick={"widths": (5, 10), "dim": 500},
    cost=3.0,
)
class RetrievalReadout(Settings):
    """The paper's γ is the step, and its time is ours over the width p."""

    widths: tuple[int, ...] = setting((20, 50), "numbers of neurons p", least=2)
    rate: float = setting(0.12, "step over width, γ/p", above=0, most=0.15)
    noise: float = setting(0.0, "variance Δ of the label noise", least=0)
    level: float = setting(0.5, "largest overlap at exit", above=0, most=0.9)
    dim: int = setting(1000, "dimension d", least=100)
    runs: int = setting(20, "independent runs of SGD", least=5)
    time: float = setting(6.0, "duration over width, the paper's time", above=0)

    def compute(self, seed: int) -> Data:
        """The largest overlap over time, its first passage, and the readout over time."""

        def one(width: int) -> xr.Dataset:
            return sl.results.over("readout", list(KINDS), lambda kind: self.sgd(width, kind, seed))

        return {"runs": sl.results.over("width", self.widths, one)}

    def sgd(self, width: int, readout: str, seed: int) -> xr.Dataset:
        """Runs from the same weights, with readout 1 at the start, whether it is trained or not."""
        task = sl.tasks.PhaseRetrieval(width=width, noise=self.noise, readout=readout)
        law = {} if readout == "fixed" else {"readout": 1.0}
        init = task.random_state(self.dim, seed, runs=self.runs, **law)
        options: Any = {"step": self.rate * width, "seed": seed, "init": init, "runs": self.runs}
        runs = sl.simulate(task, self.dim, time=self.time * width, points=POINTS, **options)
        event = (largest, ">", self.level)
        exits = sl.first_passage(task, event, self.dim, max_time=self.time * width, **options)
        a = runs.v if readout == "trained" else xr.ones_like(runs.M.isel(anchor=0))
        found = {
            "overlap": np.abs(runs.M).max(("neuron", "anchor")),
            "share": participation(a),
            "exit": exits.time / width,
            "censored": exits.censored,
        }
        plain = {name: x.reset_coords(drop=True) for name, x in found.items()}
        even = np.linspace(0, self.time, POINTS)  # times are whole numbers of steps
        return xr.Dataset(plain).assign_coords(time=even)

    def check(self, data: Data) -> list[Check]:
        """Exit times of both, run by run; the readout is homogeneous until then."""
        found = []
        for p in self.widths:
            own = data["runs"].sel(width=p)
            exits = {kind: own.exit.sel(readout=kind) for kind in KINDS}
            waiting = int(own.censored.sum())
            later = (exits["trained"] - exits["fixed"]) / exits["fixed"].mean()
            ends = own.share.sel(readout="trained").isel(time=-1)
            note = (
                f"{waiting} runs wait at the end; the readout uses {float(ends.mean()):.2g} ± "
                f"{float(ends.std()):.1g} of all neurons at the end, one being {1 / p:.2g}"
            )
            name = f"exit with a trained readout, later than with a fixed one by a part, p = {p}"
            found.append(checks.mean(name, later, 0.0, note=note, bias=CLOSE))
        return found

    def draw(self, data: Data) -> Figure:
        """The largest overlap above, how many neurons the readout uses below."""
        runs = data["runs"]
        figure, panels = sl.plot.panels(2, len(self.widths), height=3.0)

        def overlap(panel: Axes, own: xr.Dataset) -> None:
            for kind, colour in KINDS.items():
                label = f"readout {kind}"
                part = own.overlap.sel(readout=kind)
                sl.plot.runs(part, label=label, color=colour, axes=panel)
            panel.axhline(self.level, color="k", ls=":", lw=1, label="exit")
            panel.set_ylabel(r"largest $|m_j|$")
            panel.set_xlabel("time $t/p$")

        def share(panel: Axes, own: xr.Dataset) -> None:
            colour = KINDS["trained"]
            sl.plot.runs(own.share.sel(readout="trained"), label="_", color=colour, axes=panel)
            panel.axhline(1 / float(own.width), color="k", ls="--", lw=1, label="one neuron")
            panel.set(ylim=(0, 1.05), xlabel="time $t/p$")
            panel.set_ylabel("neurons in use")

        sl.plot.facets(runs, "width", overlap, title="$p = {:g}$", axes=panels[:1])
        sl.plot.facets(runs, "width", share, title="", axes=panels[1:])
        return sl.plot.legend_below(figure, 4)


def largest(state: dict[str, Any]) -> Any:
    """The largest overlap of a neuron with the teacher, whatever its sign."""
    return jnp.max(jnp.abs(state["M"]))


def participation(readout: xr.DataArray) -> xr.DataArray:
    """The share of neurons that carry the readout, (Σa²)²/(pΣa⁴): 1 if all do, 1/p if one does."""
    squares = (readout**2).sum("neuron")
    return squares**2 / (readout.sizes["neuron"] * (readout**4).sum("neuron"))
