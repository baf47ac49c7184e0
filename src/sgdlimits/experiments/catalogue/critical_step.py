"""Critical against small step sizes: what the noise of high dimension does to a warm start."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

ORDER = 3


class Parameters(Settings):
    """Step sizes, the signal, and one start for all runs."""

    steps: tuple[float, ...] = setting(
        (1.0, 0.3, 0.1, 0.01), "step sizes c, in units of 1/dim", above=0, most=1
    )
    snr: float = setting(4.0, "signal-to-noise ratio λ", above=0, most=10)
    overlap: float = setting(0.15, "overlap m at the start; r² is 1", above=0, most=2)
    dim: int = setting(2000, "dimension n", least=500)
    runs: int = setting(40, "independent runs of SGD for each step size", least=16)
    time: float = setting(1.5, "duration, in units of dim/step samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD, the limit, and the population dynamics, all from one start."""
    task = sl.tasks.SpikedTensor(order=ORDER, snr=p.snr)
    start = {"m": p.overlap, "r2": 1.0}
    data = {}
    for number, step in enumerate(p.steps):
        data[f"sgd_{step:g}"] = sl.simulate(
            task,
            dim=p.dim,
            runs=p.runs,
            time=p.time,
            step=step,
            seed=seed + number,
            init=start,
            points=101,
        )
        limit = sl.effective_dynamics(task, step=step)
        path = limit.solve(start, time=p.time, points=101)
        data[f"limit_{step:g}"] = path
        data[f"fluctuations_{step:g}"] = limit.fluctuations(path)
    still = sl.effective_dynamics(task, step=1e-9)
    data["population"] = still.solve(start, time=p.time, points=101)
    return data


def _rest(p: Parameters, data: Data, step: float) -> float:
    """The overlap, in closed form, of the rest point that the limit approaches."""
    end = float(data[f"limit_{step:g}"].m[-1])
    points = sl.theory.spiked_tensor.fixed_points(ORDER, p.snr, step)
    return min((point.overlap for point in points), key=lambda overlap: abs(overlap - end))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Overlap and radius at the end, and the path at the largest step."""
    found, ratios = [], []
    without = f"population dynamics: {float(data['population'].m[-1]):.3g}"
    for step in p.steps:
        ends = data[f"sgd_{step:g}"].isel(time=-1)
        name = f"m at the end, c = {step:g}"
        found.append(checks.mean(name, ends.m.values, _rest(p, data, step), note=without))
        ratios.append(ends.r2.values / step)
    found.append(checks.mean("r²/c at the end, all c", np.concatenate(ratios), 1.0))
    largest = f"{max(p.steps):g}"
    found.append(
        checks.path(
            f"path of m and r², c = {largest}",
            data[f"sgd_{largest}"],
            data[f"limit_{largest}"],
            ["m", "r2"],
            fluctuations=data[f"fluctuations_{largest}"],
        )
    )
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """Overlap and radius over time, and the rest points as the step size moves."""
    figure, panels = picture.panels(1, 3, width=4.0, height=3.6)
    for panel, name in zip(panels[0], ("m", "r2"), strict=False):
        for step, colour in _colours(p).items():
            runs, path = data[f"sgd_{step:g}"], data[f"limit_{step:g}"]
            panel.plot(runs.time, runs[name][:8].T, color=colour, alpha=0.35, lw=0.6)
            mean = runs[name].mean("run").isel(time=slice(None, None, 5))
            panel.plot(mean.time, mean, "o", ms=4, color=colour, label=f"SGD, c = {step:g}")
            label = "limit" if step == p.steps[-1] else None
            panel.plot(path.time, path[name], "k", lw=1.2, label=label)
        still = data["population"]
        panel.plot(still.time, still[name], "k:", lw=2, label="population dynamics, c → 0")
        panel.set(xlabel=sl.plot.style.TIME_LABEL, ylabel=sl.plot.symbol(name))
    _draw_rest_points(panels[0, 2], p, data)
    picture.legend(figure, panels)
    return figure


def _colours(p: Parameters) -> dict[float, str]:
    names = ("blue", "vermillion", "green", "orange", "purple", "sky blue")
    return {step: sl.plot.style.PALETTE[names[i % 6]] for i, step in enumerate(p.steps)}


def _draw_rest_points(panel: Axes, p: Parameters, data: Data) -> None:
    # λ is critical at the step c with λ_c·c^{k/2} = λ
    fold = (p.snr / sl.theory.spiked_tensor.critical_snr(ORDER)) ** (2 / ORDER)
    steps = np.linspace(1e-3, min(1.1, fold), 201)
    dagger, star = np.transpose(
        [sl.theory.spiked_tensor.overlaps(ORDER, p.snr, step) for step in steps]
    )
    panel.plot(steps, star, "k", lw=1.2, label=r"$m_\star$ (stable)")
    panel.plot(steps, dagger, "k--", lw=1.2, label=r"$m_\dagger$ (unstable)")
    panel.axhline(0, color="k", lw=1.2)
    panel.axhline(p.overlap, color="0.5", ls="-.", lw=1.2, label="start")
    for step, colour in _colours(p).items():
        ends = data[f"sgd_{step:g}"].m.values[:, -1]
        panel.plot(np.full_like(ends, step), ends, ".", color=colour, ms=7)
    panel.set(xlabel="step size c", ylabel="overlap $m$ at the end")


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Sec. 2.1",
    claim="Tensor PCA: the corrector holds r² at c and traps warm starts; m† → 0 as c → 0.",
    parameters=Parameters,
    tiny={"steps": (1.0, 0.3), "dim": 1000, "runs": 24},
    quick={"steps": (1.0, 0.3, 0.1, 0.03)},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)
