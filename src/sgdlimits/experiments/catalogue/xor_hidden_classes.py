"""XOR: as many eigenvalues of the readout block stand out as hidden classes are discerned.

Runs that discern few classes are rare, so random starts are reflected into events that favour
them, which conditions their law: all v_i > 0 (two classes), also all m_i^μ > 0 (one class), or
m_i^ν > 0 wherever v_i < 0 (three classes). Of many runs the first is taken that discerns as many
classes as wanted and is settled. SGD is the exact chain of summary statistics; the block vv
depends on the data through the K fields Wx only, so it needs no more than them.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

CLASSES = (1, 2, 3, 4)
BATCHES = 6
MARGIN = 0.1  # of a network output that discerns a class
SETTLED = 0.01  # no output may lie between: its class would be on the way


class Parameters(Settings):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    width: int = setting(6, "width K, small: wide networks hardly ever miss a class", least=5)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(10.0, "samples in the matrix, per dimension", above=1)
    precision: float = setting(10.0, "precision λ of the data", above=0)
    ridge: float = setting(0.05, "ridge β, not given in the paper", above=0, most=0.125)
    time: float = setting(60.0, "duration, in units of d samples", above=10)
    points: int = setting(40, "times after the start at which the matrix is computed", least=2)
    runs: int = setting(64, "runs of a batch, among which one is looked for", least=4)
    draws: int = setting(20, "fresh data sets at the end", least=3)


def compute(p: Parameters, seed: int) -> Data:
    """A run for each number of hidden classes, and its eigenvalues of G in the block vv."""
    task = sl.tasks.XorMixture(width=p.width, precision=p.precision, ridge=p.ridge)
    data = {}
    for count in CLASSES:
        run = search(p, task, count, seed)
        states = [
            {name: run[name].values[k] for name in task.shapes} for k in range(run.sizes["time"])
        ]
        spectra = [sl.spectra.effective(task, s, p.ratio, "gradient", "vv") for s in states]
        fresh = [eigenvalues(p, task, states[-1], seed + 1 + k) for k in range(p.draws)]
        data[f"classes_{count}"] = xr.Dataset(
            {
                "eigenvalues": (
                    ("time", "rank"),
                    np.array([eigenvalues(p, task, state, seed) for state in states]),
                ),
                "effective": (
                    ("time", "rank"),
                    np.array([[x.value for x in spectrum.outliers] for spectrum in spectra]),
                ),
                "fresh": (("draw", "rank"), np.array(fresh)),
            },
            {"time": run.time.values},
        )
    return data


def search(p: Parameters, task: sl.tasks.XorMixture, count: int, seed: int) -> xr.Dataset:
    """The first run that discerns so many classes and is settled."""
    for batch in range(BATCHES):
        numbers = range(batch * p.runs, (batch + 1) * p.runs)
        starts = {
            name: np.array(x) for name, x in task.random_states(p.dim, seed, runs=numbers).items()
        }
        v, M = starts["v"], starts["M"]
        if count <= 2:
            v[:] = np.abs(v)
        if count == 1:
            M[..., 0] = np.abs(M[..., 0])
        if count == 3:
            M[..., 1] = np.where(v < 0, np.abs(M[..., 1]), M[..., 1])
        runs = sl.simulate(
            task, p.dim, runs=p.runs, time=p.time, points=p.points + 1,
            seed=seed + 10 * batch + count, init=starts,
        )  # fmt: skip
        for number in range(p.runs):
            end = {name: runs[name].values[number, -1] for name in task.shapes}
            seen = [sl.spectra.hidden_classes(task, end, margin) for margin in (MARGIN, SETTLED)]
            if seen == [count, count]:
                return runs.isel(run=number)
    raise RuntimeError(f"no run of {BATCHES * p.runs} discerns {count} classes: try another seed")


def eigenvalues(
    p: Parameters, task: sl.tasks.XorMixture, state: dict[str, np.ndarray], seed: int
) -> np.ndarray:
    """Of G_vv on test data, decreasing."""
    room, samples = p.width + len(task.anchors), round(p.ratio * p.dim)
    look = sl.spectra.track(task, room, samples, [0.0], seed=seed, init=state, blocks=["vv"])
    return np.asarray(look.eigenvalues.sel(matrix="gradient").values[0, 0])


def outliers(values: np.ndarray) -> int:
    """How many eigenvalues stand before the largest ratio of neighbours among the first five."""
    leading = values[: max(CLASSES) + 1]
    return int(np.argmax(leading[:-1] / leading[1:])) + 1


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """As many outliers as classes; their sum, which does not feel repulsion, as predicted."""
    found = []
    for count in CLASSES:
        here = data[f"classes_{count}"]
        values, target = here.eigenvalues.values[-1], here.effective.values[-1]
        ratio = values[count - 1] / values[count]
        found.append(
            checks.exact(
                f"outliers of a run that discerns {count}",
                outliers(values),
                count,
                0.0,
                note=f"before the largest ratio of neighbours; it is {ratio:.3g} there",
            )
        )
        sums = here.fresh.values[:, :count].sum(axis=1) / target[:count].sum() - 1
        found.append(
            checks.mean(
                f"sum of the {count} leading eigenvalues over its prediction, less 1",
                sums,
                0.0,
                # second order in the noise: at most K terms of relative size 1/n
                bias=p.width / round(p.ratio * p.dim),
                note=f"predicted {', '.join(f'{x:.4f}' for x in target[:count])}, "
                f"the next {target[count]:.4f}",
            )
        )
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """All eigenvalues over time, a panel for each number of classes."""
    figure, panels = picture.panels(1, len(CLASSES), width=3.1, height=3.4, sharey=True)
    for panel, count in zip(panels[0], CLASSES, strict=True):
        here = data[f"classes_{count}"]
        panel.plot(
            here.time,
            here.eigenvalues,
            "o",
            ms=3,
            color=sl.plot.style.SIMULATION,
            label=f"SGD, d = {p.dim}: all {p.width} eigenvalues",
        )
        panel.plot(
            here.time,
            here.effective,
            lw=0.9,
            color=sl.plot.style.LIMIT,
            label="predicted from the summary statistics",
        )
        word = "class" if count == 1 else "classes"
        panel.set(title=f"{count} hidden {word}", xlabel="time (samples / dim)")
    panels[0, 0].set_ylabel("eigenvalues of $G_{vv}$")
    picture.legend(figure, panels, columns=2)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.6",
    claim="XOR: the readout block has as many outliers as hidden classes are discerned.",
    parameters=Parameters,
    tiny={"dim": 100, "points": 2, "draws": 6},
    quick={"dim": 300, "points": 20},
    compute=compute,
    check=check,
    draw=draw,
)
