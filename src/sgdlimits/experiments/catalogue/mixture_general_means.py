"""Softmax regression on classes with correlated means and unequal weights: overlaps and norms."""

import math
from typing import Any

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
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
        noiseless = self.simulate(task.replace(precision=math.inf), seed, runs=2, **options)
        return self.with_limit(task, seed, nodes=NODES, **options) | {"noiseless": noiseless}

    def check(self, data: Data) -> list[Check]:
        """Paths of overlaps and norms; the decay of what is orthogonal to noiseless data."""
        sgd, limit = data["sgd"], data["limit"]
        overlaps = [f"M[{a},mu{b}]" for a in CLASSES for b in CLASSES]
        products = ["R[0,0]", "R[0,1]", "R[1,1]", "R[1,2]", "R[2,2]"]
        norm = select(data["noiseless"], "R[0,0]").isel(run=0).values
        ratio, decay = norm[-1] / norm[0], math.exp(-2 * self.ridge * self.time)
        # one step multiplies by (1 − δβ)², not by exp(−2δβ)
        gap, printed = 2 * self.ridge**2 * self.time * self.step / self.dim, math.sqrt(decay)
        name, note = "R₁₁(t)/R₁₁(0) at the end, λ = ∞", "−2βR in (5.6) and (5.18), printed −βR"
        return [
            checks.path("all overlaps over time", sgd, limit, overlaps),
            checks.path("R over time", sgd, limit, products),
            checks.exact(name, ratio, decay, gap, note=note, printed=printed),
        ]

    def draw(self, data: Data) -> Figure:
        """One panel of overlaps for each class vector, and one of R."""
        figure, panels = sl.plot.panels(2, 2, width=4.6, height=2.9, sharex=True)
        weights = self.weights
        forms = {f"class {a + 1}, weight {weights[a]:g}": f"M[{a},mu{{0}}]" for a in CLASSES}
        forms["orthogonal to the means"] = "R[{0},{0}]"
        for panel, (title, form) in zip(panels.ravel(), forms.items(), strict=True):
            for number, color in picture.coloured(CLASSES):
                sgd, limit = (select(data[x], form.format(number)) for x in ("sgd", "limit"))
                label = f"SGD, class or mean {number + 1}"
                sl.plot.runs(sgd, limit=limit, most=20, label=label, color=color, axes=panel)
            symbol = r"$\langle x^a, \mu_b \rangle$" if form.startswith("M") else "$R_{aa}$"
            panel.set(title=title, ylabel=symbol)
        for panel in panels[0]:
            panel.set_xlabel("")
        return sl.plot.legend_below(figure)
