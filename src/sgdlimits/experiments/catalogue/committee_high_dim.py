"""A committee learns a smaller one in high dimension: plateau, specialisation, and the gap in d."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.catalogue.committee_classical import draw_means, excess_risk
from sgdlimits.experiments.settings import Settings, setting

POINTS = 61
LONG = 1e5  # when the limit has come to rest, in units of dim/step samples
START_DIM = 100  # all dimensions start at one state, typical of this one


class Parameters(Settings):
    """The slides differentiate (y − f)², we (y − f)²/2: our step is 2γ, our time 2p theirs."""

    teachers: int = setting(4, "number of teacher neurons k", least=1)
    width: int = setting(8, "number of student neurons p", least=1)
    gamma: float = setting(0.1, "learning rate γ of the slides", above=0)
    noise: float = setting(1e-3, "variance Δ of the label noise", above=0)
    dims: tuple[int, ...] = setting((100, 300, 1000), "dimensions d, increasing", least=20)
    runs: int = setting(100, "independent runs of SGD", least=20)
    early: float = setting(15.0, "when gaps are measured, in units of dim/step samples", above=0)
    time: float = setting(200.0, "duration in the least dimension, in the same units", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """Short runs in every dimension, long ones in the least, and the limit until it rests."""
    task = sl.tasks.TeacherStudent(
        activation="erf",
        teacher_width=p.teachers,
        student_width=p.width,
        noise=p.noise,
        scale="mean",
    )
    start = task.random_state(START_DIM, seed=seed)
    step = 2 * p.gamma
    limit = sl.effective_dynamics(task, step=step)

    def run(dim: int, time: float) -> xr.Dataset:
        return sl.simulate(
            task, dim=dim, runs=p.runs, time=time, step=step, seed=seed, init=start, points=POINTS
        )

    later = np.append(0.0, np.geomspace(0.3, LONG, POINTS - 1))
    data = {
        "long": excess_risk(run(p.dims[0], p.time)),
        "later": excess_risk(limit.solve(start, times=later)),
    }
    for dim in p.dims:
        short = run(dim, p.early)
        path = limit.solve(start, times=short.time)
        apart = np.abs(short.M - path.M).isel(time=-1).max(("neuron", "anchor"))
        data[f"sgd_{dim}"] = excess_risk(short).assign(distance=apart.drop_vars("time"))
        data[f"limit_{dim}"] = excess_risk(path)
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Mean risk in the largest dimension, the rate at which the gap closes, and the end."""
    least, most = p.dims[0], p.dims[-1]
    ratio = data[f"sgd_{least}"].distance.values / data[f"sgd_{most}"].distance.values
    rest = data["later"].risk.values[-1] / (p.noise / 2)
    return [
        checks.path(
            f"mean risk over time, d = {most}", data[f"sgd_{most}"], data[f"limit_{most}"], "risk"
        ),
        checks.mean(
            "exponent of max|M − limit| in d",
            -np.log(ratio) / np.log(most / least),
            -0.5,
            note=f"from d = {least} to {most}",
        ),
        # the excess at rest is of the order of the step on each student's gradient, 2γ/p
        checks.exact("excess risk of the limit at rest over Δ/2", rest, 0.0, 2 * p.gamma / p.width),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Excess risk over time on the left, the gap to the limit over the dimension on the right."""
    figure, panels = picture.panels(1, 2, height=3.6, width_ratios=(1.3, 1))
    left, right = panels[0]
    names = ("orange", "green", "blue", "purple", "sky blue", "vermillion")
    for number, (dim, name) in reversed(list(enumerate(zip(p.dims, names, strict=False)))):
        sgd = data["long"] if dim == p.dims[0] else data[f"sgd_{dim}"]
        colour = sl.plot.style.PALETTE[name]
        draw_means(left, sgd, colour, size=4.5 + 3 * number)  # the largest lie behind
        distance = data[f"sgd_{dim}"].distance
        spread = float(distance.std("run", ddof=1)) / np.sqrt(p.runs)
        right.errorbar(dim, float(distance.mean()), spread, fmt="o", color=colour, capsize=3)
    later = data["later"].isel(time=slice(1, None))
    left.plot(later.time, later.risk, "k", label="limit")
    left.axhline(p.noise / 2, color="k", ls=":", lw=1, label="noise floor Δ/2")
    left.set(xscale="log", yscale="log", xlabel=sl.plot.style.TIME_LABEL, ylabel="excess risk")
    dims = np.array(p.dims)
    level = float(data[f"sgd_{dims[-1]}"].distance.mean())
    right.plot(dims, level * np.sqrt(dims[-1] / dims), "k--", lw=1.2, label="$d^{-1/2}$")
    right.set(xscale="log", yscale="log", xlabel="dimension $d$", title=f"$t = {p.early:g}$")
    right.set(ylabel=r"mean of max $|M - \bar{M}|$", xticks=dims, xticklabels=dims)
    right.xaxis.minorticks_off()
    picture.legend(figure, panels, columns=6)
    return figure


EXPERIMENT = Experiment(
    paper="L23",
    figure="high-dimensional regime",
    claim="SGD in dimension d is within d^(−1/2) of its limit: a plateau, then specialisation.",
    parameters=Parameters,
    tiny={
        "teachers": 2,
        "width": 2,
        "gamma": 0.5,
        "dims": (50, 400),
        "runs": 60,
        "early": 5.0,
        "time": 40.0,
    },
    quick={"teachers": 2, "width": 4, "gamma": 0.5, "dims": (50, 200, 800), "time": 500.0},
    compute=compute,
    check=check,
    draw=draw,
)
