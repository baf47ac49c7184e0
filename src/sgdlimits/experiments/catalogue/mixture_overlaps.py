"""Softmax regression on k Gaussian classes: one class vector finds its own mean."""

import math
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._mixtures import Softmax
from sgdlimits.experiments.shared import Sgd
from sgdlimits.plot.style import PALETTE


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.3 right",
    claim="k Gaussian classes: the overlap of x¹ with μ₁ separates from those with μ₂ … μ_k.",
    tiny={"classes": 3, "dim": 200, "runs": 60, "time": 10.0, "nodes": 2**10},
    quick={"dim": 300},
    headline=True,
)
class MixtureOverlaps(Softmax, Sgd):
    """Orthonormal means, equal weights."""

    precision: float = setting(10.0, "precision λ of the data noise", above=0)
    dim: int = setting(1000, "dimension d", least=50)
    runs: int = 128
    time: float = setting(50.0, "duration, in units of dim samples", above=0)
    # with 2^12 nodes M is 5e-4 from its value with 2^15: a third of a standard error at most
    nodes: int = setting(2**12, "Sobol nodes of the limit", least=2**8)

    def compute(self, seed: int) -> Data:
        """SGD from one random start, its limit, and the drift at the noiseless rest point."""
        task = self.task(self.precision)
        start = task.random_state(self.dim, seed=seed)
        both = self.with_limit(task, seed, start, points=51, nodes=self.nodes)
        sgd, limit = (both[name][["M"]] for name in ("sgd", "limit"))
        k, overlap = self.classes, self.rest_overlap(self.ridge)
        others = -overlap / (k - 1)
        M = np.full((k, k), others) + (overlap - others) * np.eye(k)
        noiseless = sl.effective_dynamics(self.task(math.inf))
        velocity = noiseless.drift({"M": M, "R": np.zeros((k, k))})["M"]
        return {
            "sgd": sgd.isel(neuron=[0]),
            "end": sgd.isel(time=-1).mean("run"),
            "limit": limit.isel(neuron=[0]),
            "rest": xr.Dataset({"velocity": (("neuron", "anchor"), velocity)}),
        }

    def check(self, data: Data) -> list[Check]:
        """Paths of two overlaps, the end of the first, and the rest point of Section 5.3.1."""
        names = ["M[0,mu0]", "M[0,mu1]"]
        ends, end = (data[name].M.isel(neuron=0, time=-1) for name in ("sgd", "limit"))
        return [
            checks.path("overlaps with μ₁ and μ₂ over time", data["sgd"], data["limit"], names),
            checks.mean(
                "overlap with μ₁ at the end",
                ends.isel(anchor=0),
                end[0],
                note="printed: where the rule x ← x − δ∇L − βx of (2.1) would rest",
                printed=self.rest_overlap(self.ridge * self.dim),
            ),
            checks.mean(
                "mean overlap with the other means at the end",
                ends.isel(anchor=slice(1, None)).mean("anchor"),
                end[1:].mean(),
            ),
            checks.exact(
                "largest velocity at m₁₁ of Section 5.3.1, λ = ∞",
                np.abs(data["rest"].velocity).max(),
                0.0,
                1e-9,
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """Overlaps of the first class vector over time on the left, all overlaps at the end."""
        figure, panels = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.4, 1))
        self.draw_paths(panels[0, 0], data)
        self.draw_end(panels[0, 1], data["end"].M.values)
        return sl.plot.legend_below(figure)

    def draw_paths(self, panel: Axes, data: Data) -> None:
        """Overlaps with all means: single runs, the limit, and the rest point without noise."""
        sgd, limit = (data[name].M.isel(neuron=0) for name in ("sgd", "limit"))
        for anchor in range(self.classes):
            word, color = (r"\mu_1", "blue") if anchor == 0 else (r"\mu_2 \dots \mu_k", "orange")
            look: Any = {"label": f"SGD, overlap with ${word}$", "color": PALETTE[color]}
            sl.plot.runs(sgd.isel(anchor=anchor), most=6, axes=panel, **look)
        panel.plot(limit.time, limit, "k", lw=0.6, label="limit")
        rest = self.rest_overlap(self.ridge)
        panel.axhline(rest, color="k", ls=":", lw=1, label="at rest for λ = ∞")
        panel.set_ylabel(r"$\langle x^1, \mu_b \rangle$")

    def draw_end(self, panel: Axes, matrix: np.ndarray) -> None:
        """The overlaps of all class vectors with all means as an image."""
        size = np.abs(matrix).max()
        image = panel.imshow(matrix, cmap="PuOr_r", vmin=-size, vmax=size)
        ticks = np.arange(0, self.classes, 1 if self.classes <= 5 else 3)
        panel.set(xlabel="mean $b$", ylabel="class vector $a$", title="mean over runs at the end")
        panel.set(xticks=ticks, yticks=ticks, xticklabels=ticks + 1, yticklabels=ticks + 1)
        panel.grid(visible=False)
        panel.figure.colorbar(image, ax=panel, label=r"$\langle x^a, \mu_b \rangle$")
