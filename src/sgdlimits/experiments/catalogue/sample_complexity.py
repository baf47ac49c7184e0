"""How many samples weak recovery takes, for information exponents 1, 2 and 3."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue import _search as search

ALLOWED = {1: 0.1, 2: 0.1, 3: 0.2}  # of the exponents that are measured
# Relative distance of medians of SGD to those of the diffusion that is tolerated: its polynomials
# and growing time steps are good to 1 %, and terms in 1/N with constants of ten are 2 % at N = 400
FINITE = 0.03
WATCHED = 1.5  # times the predicted median


@experiment(
    paper="J24",
    figure="Thm 11.10",
    claim="From the equator weak recovery takes N, N log N, N² samples at exponents 1, 2, 3.",
    tiny={"dims": (300, 2000), "third_dims": (100, 400), "runs": 200},
    quick={"dims": (300, 1000, 3000, 10_000), "third_dims": (100, 300, 1000), "runs": 400},
    cost=10,
)
class SampleComplexity(Settings):
    """Starts are uniform on the upper half of the sphere, steps those of J24 Definition 11.1."""

    dims: tuple[int, ...] = setting(
        (1000, 3000, 10_000, 30_000, 100_000), "dimensions N for exponents 1 and 2", least=50
    )
    third_dims: tuple[int, ...] = setting(
        (300, 1000, 3000, 10_000), "dimensions N for exponent 3", least=50
    )
    level: float = setting(0.5, "overlap η of weak recovery", above=0, most=0.6)
    runs: int = setting(64, "independent runs of SGD for each dimension", least=20)

    def compute(self, seed: int) -> Data:
        """When the overlap first passes η, and the median that the limit predicts."""

        def one(exponent: int) -> xr.Dataset:
            task = search.task_of(exponent)

            def run(dim: int) -> xr.Dataset:
                step = search.step_of(exponent, dim)
                predicted = search.predicted_median(task, dim, step, self.level)
                passage = sl.first_passage(
                    task,
                    (search.overlap, ">", self.level),
                    dim,
                    self.runs,
                    WATCHED * predicted,
                    step=step,
                    sphere="tangential",
                    seed=seed,
                    init=search.upper_starts(task, dim, seed, self.runs),
                )
                kept = passage[["time", "censored"]].drop_attrs()
                told = results_of(passage, dim / step)
                return kept.assign(told | {"predicted": predicted * dim / step})

            dims = self.third_dims if exponent == 3 else self.dims
            return sl.results.over("dim", dims, run)

        return {f"exponent {k}": one(k) for k in search.NAMES}

    def check(self, data: Data) -> list[Check]:
        """Exponents of the medians in N, log N divided out; and medians against the limit's."""
        found = []
        for k, allowed in ALLOWED.items():
            passages = data[f"exponent {k}"]
            slope, error = slope_of(passages, k)
            law = "samples/log N" if k == 2 else "samples"
            told = sl.theory.hermite.information_exponent(search.loss_of(k))
            power = 2.0 if k == 3 else 1.0
            found += [
                checks.exact(f"information exponent, {search.NAMES[k]}", told.exponent, k),
                Check(f"power of N in the median of {law}, k = {k}", power, slope, error, allowed),
            ]
            last = passages.isel(dim=-1)
            ratio = float(last.samples / last.predicted)
            error = spread(passages)[-1] * ratio
            name = f"median over that of the limiting diffusion, k = {k}, N = {int(last.dim):,}"
            tolerance = checks.allowed(self.runs) * error + FINITE
            found.append(Check(name, 1.0, ratio, error, tolerance))
        return found

    def draw(self, data: Data) -> Figure:
        """Medians over N on the left, divided by the laws on the right."""
        figure, ((left, right),) = sl.plot.panels(
            1, 2, width=5.4, height=4.2, xlabel="dimension $N$"
        )
        with sl.plot.style.figure_style():
            for k, colour in search.COLOURS.items():
                part = data[f"exponent {k}"]
                slope, error = slope_of(part, k)
                scale = part.dim * laws(part.dim.values, k)
                word = "samples/log N" if k == 2 else "samples"
                measured = f"{word} ∼ $N^{{{slope:.2f} \\pm {error:.2f}}}$"
                label = f"k = {k}, {search.NAMES[k]}: {measured}"
                for panel, unit in ((left, xr.ones_like(scale)), (right, scale)):
                    bars = np.abs(part.ends - part.samples).transpose("end", "dim") / unit
                    look: Any = {
                        "color": colour,
                        "marker": "o",
                        "ms": 6,
                        "ls": "none",
                        "capsize": 3,
                    }
                    panel.errorbar(part.dim, part.samples / unit, bars, label=label, **look)
                    panel.plot(part.dim, part.predicted / unit, color=colour, lw=1.4)
            left.plot([], [], "k", lw=1.4, label="median of the limiting diffusion")
            left.set(
                xscale="log", yscale="log", ylabel=f"samples until $m > {self.level:g}$, median"
            )
            right.set(xscale="log", yscale="log", ylabel=r"samples$\,/\,(N\,\alpha_c(N, k))$")
            right.set_title(r"$\alpha_c = 1,\ \log N,\ N$ for $k = 1,\ 2,\ 3$", fontsize="medium")
            left.set_title(
                f"{self.runs} runs each, $m_0 > 0$; bars: 95 % confidence", fontsize="medium"
            )
            right.set_ylim(0.1, 10)
        return sl.plot.legend_below(figure, 2)


def results_of(passage: xr.Dataset, scale: float) -> dict[str, Any]:
    """Kaplan–Meier median in samples, with its interval; what was not reached is what was watched.

    Args:
        passage: times of many runs.
        scale: samples in one unit of time.
    """
    estimate = sl.results.survival(passage)
    median = estimate.median
    high = min(median.high, estimate.watched)
    ends = ("end", [median.low * scale, high * scale])
    return {"samples": median.value * scale, "ends": ends, "scale": scale}


def laws(dims: np.ndarray, exponent: int) -> np.ndarray:
    """α_c(N, k)."""
    critical = sl.theory.hermite.critical_samples
    return np.array([critical(int(dim), exponent).ratio for dim in dims])


def slope_of(passages: xr.Dataset, exponent: int) -> tuple[float, float]:
    """The power of N in the medians, without the logarithm at exponent 2, and its standard error.

    Least squares in logarithms, weighted by the intervals of the medians.
    """
    x, y = np.log(passages.dim.values), np.log(passages.samples.values)
    if exponent == 2:
        y = y - np.log(np.log(passages.dim.values))
    weight = 1 / spread(passages) ** 2
    centred = x - np.average(x, weights=weight)
    information = np.sum(weight * centred**2)
    return float(np.sum(weight * centred * y) / information), float(information**-0.5)


def spread(passages: xr.Dataset) -> np.ndarray:
    """Relative standard errors of the medians, from their intervals."""
    ends = np.log(passages.ends.transpose("dim", "end").values)
    return np.asarray((ends[:, 1] - ends[:, 0]) / (2 * 1.96))
