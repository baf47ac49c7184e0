"""Softmax regression: every class block aligns with the outliers of Hessian and gradient matrix."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}
ALIGNED = 0.95
NEAR_ONE = 100.0  # a precision at which both matrices have all their outliers


class Parameters(Settings):
    """Means are orthonormal and classes equally likely; noise has the variance 1/λ."""

    classes: int = setting(10, "number k of classes", least=2)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(50.0, "samples in the matrices, per dimension", above=1)
    precisions: tuple[float, ...] = setting((10.0, 100.0), "values of λ", above=0)
    ridge: float = setting(0.01, "ridge β", above=0)
    time: float = setting(60.0, "duration, in units of d samples", above=0)
    points: int = setting(4, "times after the start at which the matrices are computed", least=2)
    train: bool = setting(True, "whether training data are looked at too, at the largest λ")


def compute(p: Parameters, seed: int) -> Data:
    """Track SGD, and predict alignment from its summary statistics."""
    times = p.time * np.linspace(0, 1, p.points + 1) ** 2
    data = {}
    for precision in p.precisions:
        task = sl.tasks.GaussianMixture(classes=p.classes, precision=precision, ridge=p.ridge)
        kinds = ["test", "train"] if p.train and precision == max(p.precisions) else ["test"]
        for kind in kinds:
            looks = times if kind == "test" else times[[0, -1]]
            samples = round(p.ratio * p.dim)
            tracked = sl.spectra.track(task, p.dim, samples, looks, seed=seed, data=kind)
            data[f"{kind}_{precision:g}"] = predicted(task, tracked, p.ratio)
    return data


def predicted(task: sl.tasks.GaussianMixture, tracked: xr.Dataset, ratio: float) -> xr.Dataset:
    """With the effective alignment: of block 0 at all times, of all blocks at the end."""
    found = tracked.alignment.copy(data=np.full(tracked.alignment.shape, np.nan))
    for k, now in enumerate(tracked.time.values):
        here = tracked.sel(time=now)
        state = {name: here[name].values for name in task.shapes}
        for matrix in MATRICES:
            for block in tracked.block.values if k == tracked.sizes["time"] - 1 else ["W0W0"]:
                spectrum = sl.spectra.effective(task, state, ratio, matrix, str(block))
                found.loc[{"time": now, "matrix": matrix, "block": block}] = spectrum.alignment
    return tracked.assign(effective=found)


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Alignment at the end against the effective theory; above 0.95 where theory says so."""
    found = []
    for name, tracked in data.items():
        kind, precision = name.split("_")
        for matrix, word in MATRICES.items():
            here = tracked.isel(time=-1).sel(matrix=matrix)
            what = f"{word}, {kind} data, λ = {precision}"
            least, most, said = (
                float(x)
                for x in (here.alignment.min(), here.alignment.max(), here.effective.mean())
            )
            gaps = (here.alignment - here.effective).values
            found.append(
                checks.mean(
                    f"{what}: alignment less its prediction",
                    gaps,
                    0.0,
                    bias=5 / p.dim,
                    note=f"{least:.3f} to {most:.3f} over the blocks, predicted mean {said:.3f}",
                )
            )
            if float(precision) >= NEAR_ONE:
                above = int(np.sum(here.alignment.values > ALIGNED))
                name = f"{what}: blocks aligned by more than {ALIGNED}"
                found.append(checks.exact(name, above, p.classes, 0.0))
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """Alignment of every block over time, and the prediction for the first."""
    figure, panels = picture.panels(len(data), 2, width=4.8, height=2.9, sharex=True, sharey=True)
    for row, (name, tracked) in zip(panels, data.items(), strict=True):
        kind, precision = name.split("_")
        for panel, (matrix, word) in zip(row, MATRICES.items(), strict=True):
            here = tracked.sel(matrix=matrix)
            panel.plot(
                here.time,
                here.alignment.transpose("time", "block"),
                "o-",
                ms=3,
                lw=0.8,
                color=sl.plot.style.SIMULATION,
                alpha=0.6,
                label=f"SGD, d = {p.dim}: class blocks",
            )
            panel.plot(
                here.time,
                here.effective.isel(block=0),
                "D",
                ms=6,
                fillstyle="none",
                color=sl.plot.style.LIMIT,
                label="effective spectrum, block 1",
            )
            limit = np.sqrt(np.maximum(0.0, 1 - here.residual.transpose("time", "neuron") ** 2))
            panel.plot(
                here.time,
                limit.mean("neuron"),
                ":",
                color="0.3",
                label="alignment with the span of the means",
            )
            panel.set(title=f"{word}, {kind} data, λ = {precision}", ylim=(0, 1.03))
        row[0].set_ylabel(f"alignment with $E_{{{p.classes}}}$")
    for panel in panels[-1]:
        panel.set_xlabel(sl.plot.style.TIME_LABEL)
    picture.legend(figure, panels, columns=3)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.1, 9.3",
    claim="Softmax regression: weights align with the outlier eigenspaces, up to O(1/λ).",
    parameters=Parameters,
    tiny={"classes": 3, "dim": 200, "precisions": (100.0,), "points": 2, "train": False},
    quick={"dim": 300, "train": False},
    compute=compute,
    check=check,
    draw=draw,
)
