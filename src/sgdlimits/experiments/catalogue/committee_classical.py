"""A committee learns a smaller one by small steps: population risk of SGD and of its limit."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

POINTS = 61
LONG = 1e5  # when the limit has come to rest, in units of dim/step samples


class Parameters(Settings):
    """The slides differentiate (y − f)², we (y − f)²/2: our step is 2γ, our time 2p theirs.

    A student with fixed readout can be equal to the teacher only if k divides p.
    """

    teachers: tuple[int, ...] = setting((2, 5), "numbers of teacher neurons k", least=1)
    width: int = setting(10, "number of student neurons p", least=1)
    gamma: float = setting(0.05, "learning rate γ of the slides", above=0)
    noise: float = setting(1e-3, "variance Δ of the label noise", above=0)
    dim: int = setting(25, "dimension d", least=8)
    runs: int = setting(24, "independent runs of SGD", least=10)
    time: float = setting(400.0, "duration, in units of dim/step samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """Excess risk of SGD from one random start, and of the limit until it rests."""
    data: Data = {}
    for teachers in p.teachers:
        task = sl.tasks.TeacherStudent(
            activation="erf",
            teacher_width=teachers,
            student_width=p.width,
            noise=p.noise,
            scale="mean",
        )
        start = task.random_state(p.dim, seed=seed)
        limit = sl.effective_dynamics(task, step=2 * p.gamma)
        sgd = sl.simulate(
            task,
            dim=p.dim,
            runs=p.runs,
            time=p.time,
            step=2 * p.gamma,
            seed=seed,
            init=start,
            points=POINTS,
        )
        later = np.append(0.0, np.geomspace(0.3, LONG, POINTS - 1))
        data[f"sgd_{teachers}"] = excess_risk(sgd)
        data[f"limit_{teachers}"] = excess_risk(limit.solve(start, times=sgd.time))
        data[f"later_{teachers}"] = excess_risk(limit.solve(start, times=later))
    return data


def excess_risk(result: xr.Dataset) -> xr.Dataset:
    """½E(f* − f)², from the arcsine law of erf units with coefficients 1/k and −1/p."""
    overlaps = result.M.transpose(..., "neuron", "anchor").values
    orthogonal = result.R.transpose(..., "neuron", "neuron_").values
    width, teachers = overlaps.shape[-2:]
    gram = orthogonal + overlaps @ np.swapaxes(overlaps, -1, -2)
    identity = np.broadcast_to(np.eye(teachers), (*gram.shape[:-2], teachers, teachers))
    upper = np.concatenate([gram, overlaps], axis=-1)
    lower = np.concatenate([np.swapaxes(overlaps, -1, -2), identity], axis=-1)
    covariance = np.concatenate([upper, lower], axis=-2)
    scale = np.sqrt(1 + np.diagonal(covariance, axis1=-2, axis2=-1))
    signs = np.concatenate([np.full(width, -1 / width), np.full(teachers, 1 / teachers)])
    angles = np.arcsin(covariance / (scale[..., :, None] * scale[..., None, :]))
    over = [dim for dim in ("run", "time") if dim in result.dims]
    return xr.Dataset(
        {"risk": (over, np.einsum("...ab,a,b->...", angles, signs, signs) / np.pi)},
        coords={name: result[name] for name in over},
        attrs=result.attrs,
    )


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Mean risk over time against the limit, and the risk of the limit at rest."""
    found = []
    for teachers in p.teachers:
        runs, path = data[f"sgd_{teachers}"], data[f"limit_{teachers}"]
        rest = data[f"later_{teachers}"].risk.values[-1]
        floor = p.noise / 2
        found += [
            checks.path(f"mean risk over time, k = {teachers}", runs, path, "risk"),
            checks.exact(
                f"risk at rest over the noise floor Δ/2, k = {teachers}",
                (rest + floor) / floor,
                1.0,
                # the excess at rest is of the order of the step on each student's gradient, 2γ/p
                2 * p.gamma / p.width,
            ),
        ]
    return found


def draw_means(axes: Axes, sgd: xr.Dataset, colour: str, size: float = 5.0) -> None:
    """Mean and standard deviation over runs at a few times, even on a logarithmic axis."""
    last = sgd.sizes["time"] - 1
    risk = sgd.risk.isel(time=np.unique(np.geomspace(1, last, 12).round().astype(int)))
    axes.errorbar(
        risk.time,
        risk.mean("run"),
        risk.std("run", ddof=1),
        fmt="o",
        ms=size,
        capsize=2,
        mfc="white",
        color=colour,
        zorder=3,
        label=f"SGD, $d = {sgd.attrs['dim']}$",
    )


def draw(p: Parameters, data: Data) -> Figure:
    """Excess risk over time on logarithmic axes, one panel for each teacher."""
    figure, panels = picture.panels(1, len(p.teachers), height=3.5, sharey=True)
    for panel, teachers in zip(panels[0], p.teachers, strict=True):
        later = data[f"later_{teachers}"].isel(time=slice(1, None))
        panel.plot(later.time, later.risk, "k", label="limit")
        draw_means(panel, data[f"sgd_{teachers}"], sl.plot.style.SIMULATION)
        panel.axhline(p.noise / 2, color="k", ls=":", lw=1, label="noise floor Δ/2")
        panel.set(xscale="log", yscale="log", xlabel=sl.plot.style.TIME_LABEL)
        panel.set(title=f"$k = {teachers}$, $p = {p.width}$")
    panels[0, 0].set_ylabel("excess risk")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="L23",
    figure="classical regime",
    claim="Small steps at fixed d: the risk of SGD follows the limit, over a plateau to the floor.",
    parameters=Parameters,
    tiny={"teachers": (2,), "width": 2, "gamma": 0.1, "dim": 20, "time": 60.0},
    quick={"teachers": (2, 4), "width": 4, "time": 150.0},
    compute=compute,
    check=check,
    draw=draw,
)
