"""XOR: four eigenvalues of the readout block leave the others as the hidden classes are learned.

The run is the first, from the seed on, that discerns all four hidden classes: at width 20 nearly
every one does. The block vv depends on the data through the K fields Wx only, so fresh data at a
given state can be drawn in any dimension that has room for the weights.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}
CLASSES = 4
RANKS = 8  # the largest ratio of neighbours is looked for among so many eigenvalues
TRIES = 10


class Parameters(Settings):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    width: int = setting(20, "width K", least=RANKS)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(10.0, "samples in the matrices, per dimension", above=1)
    precision: float = setting(10.0, "precision λ of the data", above=0)
    ridge: float = setting(0.05, "ridge β, not given in the paper", above=0, most=0.125)
    time: float = setting(60.0, "duration, in units of d samples", above=10)
    points: int = setting(40, "times after the start at which the matrices are computed", least=2)
    draws: int = setting(20, "fresh data sets at the end", least=3)


def compute(p: Parameters, seed: int) -> Data:
    """Eigenvalues of vv over time on test and train data, and again on fresh data at the end."""
    task = sl.tasks.XorMixture(width=p.width, precision=p.precision, ridge=p.ridge)
    times = p.time * np.linspace(0, 1, p.points + 1) ** 2
    samples = round(p.ratio * p.dim)
    for good in range(seed, seed + TRIES):
        test = sl.spectra.track(task, p.dim, samples, times, seed=good, blocks=["vv"])
        end = {name: test[name].values[-1] for name in task.shapes}
        if sl.spectra.hidden_classes(task, end) == CLASSES:
            break
    train = sl.spectra.track(task, p.dim, samples, times, seed=good, data="train", blocks=["vv"])
    room = p.width + len(task.anchors)
    draws = [
        sl.spectra.track(task, room, samples, [0.0], seed=good + 1 + k, init=end, blocks=["vv"])
        for k in range(p.draws)
    ]
    said = test.eigenvalues.copy()
    for k, now in enumerate(test.time.values):
        state = {name: test[name].values[k] for name in task.shapes}
        for matrix in MATRICES:
            spectrum = sl.spectra.effective(task, state, p.ratio, matrix, "vv")
            values = [outlier.value for outlier in spectrum.outliers]
            said.loc[{"time": now, "matrix": matrix, "block": "vv"}] = values
    fresh = xr.concat([draw.eigenvalues.isel(time=0) for draw in draws], "draw")
    return {
        "test": test.assign(effective=said).assign_attrs(
            discerned=sl.spectra.hidden_classes(task, end)
        ),
        "train": train,
        "fresh": fresh.to_dataset(name="eigenvalues"),
    }


def outliers(values: np.ndarray) -> int:
    """How many eigenvalues stand before the largest ratio of neighbours among the first 8."""
    leading = np.sort(np.abs(values))[::-1][:RANKS]
    return int(np.argmax(leading[:-1] / leading[1:])) + 1


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """One outlier at the start, four at the end; their sum, which does not feel repulsion."""
    found = []
    said = data["test"].effective.isel(time=-1, block=0)
    for matrix, word in MATRICES.items():
        target = said.sel(matrix=matrix).values[:CLASSES]
        fresh = data["fresh"].eigenvalues.sel(matrix=matrix).isel(block=0).values
        sums = fresh[:, :CLASSES].sum(axis=1) / target.sum() - 1
        each = fresh[:, :CLASSES].mean(axis=0) / target - 1
        # second order in the noise: at most K terms of relative size 1/n
        bias = p.width / round(p.ratio * p.dim)
        note = f"each by {', '.join(f'{100 * x:+.2f}' for x in each)} %; one sample per draw"
        name = f"{word}: sum of the leading {CLASSES} eigenvalues over its prediction, less 1"
        found.append(checks.mean(name, sums, 0.0, bias=bias, note=note))
        spread = float(np.std(sums, ddof=1))
        allowed = checks.allowed(len(sums)) * spread * np.sqrt(1 + 1 / len(sums)) + bias
        for kind in ("test", "train"):
            values = data[kind].eigenvalues.sel(matrix=matrix).isel(block=0).values
            gap = values[-1, :CLASSES].sum() / target.sum() - 1
            title = f"{word}, {kind} data: the same in the run"
            text = "one data set, in the spread of fresh ones"
            found.append(checks.Check(title, 0.0, float(gap), spread, float(allowed), text))
            for place, when, expected in (
                (0, "start", 1),
                (-1, "end", data["test"].attrs["discerned"]),
            ):
                leading = np.abs(values[place])
                ratio = leading[expected - 1] / leading[expected]
                title = f"{word}, {kind} data: outliers at the {when}"
                text = f"before the largest ratio of neighbours; it is {ratio:.3g} there"
                found.append(checks.exact(title, outliers(values[place]), expected, 0.0, note=text))
    found.append(checks.exact("hidden classes discerned", data["test"].attrs["discerned"], 4, 0.0))
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """All eigenvalues over time."""
    figure, panels = picture.panels(2, 2, width=4.8, height=3.0, sharex=True, sharey="col")
    said = data["test"].effective.isel(block=0)
    for row, kind in zip(panels, ("test", "train"), strict=True):
        for panel, (matrix, word) in zip(row, MATRICES.items(), strict=True):
            here = data[kind].eigenvalues.isel(block=0).sel(matrix=matrix)
            panel.plot(
                here.time,
                here.transpose("time", "rank"),
                "o",
                ms=3,
                color=sl.plot.style.SIMULATION,
                label=f"SGD, d = {p.dim}: all {p.width} eigenvalues",
            )
            panel.plot(
                said.time,
                said.sel(matrix=matrix).transpose("time", "rank"),
                lw=0.9,
                color=sl.plot.style.LIMIT,
                label="predicted from the summary statistics",
            )
            panel.set(title=f"{word}, {kind} data", ylabel="eigenvalues, block $vv$")
    for panel in panels[-1]:
        panel.set_xlabel(sl.plot.style.TIME_LABEL)
    picture.legend(figure, panels, columns=2)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.5, 9.6",
    claim="XOR: the readout block has one outlier at the start, four after training.",
    parameters=Parameters,
    tiny={"width": 12, "dim": 100, "points": 3, "draws": 8},
    quick={"dim": 300, "points": 20},
    compute=compute,
    check=check,
    draw=draw,
)
