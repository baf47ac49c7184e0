"""Matrix PCA around its transition, in the plane of overlap and radius."""

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import solve_continuous_lyapunov

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """Signal-to-noise ratios on both sides of 1, and how long SGD runs."""

    snrs: tuple[float, ...] = setting((0.8, 0.9, 1.1, 1.2), "signal-to-noise ratios λ", above=0)
    dim: int = setting(2000, "dimension n", least=100)
    runs: int = setting(150, "independent runs of SGD for each λ", least=20)
    time: float = setting(10.0, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from random starts, and the diffusion that it should look like."""
    data = {}
    for number, snr in enumerate(p.snrs):
        task = sl.tasks.SpikedTensor(order=2, snr=snr)
        data[f"sgd_{snr:g}"] = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + number, points=101
        )
        start = task.random_states(p.dim, seed=seed + 100 + number, runs=range(4 * p.runs))
        data[f"sde_{snr:g}"] = sl.effective_dynamics(task).sample_paths(
            start, dim=p.dim, time=p.time, runs=4 * p.runs, seed=seed + number, points=6
        )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Law of the end points at every λ; radius; spread deepest below the transition."""
    found = [
        checks.distribution(
            f"law of m at the end, λ = {snr:g}: SGD against SDE",
            *(data[f"{kind}_{snr:g}"].m.values[:, -1] for kind in ("sgd", "sde")),
        )
        for snr in p.snrs
    ]
    # the runs of one λ only: with four times as many, the gap of order 1/n would show
    snr = min(p.snrs)
    m, r2 = (data[f"sgd_{snr:g}"][name].values[:, -1] for name in ("m", "r2"))
    found.append(checks.mean(f"r² at the end, λ = {snr:g}", r2, 1.0))
    if snr < 1:
        expected = sl.theory.spiked_tensor.equator_variance(p.time, snr=snr)
        # the term −4m³ of the drift, no part of the limit, lowers the variance by this much
        bias = 3 / (p.dim * (1 - snr) ** 3)
        name = f"variance of √n·m at the end, λ = {snr:g}"
        found.append(checks.variance(name, np.sqrt(p.dim) * m, expected, bias=bias))
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """One plane for each λ, with the predicted spread around stable rest points."""
    rows = 2 if len(p.snrs) > 3 and len(p.snrs) % 2 == 0 else 1
    figure, panels = picture.panels(rows, len(p.snrs) // rows, sharex=True, sharey=True)
    for panel, snr in zip(panels.ravel(), p.snrs, strict=True):
        runs = data[f"sgd_{snr:g}"]
        few = runs.isel(run=slice(8))
        panel.plot(few.m.T, few.r2.T, color=sl.plot.style.PALETTE["sky blue"], alpha=0.6, lw=0.6)
        panel.plot([], [], color=sl.plot.style.PALETTE["sky blue"], label="SGD, 8 runs")
        ends = {"color": sl.plot.style.SIMULATION, "label": f"end points of {p.runs} runs"}
        panel.plot(runs.m[:, -1], runs.r2[:, -1], ".", ms=5, **ends)
        for point in sl.theory.spiked_tensor.fixed_points(2, snr):
            if point.radius_squared > 0:
                picture.rest_point(panel, point.overlap, point.radius_squared, stable=point.stable)
                if point.stable:
                    label = "95 % region of the stationary diffusion"
                    panel.plot(*_region(point.overlap, snr, p.dim), color="k", lw=1.2, label=label)
        panel.set(title=f"λ = {snr:g}", xlabel=sl.plot.symbol("m"), ylabel=sl.plot.symbol("r2"))
        panel.label_outer()
    picture.legend(figure, panels, columns=3)
    return figure


def _region(overlap: float, snr: float, dim: int) -> np.ndarray:
    """The ellipse that holds 95 % of the stationary Gaussian law around (overlap, 1)."""
    drift = sl.theory.spiked_tensor.jacobian(overlap, 1.0, order=2, snr=snr)
    noise = sl.theory.spiked_tensor.diffusion(overlap, 1.0, order=2)
    covariance = solve_continuous_lyapunov(drift, -noise) / dim
    angle = np.linspace(0, 2 * np.pi, 101)
    circle = np.sqrt(-2 * np.log(0.05)) * np.stack([np.cos(angle), np.sin(angle)])
    return np.array([[overlap], [1.0]]) + np.linalg.cholesky(covariance) @ circle


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 2",
    claim="Matrix PCA: SGD stays around (m, r²) = (0, 1) below λ = 1, goes to (±√(λ−1), 1) above.",
    parameters=Parameters,
    tiny={"snrs": (0.7, 1.3), "dim": 500, "runs": 40, "time": 6.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)
