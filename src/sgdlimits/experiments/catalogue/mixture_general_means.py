"""Softmax regression on classes with correlated means and unequal weights: overlaps and norms."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting
from sgdlimits.results import select

NODES = 2**12  # 1e-12 from the limit with 2^15 nodes
SHOWN = 20  # runs drawn as lines


class Parameters(Settings):
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
    time: float = setting(10.0, "duration, in units of dim/step samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from one random start and its limit, with and without noise in the data."""
    first, second, third = p.cosines
    task = sl.tasks.GaussianMixture(
        classes=3,
        weights=np.array(p.weights),
        means_gram=[[1, first, second], [first, 1, third], [second, third, 1]],
        precision=p.precision,
        ridge=p.ridge,
    )
    start = task.random_state(p.dim, seed=seed)
    common: dict[str, Any] = {
        "dim": p.dim,
        "time": p.time,
        "step": p.step,
        "init": start,
        "points": 51,
    }
    sgd = sl.simulate(task, runs=p.runs, seed=seed, **common)
    limit = sl.effective_dynamics(task, step=p.step, nodes=NODES)
    noiseless = sl.simulate(task.replace(precision=math.inf), runs=2, seed=seed, **common)
    return {"sgd": sgd, "limit": limit.solve(start, times=sgd.time), "noiseless": noiseless}


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Paths of overlaps and norms; the decay of what is orthogonal to noiseless data."""
    sgd, limit, noiseless = data["sgd"], data["limit"], data["noiseless"]
    overlaps = [f"M[{a},mu{b}]" for a in range(3) for b in range(3)]
    products = ["R[0,0]", "R[0,1]", "R[1,1]", "R[1,2]", "R[2,2]"]
    norm = noiseless.R[0, :, 0, 0].values
    decay = math.exp(-2 * p.ridge * p.time)
    return [
        checks.path("all overlaps over time", sgd, limit, overlaps),
        checks.path("R over time", sgd, limit, products),
        checks.exact(
            "R₁₁(t)/R₁₁(0) at the end, λ = ∞",
            norm[-1] / norm[0],
            decay,
            # one step multiplies by (1 − δβ)², not by exp(−2δβ)
            2 * p.ridge**2 * p.time * p.step / p.dim,
            note="−2βR in (5.6) and (5.18), printed −βR",
            printed=math.sqrt(decay),
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """One panel of overlaps for each class vector, and one of R."""
    figure, panels = picture.panels(2, 2, width=4.6, height=2.9, sharex=True)
    for a, panel in enumerate(panels.ravel()[:3]):
        names = {f"M[{a},mu{b}]": f"SGD, class or mean {b + 1}" for b in range(3)}
        _draw_lines(panel, data, names)
        panel.set(title=f"class {a + 1}, weight {p.weights[a]:g}")
        panel.set(ylabel=rf"$\langle x^{a + 1}, \mu_b \rangle$")
    _draw_lines(
        panels[1, 1], data, {f"R[{a},{a}]": f"SGD, class or mean {a + 1}" for a in range(3)}
    )
    panels[1, 1].set(title="orthogonal to the means", ylabel="$R_{aa}$")
    for panel in panels[1]:
        panel.set_xlabel(sl.plot.style.TIME_LABEL)
    picture.legend(figure, panels)
    return figure


def _draw_lines(axes: Axes, data: Data, names: dict[str, str]) -> None:
    colours = [sl.plot.style.PALETTE[name] for name in ("blue", "vermillion", "green")]
    for (name, label), colour in zip(names.items(), colours, strict=True):
        runs = select(data["sgd"].isel(run=slice(SHOWN)), name).transpose("time", "run")
        lines = axes.plot(runs.time, runs, color=colour, lw=0.6, alpha=0.5)
        lines[0].set_label(label)
        axes.plot(runs.time, select(data["limit"], name), "k", lw=1.3, label="limit")


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Thm 5.7",
    claim="Any means and weights: overlaps and R follow (5.5) and the corrected (5.6).",
    parameters=Parameters,
    tiny={"dim": 200, "runs": 40, "time": 5.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)
