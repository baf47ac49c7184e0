"""Softmax regression on k Gaussian classes: one class vector finds its own mean."""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SHOWN = 6  # runs drawn as lines


class Parameters(Settings):
    """Orthonormal means, equal weights."""

    classes: int = setting(10, "number of classes k", least=2)
    precision: float = setting(10.0, "precision λ of the data noise", above=0)
    ridge: float = setting(0.01, "ridge β", above=0)
    dim: int = setting(1000, "dimension d", least=50)
    runs: int = setting(128, "independent runs of SGD", least=10)
    time: float = setting(50.0, "duration, in units of dim samples", above=0)
    # with 2^12 nodes M is 5e-4 from its value with 2^15: a third of a standard error at most
    nodes: int = setting(2**12, "Sobol nodes of the limit", least=2**8)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from one random start, its limit, and the noiseless drift at the predicted rest point."""
    task = sl.tasks.GaussianMixture(classes=p.classes, precision=p.precision, ridge=p.ridge)
    start = task.random_state(p.dim, seed=seed)
    sgd = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, seed=seed, init=start, points=51)[
        ["M"]
    ]
    limit = sl.effective_dynamics(task, nodes=p.nodes).solve(start, times=sgd.time)
    overlap = sl.theory.gaussian_mixture.orthonormal_overlap(p.classes, 1 / p.classes, p.ridge)
    corner = -overlap / (p.classes - 1)
    rest = {
        "M": np.full((p.classes, p.classes), corner) + (overlap - corner) * np.eye(p.classes),
        "R": np.zeros((p.classes, p.classes)),
    }
    noiseless = sl.effective_dynamics(task.replace(precision=math.inf))
    return {
        "sgd": sgd.isel(neuron=[0]),
        "sgd_end": sgd.isel(time=-1).mean("run"),
        "limit": limit[["M"]].isel(neuron=[0]),
        "rest": xr.Dataset({"velocity": (("neuron", "anchor"), noiseless.drift(rest)["M"])}),
    }


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Paths of two overlaps, the end of the first, and the rest point of Section 5.3.1."""
    names = ["M[0,mu0]", "M[0,mu1]"]
    ends = data["sgd"].M.isel(neuron=0, time=-1)
    end = data["limit"].M.isel(neuron=0, time=-1)
    collapsed = sl.theory.gaussian_mixture.orthonormal_overlap(
        p.classes, 1 / p.classes, p.ridge * p.dim
    )
    return [
        checks.path("overlaps with μ₁ and μ₂ over time", data["sgd"], data["limit"], names),
        checks.mean(
            "overlap with μ₁ at the end",
            ends[:, 0],
            end[0],
            note="printed: where the rule x ← x − δ∇L − βx of (2.1) would rest",
            printed=collapsed,
        ),
        checks.mean(
            "mean overlap with the other means at the end",
            ends[:, 1:].mean("anchor"),
            end[1:].mean(),
        ),
        checks.exact(
            "largest velocity at m₁₁ of Section 5.3.1, λ = ∞",
            np.abs(data["rest"].velocity).max(),
            0.0,
            1e-9,
        ),
    ]


def _draw_overlaps(axes: Axes, sgd: xr.Dataset, limit: xr.Dataset) -> None:
    for anchor, name in enumerate(sgd.anchor.values):
        word = r"$\mu_1$" if anchor == 0 else r"$\mu_2 \dots \mu_k$"
        colour = "blue" if anchor == 0 else "orange"
        lines = axes.plot(
            sgd.time,
            sgd.M.sel(anchor=name).isel(neuron=0).T,
            color=sl.plot.style.PALETTE[colour],
            lw=0.7,
            alpha=0.6,
        )
        lines[0].set_label(f"SGD, overlap with {word}")
        axes.plot(limit.time, limit.M.sel(anchor=name).isel(neuron=0), "k", lw=1, label="limit")
    axes.set(xlabel=sl.plot.style.TIME_LABEL, ylabel=r"$\langle x^1, \mu_b \rangle$")


def draw(p: Parameters, data: Data) -> Figure:
    """Overlaps of the first class vector over time on the left, all overlaps at the end."""
    figure, panels = picture.panels(1, 2, height=3.6, width_ratios=(1.4, 1))
    left, right = panels[0]
    _draw_overlaps(left, data["sgd"].isel(run=slice(SHOWN)), data["limit"])
    overlap = sl.theory.gaussian_mixture.orthonormal_overlap(p.classes, 1 / p.classes, p.ridge)
    left.axhline(overlap, color="k", ls=":", lw=1, label="at rest for λ = ∞")
    matrix = data["sgd_end"].M.values
    size = np.abs(matrix).max()
    image = right.imshow(matrix, cmap="PuOr_r", vmin=-size, vmax=size)
    ticks = np.arange(0, p.classes, 1 if p.classes <= 5 else 3)
    right.set(xlabel="mean $b$", ylabel="class vector $a$", title="mean over runs at the end")
    right.set(xticks=ticks, yticks=ticks, xticklabels=ticks + 1, yticklabels=ticks + 1)
    right.grid(visible=False)
    figure.colorbar(image, ax=right, label=r"$\langle x^a, \mu_b \rangle$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.3 right",
    claim="k Gaussian classes: the overlap of x¹ with μ₁ separates from those with μ₂ … μ_k.",
    parameters=Parameters,
    tiny={"classes": 3, "dim": 200, "runs": 60, "time": 10.0, "nodes": 2**10},
    quick={"dim": 300},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)
