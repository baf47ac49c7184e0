"""Softmax regression on classes with correlated means and unequal weights: overlaps and norms."""

import math
from typing import Any

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.shared import Sgd
from sgdlimits.results import select

NODES = 2**12  # the limit is 1e-12 from that with 2^15 nodes
CLASSES = range(3)


@experiment(
    paper="BGHJ23",
    figure="Thm 5.7",
    claim="Any means and weights: overlaps and R follow (5.5) and the corrected (5.6).",
    tiny={"dim": 200, "runs": 40, "time": 5.0},
    quick={},
)
class MixtureGeneralMeans(Sgd):
    """Three classes; the cosines between means 1 and 2, 1 and 3, 2 and 3."""

    weights: tuple[float, ...] = setting((0.5, 0.3, 0.2), "probabilities of 3 classes", above=0)
    cosines: tuple[float, ...] = setting(
        (0.5, -0.3, 0.2), "cosines between 3 unit means", least=-0.9, most=0.9
    )
    precision: float = setting(10.0, "precision λ of the data noise", above=0)
    ridge: float = setting(0.1, "ridge β", above=0)
    step: float = setting(1.0, "step c, learning rate c/d", above=0)
    dim: int = setting(2000, "dimension d", least=100)
    runs: int = setting(100, "independent runs of SGD", least=20)

    def compute(self, seed: int) -> Data:
        """SGD from one random start and its limit; SGD again without noise in the data."""
        first, second, third = self.cosines
        task = sl.tasks.GaussianMixture(
            classes=3,
            weights=np.array(self.weights),
            means_gram=[[1, first, second], [first, 1, third], [second, third, 1]],
            precision=self.precision,
            ridge=self.ridge,
        )
        start = task.random_state(self.dim, seed=seed)
        options: Any = {"step": self.step, "init": start, "points": 51}
        sgd = self.simulate(task, seed, **options)
        limit = sl.effective_dynamics(task, step=self.step, nodes=NODES)
        return {
            "sgd": sgd,
            "limit": limit.solve(start, times=sgd.time),
            "noiseless": self.simulate(task.replace(precision=math.inf), seed, runs=2, **options),
        }

    def check(self, data: Data) -> list[Check]:
        """Paths of overlaps and norms; the decay of what is orthogonal to noiseless data."""
        sgd, limit = data["sgd"], data["limit"]
        overlaps = [f"M[{a},mu{b}]" for a in CLASSES for b in CLASSES]
        products = ["R[0,0]", "R[0,1]", "R[1,1]", "R[1,2]", "R[2,2]"]
        norm = select(data["noiseless"], "R[0,0]").isel(run=0).values
        decay = math.exp(-2 * self.ridge * self.time)
        return [
            checks.path("all overlaps over time", sgd, limit, overlaps),
            checks.path("R over time", sgd, limit, products),
            checks.exact(
                "R₁₁(t)/R₁₁(0) at the end, λ = ∞",
                norm[-1] / norm[0],
                decay,
                # one step multiplies by (1 − δβ)², not by exp(−2δβ)
                2 * self.ridge**2 * self.time * self.step / self.dim,
                note="−2βR in (5.6) and (5.18), printed −βR",
                printed=math.sqrt(decay),
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """One panel of overlaps for each class vector, and one of R."""
        figure, panels = sl.plot.panels(2, 2, width=4.6, height=2.9, sharex=True)
        for a, panel in zip(CLASSES, panels.ravel(), strict=False):
            draw_paths(panel, data, [f"M[{a},mu{b}]" for b in CLASSES])
            title = f"class {a + 1}, weight {self.weights[a]:g}"
            panel.set(title=title, ylabel=rf"$\langle x^{a + 1}, \mu_b \rangle$")
        draw_paths(panels[1, 1], data, [f"R[{a},{a}]" for a in CLASSES])
        panels[1, 1].set(title="orthogonal to the means", ylabel="$R_{aa}$")
        for panel in panels[0]:
            panel.set_xlabel("")
        return sl.plot.legend_below(figure)


def draw_paths(panel: Axes, data: Data, names: list[str]) -> None:
    """Three statistics, one for each class or mean: single runs, and the limit on top."""
    for number, (name, color) in enumerate(zip(names, picture.COLOURS, strict=False), 1):
        label = f"SGD, class or mean {number}"
        sl.plot.runs(select(data["sgd"], name), most=20, label=label, color=color, axes=panel)
        limit = select(data["limit"], name)
        panel.plot(limit.time, limit, "k--", lw=1.1, label="limit")
