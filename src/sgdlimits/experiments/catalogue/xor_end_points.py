"""XOR: where SGD ends at several noise levels, and the rest points without noise.

At the paper's ridge of 0.1, close to the threshold 1/8, neurons grow at rate 1/8 - 0.1 only: after
time 100 many runs are still on their way, and the noise of λ = 10 keeps them all near zero.
"""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

LONG = 1500.0  # until rest: the slowest rate is 1/8 - ridge


class Parameters(Settings):
    """Noise levels of the data, from strong to weak; no noise at all is always added."""

    precisions: tuple[float, ...] = setting(
        (10.0, 100.0, 1000.0), "precisions λ of the data", least=1
    )
    ridge: float = setting(0.1, "ridge α, below 1/8", above=0, most=0.11)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """End points of SGD; without noise also of the limit from the same starts, and at rest."""
    ends = []
    precisions = [*p.precisions, math.inf]
    for number, precision in enumerate(precisions):
        task = sl.tasks.XorMixture(width=4, precision=precision, ridge=p.ridge)
        runs = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, points=2, seed=seed + number)
        ends.append(runs.isel(time=-1))
    limit = sl.effective_dynamics(task)
    first, last = ({name: runs[name].values[:, k] for name in ("v", "M", "R")} for k in (0, -1))
    over = ("precision", "run", "neuron")
    found = xr.Dataset(
        {
            "v": (over, np.array([end.v.values for end in ends])),
            "m": ((*over, "anchor"), np.array([end.M.values for end in ends])),
        },
        {"precision": precisions, "anchor": ["mu", "nu"]},
    )
    return {
        "ends": found,
        "limit": limit.solve(first, time=p.time, points=2)[["M"]],
        "rest": limit.solve(last, time=LONG, points=2)[["v", "M"]],
    }


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Without noise: each run against the limit from its own start, and the rest points."""
    m = np.abs(data["ends"].m.sel(precision=math.inf, anchor="mu", neuron=0).values)
    target = np.abs(data["limit"].M.values[:, -1, 0, 0])
    rest = data["rest"].isel(time=-1)
    sums = np.sum(roles(rest.v.values, rest.M.values) * rest.v.values[..., None] ** 2, axis=1)
    square = sl.theory.xor.ring_radius_squared(p.ridge)
    filled = sums > square / 2
    return [
        checks.mean(
            "|m₁^μ| of SGD minus that of the limit from the same start, λ = ∞",
            m - target,
            0.0,
            note=f"{np.mean(target):.4f} on average",
        ),
        checks.exact(
            "Σ v² over each set of aligned neurons, once at rest: furthest from C",
            square + np.max(np.abs(sums[filled] - square)),
            square,
            1e-6,
        ),
        checks.exact("furthest from 0, over empty sets", np.max(sums[~filled]), 0.0, 1e-6),
    ]


def roles(v: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Which neurons are aligned with +μ, -μ (v > 0), +ν and -ν (v < 0), along a last axis."""
    mu, nu = m[..., 0], m[..., 1]
    up, down = v > 0, v < 0
    return np.stack([up & (mu > 0), up & (mu < 0), down & (nu > 0), down & (nu < 0)], axis=-1)


def draw(p: Parameters, data: Data) -> Figure:
    """One panel for each precision in the plane of two neurons; optimal end points apart."""
    ends = data["ends"]
    figure, panels = picture.panels(
        1, len(ends.precision), width=2.6, height=3.6, sharex=True, sharey=True
    )
    size = math.sqrt(sl.theory.xor.ring_radius_squared(p.ridge))
    arc = size * np.exp(1j * np.linspace(0, np.pi / 2, 60))
    corners = size * np.array([[1, -1], [-1, 1], [1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]])
    for panel, precision in zip(panels[0], ends.precision.values, strict=True):
        here = ends.sel(precision=precision)
        optimal = np.all(np.any(roles(here.v.values, here.m.values), axis=1), axis=1)
        m = here.m.sel(anchor="mu").values
        for chosen, color, label in (
            (~optimal, sl.plot.style.SIMULATION, "end points of SGD"),
            (optimal, sl.plot.style.PALETTE["orange"], "with the signs of an optimal network"),
        ):
            panel.plot(*m[chosen, :2].T, ".", color=color, ms=5, alpha=0.5, label=label)
        for sign in (1, -1):
            panel.plot(sign * arc.real, sign * arc.imag, "k--", lw=1.4, label="rings, λ = ∞")
        panel.plot(*corners.T, "kx", ms=8, label="stable rest points, λ = ∞")
        word = f"{precision:g}" if math.isfinite(precision) else "∞"
        panel.set(title=f"λ = {word}", xlabel=r"$m_1^\mu$", aspect="equal")
        panel.margins(0.1)
    panels[0, 0].set_ylabel(r"$m_2^\mu$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 9",
    claim="XOR: the end points of SGD approach the rest points of the limit λ = ∞ as λ grows.",
    parameters=Parameters,
    tiny={"precisions": (100.0,), "runs": 64, "time": 20.0},
    quick={"runs": 128},
    compute=compute,
    check=check,
    draw=draw,
)
