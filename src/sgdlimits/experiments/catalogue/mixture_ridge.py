"""Two classes and XOR without noise: what ridge leaves of the rest points, up to 1/4 and 1/8."""

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue._xor import ROLES


class Case(NamedTuple):
    """What is known of the rest points of a task without noise."""

    title: str
    task: Any
    theory: Any  # ring_radius_squared(ridge) is C, which is |v|² of all neurons in one role
    threshold: float  # the ridge at which all rest points but 0 vanish
    roles: np.ndarray  # readout and overlaps of a neuron: a class mean with its sign
    starts: list[tuple[int, ...]]  # the role of each neuron, with every number of filled roles

    def branches(self, width: int) -> xr.Dataset:
        """Rest points over the ridge, from every start and from the origin, and their |v|²."""
        chosen = np.array([*dict.fromkeys(start[:width] for start in self.starts)])
        sharing = np.sum(chosen[:, :, None] == chosen[:, None, :], axis=2)
        sizes = (1 + 0.1 * np.arange(width)) / np.sqrt(sharing)  # not all the same
        rows = sizes[..., None] * self.roles[chosen]
        rows = np.concatenate([rows, 0 * rows[:1]])
        R = np.tile(0.01 * np.eye(width), (len(rows), 1, 1))
        limit = sl.effective_dynamics(self.task(width=width, precision=math.inf))
        diagram = limit.bifurcations(
            "ridge",
            low=0.08 * self.threshold,
            high=1.2 * self.threshold,
            init={"v": rows[..., 0], "M": rows[..., 1:], "R": R},
            search_at=[0.44 * self.threshold, 1.08 * self.threshold],
        )
        return diagram.assign(square=(diagram.v**2).sum("neuron", skipna=False))

    def squares(self, ridges: Any) -> np.ndarray:
        """C at every ridge."""
        return np.vectorize(self.theory.ring_radius_squared)(ridges)

    def filled(self, diagram: xr.Dataset) -> xr.DataArray:
        """|v|² / C, the number of filled roles, on the branches below the threshold."""
        below = diagram.ridge < self.threshold - 1e-6
        squares = self.squares(diagram.ridge.where(below, self.threshold / 2))
        return (diagram.square / squares).where(below)


CASES = {
    "binary": Case(
        *("two classes", sl.tasks.BinaryMixture, sl.theory.binary_mixture, 1 / 4),
        roles=np.array([[1, 1], [-1, -1]]),
        starts=[(0, 1), (0, 0)],
    ),
    "xor": Case(
        *("XOR", sl.tasks.XorMixture, sl.theory.xor, 1 / 8),
        roles=ROLES,
        starts=[(0, 1, 2, 3), (0, 0, 2, 3), (0, 0, 2, 2), (0, 0, 0, 0)],
    ),
}


@experiment(
    paper="BGJ22",
    figure="Prop. 4.2",
    claim="Without noise all rest points but 0 vanish at ridge 1/4 (two classes) and 1/8 (XOR).",
    tiny={"width": 1, "xor": False},
    quick={"xor": False},
)
class MixtureRidge(Settings):
    """Which rest points are followed while the ridge moves."""

    width: int = setting(2, "neurons of the network for two classes", least=1, most=2)
    xor: bool = setting(True, "whether XOR is followed too")

    def compute(self, seed: int) -> Data:
        """Branches with every number of filled roles, and the origin."""
        widths = {"binary": self.width} | ({"xor": 4} if self.xor else {})
        return {name: CASES[name].branches(width) for name, width in widths.items()}

    def check(self, data: Data) -> list[Check]:
        """Where branches end, and |v|² = C(ridge) times the number of filled roles."""
        results = []
        for name, diagram in data.items():
            title, threshold = CASES[name].title, CASES[name].threshold
            filled = CASES[name].filled(diagram)
            numbers = filled.max("point").round()
            ends = diagram.ridge.values[diagram.special.values != ""]
            furthest = threshold + np.max(np.abs(ends - threshold))
            note, gap = f"the furthest of {len(ends)}", np.abs(filled - numbers).max()
            text = f"{title}: ridge where branches meet"
            results.append(checks.exact(text, furthest, threshold, 1e-8, note=note))
            text = f"{title}: |v|² / C furthest from a whole number"
            results.append(checks.exact(text, gap, 0.0, 1e-7))
            text, width = f"{title}: most filled roles", diagram.sizes["neuron"]
            results.append(checks.exact(text, numbers.max(), width, 0.0))
        return results

    def draw(self, data: Data) -> Figure:
        """|v|² of all branches over the ridge, and multiples of C."""
        wide = 6.4 if len(data) == 1 else 4.6
        figure, panels = sl.plot.panels(1, len(data), width=wide, height=3.8)
        for panel, (name, diagram) in zip(panels[0], data.items(), strict=True):
            draw_branches(panel, diagram, CASES[name])
        return sl.plot.legend_below(figure, 3)


def draw_branches(panel: Axes, diagram: xr.Dataset, case: Case) -> None:
    """|v|² of the branches of one task, and the closed form."""
    sl.plot.bifurcation(diagram, "square", axes=panel)
    ridges = np.linspace(diagram.attrs["low"], case.threshold - 1e-9, 12)[:-1]
    look: Any = {"ms": 4.5, "color": sl.plot.style.PALETTE["orange"], "zorder": 4}
    for count in set(case.filled(diagram).max("point").round().values) - {0.0}:
        squares = count * case.squares(ridges)
        panel.plot(ridges, squares, "o", label="closed form, multiples of $C$", **look)
    panel.set(title=f"{case.title}, $K$ = {diagram.sizes['neuron']}", xlabel=r"ridge $\alpha$")
    panel.set_ylabel("$|v|^2$")
    panel.set_ylim(bottom=-0.3)
