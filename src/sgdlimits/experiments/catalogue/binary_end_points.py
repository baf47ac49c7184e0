"""Two classes: where SGD ends at several noise levels, and the rest points without noise."""

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """Noise levels of the data, from strong to weak."""

    precisions: tuple[float, ...] = setting(
        (1.0, 10.0, 100.0, 1000.0), "precisions λ of the data", least=1
    )
    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, until all runs rest; in units of dim samples", least=80)


def compute(p: Parameters, seed: int) -> Data:
    """End points of SGD from random starts, and rest points of the limit at the same precision."""
    ends = []
    for number, precision in enumerate(p.precisions):
        task = sl.tasks.BinaryMixture(precision=precision, ridge=p.ridge)
        runs = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, points=2, seed=seed + number)
        ends.append(runs.M.values[:, -1, :, 0])
    found = xr.Dataset(
        {
            "m": (("precision", "run", "neuron"), np.array(ends)),
            "ring": ("precision", [2 * overlap(p, x, 1.0) ** 2 for x in p.precisions]),
            "point": ("precision", [overlap(p, x, -1.0) for x in p.precisions]),
        },
        {"precision": np.array(p.precisions)},
    )
    return {"ends": found}


def overlap(p: Parameters, precision: float, sign: float) -> float:
    """m₁ at the rest point m₂ = sign m₁ of Prop. 4.1: amid a ring if +, stable if -."""
    pair, ring = np.array([1.0, sign]), sign > 0

    def velocity(x: np.ndarray) -> list[float]:
        v, m, same, cross = x
        found = sl.theory.binary_mixture.drift(
            v * pair, m * pair, [[same, cross], [cross, same]], precision=precision, ridge=p.ridge
        )
        # on a ring all weights are parallel
        last = same - cross if ring else found.orthogonal[0, 1]
        return [found.readout[0], found.overlaps[0], found.orthogonal[0, 0], last]

    square = radius_squared(p) / (2 if ring else 1)
    rest = square / precision
    guess = [math.sqrt(square), math.sqrt(square), rest, rest * ring]
    return float(optimize.root(velocity, guess).x[1])


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Squared radius of the ring at every precision; the points at the largest, where they meet."""
    found = []
    for precision in p.precisions:
        here = data["ends"].sel(precision=precision)
        m = here.m.values
        same = m[:, 0] * m[:, 1] > 0
        found += [
            checks.mean(
                f"|m|² of end points with m₁m₂ > 0, λ = {precision:g}",
                np.sum(m[same] ** 2, axis=1),
                here.ring,
                note=f"{radius_squared(p):.4f} at λ = ∞",
            )
        ]
    largest = data["ends"].sel(precision=max(p.precisions))
    m = largest.m.values
    apart = np.abs(m[m[:, 0] * m[:, 1] < 0])
    return [
        *found,
        checks.mean(
            f"|m₁| of the others, λ = {max(p.precisions):g}",
            apart[:, 0],
            largest.point,
            note=f"{math.sqrt(radius_squared(p)):.4f} at λ = ∞",
        ),
    ]


def radius_squared(p: Parameters) -> float:
    """C of Prop. 4.2."""
    return sl.theory.binary_mixture.ring_radius_squared(p.ridge)


def draw(p: Parameters, data: Data) -> Figure:
    """One panel for each precision, with the rest points at that precision and without noise."""
    figure, panels = picture.panels(
        1, len(p.precisions), width=2.6, height=3.2, sharex=True, sharey=True
    )
    dots: dict[str, Any] = {"color": sl.plot.style.SIMULATION, "ms": 5, "alpha": 0.35}
    here_too = {"color": sl.plot.style.PATHS, "label": "rest points at this λ"}
    for panel, precision in zip(panels[0], p.precisions, strict=True):
        here = data["ends"].sel(precision=precision)
        panel.plot(*here.m.values.T, ".", label="end points of SGD", **dots)
        size = float(here.point)
        panel.plot([size, -size], [-size, size], "+", ms=10, zorder=5, **here_too)
        for fixed in sl.theory.binary_mixture.fixed_points(p.ridge):
            if isinstance(fixed, sl.theory.binary_mixture.QuarterRing):
                angles = np.linspace(0, np.pi / 2, 60)
                arc = np.array([fixed.at(angle).readout for angle in angles]).T
                panel.plot(*arc, "k--", lw=1.4, label="unstable rest points, λ = ∞")
                panel.plot(*arc * math.sqrt(here.ring / fixed.radius_squared), lw=1.2, **here_too)
            elif fixed.stable:
                panel.plot(*fixed.readout, "kx", ms=9, zorder=6, label="stable rest points, λ = ∞")
        panel.set(title=f"λ = {precision:g}", xlabel="$m_1$", aspect="equal")
        panel.margins(0.1)
    panels[0, 0].set_ylabel("$m_2$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 6",
    claim="Binary mixture: SGD ends on quarter rings or at optimal points, explicit as λ → ∞.",
    parameters=Parameters,
    tiny={"precisions": (10.0, 1000.0), "runs": 64},
    quick={"runs": 250},
    compute=compute,
    check=check,
    draw=draw,
)
