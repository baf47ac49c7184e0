"""Matrix PCA: how long SGD takes from the equator to a fixed overlap, above and below λ = 1."""

from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.settings import Settings

EQUATOR = {"m": 0.0, "r2": 1.0}
LONG = 25.0  # how long runs are watched, in units of the predicted mean
THEORY = sl.theory.spiked_tensor


@experiment(
    paper="BGJ22",
    figure="Sec. 3, times to an overlap",
    claim="Above λ = 1 matrix PCA leaves the equator after log(n)/8(λ - 1); below, after e^(nB).",
    tiny={"dims": (100, 1000), "small": (50, 100), "runs": 200},
    quick={"dims": (1000, 10_000, 100_000), "small": (50, 100, 200), "runs": 400},
    cost=2.0,
)
class PcaEscape(Settings):
    """Random starts above the transition; below it, from the equator itself."""

    above: float = setting(1.5, "signal-to-noise ratio above the transition", least=1.1)
    below: float = setting(0.5, "signal-to-noise ratio below it", above=0, most=0.9)
    overlap: float = setting(0.35, "overlap |m| to be reached", above=0, most=0.3**0.5)
    dims: tuple[int, ...] = setting(
        (1000, 10_000, 100_000, 1_000_000), "dimensions n above the transition", least=100
    )
    small: tuple[int, ...] = setting((50, 100, 150, 200), "dimensions n below it", least=30)
    deviations: float = setting(2.5, "overlap below it, in standard deviations", least=1, most=4)
    runs: int = setting(1000, "independent runs of SGD", least=100)

    def compute(self, seed: int) -> Data:
        """First passages above the transition; below it, to a fixed and to a growing number of s.d.

        Overlaps below it are in units of their stationary deviation, 1/√(n(1 − λ)), too.
        """

        def up(dim: int, seed: int) -> xr.Dataset:
            mean = THEORY.escape_time(self.overlap, dim, snr=self.above)
            return self.passage(self.above, self.overlap, mean, dim, seed, None)

        def climb(dim: int, seed: int) -> xr.Dataset:
            return self.passage(self.below, self.overlap, self.time(dim), dim, seed, EQUATOR)

        def near(dim: int, seed: int) -> xr.Dataset:
            eta = self.near(dim)
            mean = THEORY.climbing_time(eta, dim, snr=self.below)
            return self.passage(self.below, eta, mean, dim, seed, EQUATOR)

        return {
            "above": sl.results.over("dim", self.dims, up, count(seed)),
            "below": sl.results.over("dim", self.small, climb, count(seed)),
            "near": sl.results.over("dim", self.small, near, count(seed)),
        }

    def near(self, dim: int) -> float:
        """The overlap of so many standard deviations."""
        return float(self.deviations / np.sqrt(dim * (1 - self.below)))

    def time(self, dim: int) -> float:
        """Of the diffusion, to the fixed overlap below the transition."""
        return THEORY.climbing_time(self.overlap, dim, snr=self.below)

    def passage(
        self, snr: float, overlap: float, mean: float, dim: int, seed: int, init: Any
    ) -> xr.Dataset:
        """When runs reach an overlap of either sign."""
        event = (square, ">", overlap**2)
        task = sl.tasks.SpikedTensor(snr=snr)
        size: Any = {"dim": dim, "runs": self.runs, "max_time": LONG * mean}
        return sl.first_passage(task, event, seed=seed, init=init, **size)[["time", "censored"]]

    def check(self, data: Data) -> list[Check]:
        """Law and mean above λ = 1; below, means, and the barrier from how times grow with n."""
        found = []
        for n in self.dims:
            times = data["above"].time.sel(dim=n)
            mean = THEORY.escape_time(self.overlap, n, snr=self.above)
            bias = 3 / n  # the next order
            name = f"mean time to |m| = {self.overlap:g}, λ = {self.above:g}, n = {n:,}"
            found.append(checks.mean(name, times, mean, bias=bias))
            law = _Law(self, n)
            found.append(checks.distribution(f"law of these times, n = {n:,}", times, law))
        for n in self.small:
            times = data["near"].time.sel(dim=n)
            mean = THEORY.climbing_time(self.near(n), n, snr=self.below)
            name = f"mean time to {self.deviations:g} s.d., λ = {self.below:g}, n = {n:,}"
            note = "boundary moved as a walk sees it; r² fluctuates, which is the next order"
            found.append(checks.mean(name, times, mean, note=note, bias=3 * mean / n))
        return [*found, self._barrier(data["below"])]

    def _barrier(self, below: xr.Dataset) -> Check:
        """Growth of log E τ with n between the first and the last n, beside that of the theory."""
        ends = [below.time.sel(dim=n).values for n in (self.small[0], self.small[-1])]
        apart = self.small[-1] - self.small[0]
        logs = [np.log(x.mean()) for x in ends]
        errors = [x.std() / x.mean() / self.runs**0.5 for x in ends]
        predicted = np.log(self.time(self.small[-1]) / self.time(self.small[0])) / apart
        asymptotic = THEORY.climbing_barrier(self.overlap, snr=self.below)
        error = float(np.hypot(*errors) / apart)
        return Check(
            f"growth of log(mean time) with n, |m| = {self.overlap:g}, λ = {self.below:g}",
            float(predicted),
            float((logs[1] - logs[0]) / apart),
            error,
            # along the way r² may bend by O(m²), which lowers the action by that part of itself
            checks.allowed(self.runs) * error + self.overlap**2 * float(predicted),
            f"{asymptotic:.4g} as n → ∞; r² that bends lowers it by a part of up to m²",
        )

    def draw(self, data: Data) -> Figure:
        """Survival above the transition for every n; mean times over n below it."""
        figure, panels = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.25, 1))
        left, right = panels[0]
        for number, n in enumerate(self.dims):
            part, colour = data["above"].sel(dim=n), f"C{number}"
            sl.plot.survival(part, label=f"SGD, n = {n:,}", color=colour, axes=left)
            times = np.linspace(0, float(part.time.max()), 300)
            gone = THEORY.escape_probability(times, self.overlap, n, snr=self.above)
            left.plot(times, 1 - gone, "k", lw=1, label="law with Gaussian G", zorder=5)
        left.set(title=f"λ = {self.above:g}: to |m| = {self.overlap:g}")
        left.set_ylabel("part of runs below")
        names = {
            "below": (f"|m| = {self.overlap:g}", "C1"),
            "near": (f"{self.deviations:g} s.d.", "C2"),
        }
        smooth = np.linspace(self.small[0], self.small[-1], 12).round().astype(int)
        for kind, (words, colour) in names.items():
            times = data[kind].time
            error = 2 * times.std("run") / self.runs**0.5
            look: Any = {"fmt": "o", "color": colour, "capsize": 3, "zorder": 4}
            right.errorbar(times.dim, times.mean("run"), error, label=f"SGD to {words}", **look)
            level = self.near if kind == "near" else lambda _: self.overlap
            curve = [THEORY.climbing_time(level(int(n)), int(n), snr=self.below) for n in smooth]
            right.plot(smooth, curve, color=colour, lw=1.2, label=f"diffusion to {words}")
        right.set(yscale="log", xlabel="dimension $n$", title=f"λ = {self.below:g}")
        right.set_ylabel("mean time $t$")
        return sl.plot.legend_below(figure, 4)


class _Law:
    """The law above the transition, as SciPy would have it."""

    def __init__(self, settings: PcaEscape, dim: int):
        self.settings, self.dim = settings, dim

    def cdf(self, times: Any) -> Any:
        """P(τ ≤ t)."""
        own = self.settings
        return THEORY.escape_probability(times, own.overlap, self.dim, snr=own.above)


def square(state: dict[str, Any]) -> Any:
    """What both signs of the overlap lead to."""
    return state["m"] ** 2
