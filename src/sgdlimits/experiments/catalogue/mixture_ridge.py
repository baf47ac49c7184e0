"""Two classes and XOR without noise: what ridge leaves of the rest points, up to 1/4 and 1/8."""

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting


class Case(NamedTuple):
    """What is known of the rest points of a task without noise."""

    title: str
    theory: Any  # ring_radius_squared(ridge) is C, which is |v|² of all neurons in one role
    threshold: float  # the ridge at which all rest points but 0 vanish
    roles: list[list[int]]  # readout and overlaps of a neuron: a class mean with its sign

    def squares(self, ridges: np.ndarray) -> np.ndarray:
        """C at every ridge."""
        return np.array([self.theory.ring_radius_squared(ridge) for ridge in ridges])

    def starts(self, *choices: tuple[int, ...]) -> dict[str, np.ndarray]:
        """One state for each choice of the neurons' roles; −1 is a neuron at rest at zero."""
        chosen = np.array(choices)
        rows = np.array([*self.roles, [0] * len(self.roles[0])])[chosen]
        sharing = np.sum(chosen[:, :, None] == chosen[:, None, :], axis=2)
        sizes = (1 + 0.1 * np.arange(chosen.shape[1])) / np.sqrt(sharing)  # not all the same
        R = np.tile(0.01 * np.eye(chosen.shape[1]), (len(chosen), 1, 1))
        return {"v": sizes * rows[..., 0], "M": sizes[..., None] * rows[..., 1:], "R": R}

    def filled(self, diagram: xr.Dataset) -> list[int]:
        """The number of filled roles on each branch, at its least ridge."""
        least = diagram.isel(point=diagram.ridge.argmin("point"))
        return [round(x) for x in least.square.values / self.squares(least.ridge.values)]


CASES = {
    "binary": Case("two classes", sl.theory.binary_mixture, 1 / 4, [[1, 1], [-1, -1]]),
    "xor": Case("XOR", sl.theory.xor, 1 / 8, [[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]]),
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
        roles: Any = [(0,), (-1,)] if self.width == 1 else [(0, 1), (0, 0), (-1, -1)]
        task = sl.tasks.BinaryMixture(width=self.width, precision=math.inf)
        options: Any = {"low": 0.02, "high": 0.3, "search_at": [0.11, 0.27]}
        starts = CASES["binary"].starts(*roles)
        limit = sl.effective_dynamics(task)
        data = {"binary": limit.bifurcations("ridge", init=starts, **options)}
        if self.xor:
            roles = [(0, 1, 2, 3), (0, 0, 2, 3), (0, 0, 2, 2), (0, 0, 0, 0), (-1, -1, -1, -1)]
            options = {"low": 0.01, "high": 0.15, "search_at": [0.055, 0.135]}
            starts = CASES["xor"].starts(*roles)
            limit = sl.effective_dynamics(sl.tasks.XorMixture(precision=math.inf))
            data["xor"] = limit.bifurcations("ridge", init=starts, **options)
        return {
            name: diagram.assign(square=(diagram.v**2).sum("neuron", skipna=False))
            for name, diagram in data.items()
        }

    def check(self, data: Data) -> list[Check]:
        """Where branches end, and |v|² = C(ridge) times the number of filled roles."""
        results = []
        for name, diagram in data.items():
            case = CASES[name]
            filled = case.filled(diagram)
            ends = diagram.ridge.values[diagram.special.values != ""]
            distances = [0.0]
            for number, count in enumerate(filled):
                branch = diagram.isel(branch=number)
                below = branch.isel(point=branch.ridge < case.threshold - 1e-6)
                counts = below.square.values / case.squares(below.ridge.values)
                distances.extend(np.abs(counts - count))
            results += [
                checks.exact(
                    f"{case.title}: ridge where branches meet",
                    case.threshold + np.max(np.abs(ends - case.threshold)),
                    case.threshold,
                    1e-8,
                    note=f"the furthest of {len(ends)}",
                ),
                checks.exact(
                    f"{case.title}: |v|² / C furthest from a whole number",
                    np.max(distances),
                    0.0,
                    1e-7,
                ),
                checks.exact(
                    f"{case.title}: most filled roles", max(filled), diagram.sizes["neuron"], 0.0
                ),
            ]
        return results

    def draw(self, data: Data) -> Figure:
        """|v|² of all branches over the ridge, and multiples of C."""
        figure, panels = sl.plot.panels(
            1, len(data), width=6.4 if len(data) == 1 else 4.6, height=3.8
        )
        for panel, (name, diagram) in zip(panels[0], data.items(), strict=True):
            draw_branches(panel, diagram, CASES[name])
        sl.plot.legend_below(figure, 3)
        return figure


def draw_branches(panel: Axes, diagram: xr.Dataset, case: Case) -> None:
    """|v|² of the branches of one task, and the closed form."""
    sl.plot.bifurcation(diagram, "square", axes=panel)
    ridges = np.linspace(diagram.attrs["low"], case.threshold - 1e-9, 12)[:-1]
    look: Any = {"ms": 4.5, "color": sl.plot.style.PALETTE["orange"], "zorder": 4}
    for count in set(case.filled(diagram)) - {0}:
        squares = count * case.squares(ridges)
        panel.plot(ridges, squares, "o", label="closed form, multiples of $C$", **look)
    panel.set(title=f"{case.title}, $K$ = {diagram.sizes['neuron']}", xlabel=r"ridge $\alpha$")
    panel.set_ylabel("$|v|^2$")
    panel.set_ylim(bottom=-0.3)
