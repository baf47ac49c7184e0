"""Two classes and XOR without noise: what ridge leaves of the rest points, up to 1/4 and 1/8."""

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

# readout and overlaps of a neuron in each role, a class mean with its sign
BINARY = np.array([[1, 1], [-1, -1]])
XOR = np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]])
THEORY: dict[str, Any] = {"binary": sl.theory.binary_mixture, "xor": sl.theory.xor}
THRESHOLD = {"binary": 0.25, "xor": 0.125}
TITLES = {"binary": "two classes", "xor": "XOR"}


class Parameters(Settings):
    """Which rest points are followed while the ridge moves."""

    width: int = setting(2, "neurons of the network for two classes", least=1, most=2)
    xor: bool = setting(True, "whether XOR is followed too")


def compute(p: Parameters, seed: int) -> Data:
    """Branches with every number of filled roles, and the origin."""
    del seed  # nothing is random
    by_width: dict[int, list[tuple[int, ...]]] = {1: [(0,)], 2: [(0, 1), (0, 0)]}
    fillings = by_width[p.width]
    data = {
        "binary": sl.effective_dynamics(
            sl.tasks.BinaryMixture(width=p.width, precision=math.inf)
        ).bifurcations(
            "ridge",
            0.02,
            0.3,
            init=starts(BINARY, *fillings, (-1,) * p.width),
            search_at=[0.11, 0.27],
        )
    }
    if p.xor:
        four = [(0, 1, 2, 3), (0, 0, 2, 3), (0, 0, 2, 2), (0, 0, 0, 0)]
        data["xor"] = sl.effective_dynamics(sl.tasks.XorMixture(precision=math.inf)).bifurcations(
            "ridge",
            0.01,
            0.15,
            init=starts(XOR, *four, (-1, -1, -1, -1)),
            search_at=[0.055, 0.135],
        )
    return {
        name: found.assign(square=(found.v**2).sum("neuron", skipna=False))
        for name, found in data.items()
    }


def starts(roles: np.ndarray, *choices: tuple[int, ...]) -> dict[str, np.ndarray]:
    """One state for each choice of the neurons' roles; -1 is a neuron at rest at zero."""
    chosen = np.array(choices)
    rows = np.concatenate([roles, 0 * roles[:1]])[chosen]
    sharing = np.sum(chosen[:, :, None] == chosen[:, None, :], axis=2)
    sizes = (1 + 0.1 * np.arange(chosen.shape[1])) / np.sqrt(sharing)  # not all the same
    return {
        "v": sizes * rows[..., 0],
        "M": sizes[..., None] * rows[..., 1:],
        "R": np.tile(0.01 * np.eye(rows.shape[1]), (len(rows), 1, 1)),
    }


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Where branches end, and |v|² = C(ridge) times the number of filled roles."""
    found = []
    for name, diagram in data.items():
        ends = diagram.ridge.values[diagram.special.values != ""]
        filled = _filled(diagram, name)
        worst = 0.0
        for ridge, square, count in zip(
            diagram.ridge.values, diagram.square.values, filled, strict=True
        ):
            below = ridge < THRESHOLD[name] - 1e-6
            radius = [THEORY[name].ring_radius_squared(value) for value in ridge[below]]
            worst = max(worst, float(np.max(np.abs(square[below] / radius - count))))
        most = {"binary": p.width, "xor": 4}[name]
        gap = np.max(np.abs(ends - THRESHOLD[name]))
        found += [
            checks.exact(
                f"{TITLES[name]}: ridge where branches meet",
                THRESHOLD[name] + gap,
                THRESHOLD[name],
                1e-8,
                note=f"the furthest of {len(ends)}",
            ),
            checks.exact(
                f"{TITLES[name]}: |v|² / C furthest from a whole number", worst, 0.0, 1e-7
            ),
            checks.exact(f"{TITLES[name]}: most filled roles", max(filled), most, 0.0),
        ]
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """|v|² of all branches over the ridge, and multiples of C."""
    figure, panels = picture.panels(1, len(data), width=4.6, height=3.8)
    for panel, (name, diagram) in zip(panels[0], data.items(), strict=True):
        sl.plot.bifurcation(diagram, "square", axes=panel)
        ridge = np.linspace(diagram.attrs["low"], THRESHOLD[name] - 1e-9, 12)[:-1]
        radius = np.array([THEORY[name].ring_radius_squared(value) for value in ridge])
        for filled in sorted(set(_filled(diagram, name)) - {0}):
            panel.plot(
                ridge,
                filled * radius,
                "o",
                ms=4.5,
                color=sl.plot.style.PALETTE["orange"],
                zorder=4,
                label="closed form, multiples of $C$",
            )
        neurons = {"binary": p.width, "xor": 4}[name]
        title = f"{TITLES[name]}, $K$ = {neurons}"
        panel.set(title=title, xlabel=r"ridge $\alpha$", ylabel="$|v|^2$")
        panel.set_ylim(bottom=-0.3)
    picture.legend(figure, panels, columns=3)
    return figure


def _filled(diagram: xr.Dataset, name: str) -> list[int]:
    """The number of filled roles on each branch, at its least ridge."""
    found = []
    for ridge, square in zip(diagram.ridge.values, diagram.square.values, strict=True):
        least = np.nanargmin(ridge)
        found.append(round(square[least] / THEORY[name].ring_radius_squared(ridge[least])))
    return found


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Prop. 4.2",
    claim="Without noise all rest points but 0 vanish at ridge 1/4 (two classes) and 1/8 (XOR).",
    parameters=Parameters,
    tiny={"width": 1, "xor": False},
    quick={"xor": False},
    compute=compute,
    check=check,
    draw=draw,
)
