"""Matrix PCA below and above its transition: over time, and in the plane of its two statistics."""

import numpy as np
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """Two signal-to-noise ratios, one on either side of 1."""

    below: float = setting(0.8, "signal-to-noise ratio below the transition", above=0, most=0.99)
    above: float = setting(1.2, "signal-to-noise ratio above the transition", least=1.01)
    dim: int = setting(1500, "dimension n", least=100)
    runs: int = setting(200, "independent runs of SGD", least=20)
    time: float = setting(10.0, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from random starts, and the diffusion that it should look like."""
    data = {}
    for number, side in enumerate(("below", "above")):
        task = sl.tasks.SpikedTensor(order=2, snr=getattr(p, side))
        data[f"sgd_{side}"] = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + number
        )
        start = task.random_states(p.dim, seed=seed + 10 + number, runs=range(p.runs))
        data[f"sde_{side}"] = sl.effective_dynamics(task).sample_paths(
            start, dim=p.dim, time=p.time, runs=p.runs, seed=seed + number
        )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Variance of the stable process, end points above, and the law of the end points."""
    below = np.sqrt(p.dim) * data["sgd_below"].m.values[:, -1]
    decay = np.exp(-8 * (1 - p.below) * p.time)
    found = [
        checks.variance(
            "variance of √n·m below, Ornstein–Uhlenbeck",
            below,
            (1 - decay) / (1 - p.below) + decay,
        ),
        checks.distribution(
            "law of m at the end above: SGD against SDE", *(_ends(data, x) for x in ("sgd", "sde"))
        ),
    ]
    r2 = data["sgd_above"].r2.values[:, -1]
    return [*found, checks.mean("r² at the end above", r2, 1.0)]


def _ends(data: Data, kind: str) -> np.ndarray:
    return data[f"{kind}_above"].m.values[:, -1]


def draw(p: Parameters, data: Data) -> Figure:
    """Time series on the left, planes on the right."""
    figure, panels = picture.panels(2, 2)
    for (left, right), side in zip(panels, ("below", "above"), strict=True):
        snr, runs = getattr(p, side), data[f"sgd_{side}"].isel(run=slice(30))
        left.plot(runs.time, runs.m.T, color=sl.plot.style.SIMULATION, alpha=0.35, lw=0.8)
        sl.plot.plane(runs, None, "m", "r2", axes=right)
        for point in sl.theory.spiked_tensor.fixed_points(2, snr):
            if point.radius_squared > 0:
                picture.rest_point(right, point.overlap, point.radius_squared, stable=point.stable)
                left.axhline(point.overlap, color="k", ls="-" if point.stable else ":", lw=1)
        left.set(title=f"λ = {snr:g}", xlabel=sl.plot.style.TIME_LABEL, ylabel="$m$")
        right.set(title=f"λ = {snr:g}", ylim=(0.7, 1.3))
    spread = np.sqrt(1 / (1 - p.below) / p.dim)
    for level in (-2 * spread, 2 * spread):
        panels[0, 0].axhline(level, color="k", ls="--", lw=1, label="± 2 s.d. of the OU process")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 1",
    claim="Matrix PCA: √n·m is a stable Ornstein–Uhlenbeck process below λ = 1, unstable above.",
    parameters=Parameters,
    tiny={"dim": 200, "runs": 50},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)
