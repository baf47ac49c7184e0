"""Tensor PCA with a signal that grows with the dimension: SGD escapes by noise, at any strength."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats
from scipy.linalg import expm

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

ORDER = 3
MORE = 4  # times as many runs where they are short
STARTS = np.linspace(-1.5, 2.0, 8)  # of √n·m, where the drift is measured
START, DRIFT_SNR, DRIFT_TIME = 6, 2.0, 0.01  # number in STARTS, Λ and duration of the check
ESCAPED = 6.0  # value of √n·m from which there is no way back
GRID = np.linspace(-5.0, ESCAPED, 441)  # of √n·m, for the law of the limit


class Parameters(Settings):
    """Strengths of the signal on both sides of 1, where (3.3) as printed has a transition."""

    scaled_snrs: tuple[float, ...] = setting(
        (0.5, 0.7, 1.0, 1.2), "Λ in the signal-to-noise ratio Λ√n", least=0.4, most=1.2
    )
    dim: int = setting(100_000, "dimension n", least=20_000)
    runs: int = setting(512, "independent runs of SGD from each start", least=100)
    time: float = setting(0.5, "duration, in units of dim samples", above=0.1, most=2)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from given starts for a short time, and from random starts until many escape."""
    overlap = np.repeat(STARTS, MORE * p.runs) / np.sqrt(p.dim)
    data = {
        "short": sl.simulate(
            _task(p, DRIFT_SNR),
            dim=p.dim,
            runs=len(overlap),
            time=DRIFT_TIME,
            seed=seed,
            init={"m": overlap, "r2": np.ones_like(overlap)},
            points=2,
        )
    }
    transition = expm(_generator(DRIFT_SNR) * DRIFT_TIME)
    starts = np.linspace(STARTS[0], STARTS[-1], 71)
    later = np.interp(starts, GRID, transition @ GRID)
    data["limit"] = xr.Dataset({"later": ("start", later)}, {"start": starts})
    for number, snr in enumerate(p.scaled_snrs):
        data[f"sgd_{snr:g}"] = runs = sl.simulate(
            _task(p, snr), dim=p.dim, runs=p.runs, time=p.time, seed=seed + 1 + number, points=41
        )
        data[f"law_{snr:g}"] = _law(snr, runs.time.values)
    return data


def _task(p: Parameters, scaled_snr: float) -> sl.tasks.SpikedTensor:
    return sl.tasks.SpikedTensor(order=ORDER, snr=scaled_snr * np.sqrt(p.dim))


def _generator(scaled_snr: float) -> np.ndarray:
    """Of the corrected (3.3) at r² = 1, by central differences; absorbed at the end of the grid."""
    width = GRID[1] - GRID[0]
    sde = sl.theory.spiked_tensor.equator_sde(GRID, 1.0, order=ORDER, scaled_snr=scaled_snr)
    drift, noise = sde.drift[:, 0] / (2 * width), sde.noise[:, 0] ** 2 / (2 * width**2)
    rates = np.diag((noise + drift)[:-1], 1) + np.diag((noise - drift)[1:], -1)
    rates[-1] = 0.0
    return rates - np.diag(rates.sum(axis=1))


def _law(scaled_snr: float, times: np.ndarray) -> xr.Dataset:
    """The share of the limit, from random starts, that has escaped."""
    law = stats.norm.pdf(GRID) / stats.norm.pdf(GRID).sum()
    transition = expm(_generator(scaled_snr) * (times[1] - times[0]))
    shares = []
    for _ in times:
        shares.append(law[-1])
        law = law @ transition
    return xr.Dataset({"escaped": ("time", shares)}, {"time": times})


def _printed(scaled_snr: float, time: np.ndarray | float) -> np.ndarray:
    """The same by (3.3) as printed: an Ornstein–Uhlenbeck process with rate 2k(Λ − 1)."""
    rate = 2 * ORDER * (scaled_snr - 1)
    growth = time if rate == 0 else np.expm1(2 * rate * np.asarray(time)) / (2 * rate)
    variance = np.exp(2 * rate * np.asarray(time)) + 4 * ORDER * growth
    return np.asarray(stats.norm.sf(ESCAPED / np.sqrt(variance)))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Mean after a short time from one start; share that has escaped at every Λ."""
    start = STARTS[START]
    ends = np.sqrt(p.dim) * data["short"].m.values[:, -1].reshape(len(STARTS), -1)[START]
    found = [
        checks.mean(
            f"mean of √n·m at t = {DRIFT_TIME:g} from {start:g}, Λ = {DRIFT_SNR:g}",
            ends,
            float(data["limit"].later.sel(start=start, method="nearest")),
            printed=start * np.exp(2 * ORDER * (DRIFT_SNR - 1) * DRIFT_TIME),
        )
    ]
    for snr in p.scaled_snrs:
        hits = int(_escaped(p, data, snr)[-1].sum())
        expected = float(data[f"law_{snr:g}"].escaped[-1])
        name = f"share that has escaped at t = {p.time:g}, Λ = {snr:g}"
        printed = float(_printed(snr, p.time))
        found.append(checks.proportion(name, hits, p.runs, expected, printed=printed))
    return found


def _escaped(p: Parameters, data: Data, scaled_snr: float) -> np.ndarray:
    """Whether √n·m is beyond the barrier, by time and run."""
    return np.sqrt(p.dim) * data[f"sgd_{scaled_snr:g}"].m.values.T > ESCAPED


def draw(p: Parameters, data: Data) -> Figure:
    """The drift of √n·m on the left, escape over time on the right."""
    figure, panels = picture.panels(1, 2, height=3.6)
    left, right = panels[0]
    ends = np.sqrt(p.dim) * data["short"].m.values[:, -1].reshape(len(STARTS), -1)
    speed = (ends - STARTS[:, None]) / DRIFT_TIME
    colours = [sl.plot.style.PALETTE[c] for c in ("blue", "vermillion", "green", "orange")]
    errors = 2 * speed.std(axis=1) / np.sqrt(ends.shape[1])
    label = "SGD, ± 2 standard errors"
    left.errorbar(STARTS, speed.mean(axis=1), errors, fmt="o", ms=4, color=colours[0], label=label)
    limit = data["limit"]
    left.plot(limit.start, (limit.later - limit.start) / DRIFT_TIME, "k", label="corrected (3.3)")
    line = STARTS * np.expm1(2 * ORDER * (DRIFT_SNR - 1) * DRIFT_TIME) / DRIFT_TIME
    left.plot(STARTS, line, "k:", label="(3.3) as printed")
    left.set(title=f"Λ = {DRIFT_SNR:g}", xlabel=r"start: $\sqrt{n}\,m$")
    left.set_ylabel(f"mean velocity until t = {DRIFT_TIME:g}")
    for number, snr in enumerate(p.scaled_snrs):
        law, colour = data[f"law_{snr:g}"], colours[number % 4]
        shares = _escaped(p, data, snr).mean(axis=1)
        right.plot(law.time, law.escaped, "k")
        right.plot(law.time[::2], shares[::2], "o", ms=4, color=colour)
        right.plot(law.time, _printed(snr, law.time.values), "k:")
        right.text(1.03 * p.time, shares[-1], f"Λ = {snr:g}", color=colour, va="center")
    right.set(title="random starts", xlabel=sl.plot.style.TIME_LABEL)
    right.set_ylabel("share that has escaped")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="(3.3)",
    claim="Tensor PCA with λ = Λ√n: the drift of √n·m is not linear, and nothing happens at Λ = 1.",
    parameters=Parameters,
    tiny={"scaled_snrs": (0.5, 1.0), "dim": 20_000, "runs": 256},
    quick={"dim": 40_000, "runs": 256},
    compute=compute,
    check=check,
    draw=draw,
)
