"""Tensor PCA with a signal that grows with the dimension: SGD escapes by noise, at any strength."""

import numpy as np
import xarray as xr
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.scalar_sde import ScalarSde, linear_variance
from sgdlimits.experiments.shared import Sgd

ORDER = 3
MORE = 4  # times as many runs where they are short
STARTS = np.linspace(-1.5, 2.0, 8)  # of √n·m, where the drift is measured
START, DRIFT_SNR, DRIFT_TIME = 6, 2.0, 0.01  # number in STARTS, Λ and duration of the check
ESCAPED = 6.0  # value of √n·m from which there is no way back
GRID = np.linspace(-5.0, ESCAPED, 441)  # of √n·m, for the law of the limit


@experiment(
    paper="BGJ22",
    figure="(3.3)",
    claim="Tensor PCA with λ = Λ√n: the drift of √n·m is not linear, and nothing happens at Λ = 1.",
    tiny={"scaled_snrs": (0.5, 1.0), "dim": 20_000, "runs": 256},
    quick={"dim": 40_000, "runs": 256},
)
class TensorDivergingSnr(Sgd):
    """Strengths of the signal on both sides of 1, where (3.3) as printed has a transition."""

    scaled_snrs: tuple[float, ...] = setting(
        (0.5, 0.7, 1.0, 1.2), "Λ in the signal-to-noise ratio Λ√n", least=0.4, most=1.2
    )
    dim: int = setting(100_000, "dimension n", least=20_000)
    runs: int = setting(512, "independent runs of SGD from each start", least=100)
    time: float = setting(0.5, "duration, in units of dim samples", above=0.1, most=2)

    def compute(self, seed: int) -> Data:
        """SGD from given starts for a short time, and from random starts until many escape."""
        near = {"m": STARTS / np.sqrt(self.dim), "r2": np.ones(len(STARTS))}
        more = {"runs": MORE * self.runs, "time": DRIFT_TIME, "points": 2}
        short = self.simulate_from(self.task(DRIFT_SNR), seed, near, **more)
        starts = np.linspace(STARTS[0], STARTS[-1], 71)
        later = np.interp(starts, GRID, limit_sde(DRIFT_SNR).transition(DRIFT_TIME) @ GRID)
        random = stats.norm.pdf(GRID) / stats.norm.pdf(GRID).sum()

        sgd = self.simulate_over("scaled_snr", self.scaled_snrs, self.task, seed + 1, points=41)
        limit = [limit_sde(x).absorbed(random, sgd.time.values) for x in self.scaled_snrs]
        return {
            "short": short.assign_coords(start=STARTS),
            "limit": xr.Dataset({"later": ("start", later)}, {"start": starts}),
            "sgd": sgd.assign(
                gone=np.sqrt(self.dim) * sgd.m > ESCAPED, limit=(("scaled_snr", "time"), limit)
            ),
        }

    def task(self, scaled_snr: float) -> sl.tasks.SpikedTensor:
        """A tensor whose signal grows with the dimension."""
        return sl.tasks.SpikedTensor(order=ORDER, snr=scaled_snr * np.sqrt(self.dim))

    def check(self, data: Data) -> list[Check]:
        """Mean after a short time from one start; share that has escaped at every Λ."""
        start, ends = STARTS[START], data["sgd"].isel(time=-1)
        drift = checks.mean(
            f"mean of √n·m at t = {DRIFT_TIME:g} from {start:g}, Λ = {DRIFT_SNR:g}",
            np.sqrt(self.dim) * data["short"].m.isel(time=-1, start=START),
            data["limit"].later.sel(start=start, method="nearest"),
            printed=start * np.exp(2 * ORDER * (DRIFT_SNR - 1) * DRIFT_TIME),
        )
        name = f"share that has escaped at t = {self.time:g}, Λ = {{:g}}"
        return [
            drift,
            *checks.each(
                "scaled_snr",
                checks.proportion,
                name,
                ends.gone.sum("run"),
                self.runs,
                ends.limit,
                printed=lambda snr: float(printed(snr, self.time)),
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """The drift of √n·m on the left, escape over time on the right."""
        figure, ((left, right),) = sl.plot.panels(1, 2, height=3.6)
        ends = np.sqrt(self.dim) * data["short"].m.isel(time=-1)
        speed, label = (ends - ends.start) / DRIFT_TIME, "SGD, ± 2 standard errors"
        sl.plot.band(speed, bars=True, label=label, axes=left)
        limit = data["limit"]
        velocity = (limit.later - limit.start) / DRIFT_TIME
        left.plot(limit.start, velocity, "k", label="corrected (3.3)")
        line = STARTS * np.expm1(2 * ORDER * (DRIFT_SNR - 1) * DRIFT_TIME) / DRIFT_TIME
        left.plot(STARTS, line, "k:", label="(3.3) as printed")
        left.set(title=f"k = {ORDER}, Λ = {DRIFT_SNR:g}", xlabel=r"start: $\sqrt{n}\,m$")
        left.set_ylabel(f"mean velocity until t = {DRIFT_TIME:g}")
        for snr in self.scaled_snrs:
            sgd = data["sgd"].sel(scaled_snr=snr)
            right.plot(sgd.time, sgd.limit, "k", sgd.time, printed(snr, sgd.time.values), "k:")
        shares = data["sgd"].gone.mean("run").isel(time=slice(None, None, 2))
        picture.points_of_each(right, shares, "scaled_snr", "Λ", aside=True)
        right.set(title=f"k = {ORDER}, random starts", ylabel="share that has escaped")
        return sl.plot.legend_below(figure)


def limit_sde(scaled_snr: float) -> ScalarSde:
    """Of √n·m by the corrected (3.3) at r² = 1."""
    sde = sl.theory.spiked_tensor.equator_sde(GRID, 1.0, order=ORDER, scaled_snr=scaled_snr)
    return ScalarSde(GRID, sde.drift[:, 0], sde.noise[:, 0])


def printed(scaled_snr: float, time: np.ndarray | float) -> np.ndarray:
    """The share that has escaped by (3.3) as printed, with the linear rate 2k(Λ − 1)."""
    variance = linear_variance(time, 2 * ORDER * (scaled_snr - 1), start=1.0, noise=4 * ORDER)
    return np.asarray(stats.norm.sf(ESCAPED / np.sqrt(variance)))
