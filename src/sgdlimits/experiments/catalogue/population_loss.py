"""The population loss along SGD on spiked tensors: at the critical step size it may grow."""

import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import cumulative_simpson

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """Orders of the tensor, a signal, and where SGD starts."""

    orders: tuple[int, ...] = setting((2, 3), "orders k of the tensor", least=2, most=4)
    snr: float = setting(2.0, "signal-to-noise ratio λ", above=0, most=3)
    overlap: float = setting(0.3, "overlap m at the start", most=1)
    radius: float = setting(0.1, "squared radius r² at the start", above=0, most=2)
    dim: int = setting(10_000, "dimension n", least=1_000)
    runs: int = setting(128, "independent runs of SGD for each k", least=20)
    time: float = setting(1.5, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from one start, the limit, and (3.4) integrated along the limit."""
    data = {}
    start = {"m": p.overlap, "r2": p.radius}
    for order in p.orders:
        task = sl.tasks.SpikedTensor(order=order, snr=p.snr)
        runs = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + order, init=start, points=101
        )
        data[f"sgd_{order}"] = _with_loss(p, order, runs)
        path = sl.effective_dynamics(task).solve(start, time=p.time, points=2001)
        rate = sl.theory.spiked_tensor.loss_drift(path.m, path.r2, order=order, snr=p.snr)
        path = _with_loss(p, order, path)
        grown = cumulative_simpson(rate, x=path.time.values, initial=0)
        path = path.assign(integrated=("time", path.loss.values[0] + grown))
        data[f"limit_{order}"] = path.isel(time=slice(None, None, 20))
        small = sl.effective_dynamics(task, step=1e-6).solve(start, time=p.time, points=101)
        data[f"population_{order}"] = _with_loss(p, order, small)
    return data


def _with_loss(p: Parameters, order: int, states: xr.Dataset) -> xr.Dataset:
    """States, and Φ = −2λmᵏ + R²ᵏ, the population loss up to a constant."""
    loss = sl.theory.spiked_tensor.population_loss(
        states.m.values, states.r2.values, order=order, snr=p.snr
    )
    return states.assign(loss=(states.m.dims, loss))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Φ of the limit against (3.4) integrated, and against Φ along SGD."""
    found = []
    for order in p.orders:
        path = data[f"limit_{order}"]
        gap = float(abs(path.integrated - path.loss).max())
        name = f"largest gap between (3.4) integrated and Φ of the limit, k = {order}"
        found.append(checks.exact(name, gap, 0.0, 1e-6))
        name = f"Φ along SGD against Φ of the limit, k = {order}"
        found.append(checks.path(name, data[f"sgd_{order}"], path, "loss"))
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """Φ(t) for each k."""
    figure, panels = picture.panels(1, len(p.orders), height=3.6)
    for panel, order in zip(panels.ravel(), p.orders, strict=True):
        runs, path = data[f"sgd_{order}"], data[f"limit_{order}"]
        colour = sl.plot.style.SIMULATION
        few = runs.isel(run=slice(20))
        panel.plot(few.time, few.loss.T, color=colour, alpha=0.25, lw=0.6)
        mean = runs.loss.mean("run").isel(time=slice(None, None, 4))
        panel.plot(mean.time, mean, "o", ms=4, color=colour, label=f"SGD, mean of {p.runs} runs")
        panel.plot(path.time, path.integrated, "k", label="limit (3.4)")
        population = data[f"population_{order}"]
        label = "gradient flow on Φ: without corrector"
        panel.plot(population.time, population.loss, "k:", label=label)
        panel.set(title=f"k = {order}", xlabel=sl.plot.style.TIME_LABEL)
        panel.set_ylabel("population loss Φ")
    picture.legend(figure, panels, columns=3 if len(p.orders) > 1 else 1)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="(3.4)",
    claim="The population loss follows its own ODE, in which the corrector can make it grow.",
    parameters=Parameters,
    tiny={"orders": (3,), "dim": 2_000, "runs": 24, "time": 1.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)
