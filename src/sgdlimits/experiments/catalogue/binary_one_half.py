"""Two classes: half of the random starts lead SGD to the optimal classifier."""

import math

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._binary import NO_NOISE, NoisyBinary

SETTLED = 30.0  # time after which no solution of the limit changes a sign any more
GOLDEN = (math.sqrt(5) - 1) / 2


@experiment(
    paper="BGJ22",
    figure="Fig. 7",
    claim="Binary mixture: half of the runs end at the optimal classifiers, half on the rings.",
    tiny={"precisions": (1.0, 1000.0), "runs": 128, "time": 25.0, "starts": 64},
    quick={"precisions": (1.0, 10.0, 100.0, 1000.0), "time": 25.0, "starts": 128},
    headline=True,
    cost=1.5,
)
class BinaryOneHalf(NoisyBinary):
    """Noise levels of the data; no noise at all is always added."""

    precisions: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
    starts: int = setting(512, "starts of the limit at each precision", least=32)

    def compute(self, seed: int) -> Data:
        """Count the end points of SGD, and those of the limit from starts spread over their law."""
        sgd = self.sgd(seed)

        def one(precision: float) -> xr.Dataset:
            share = 0.5
            if math.isfinite(precision):
                limit = sl.effective_dynamics(self.task(precision), nodes=64)
                ends = limit.solve(spread(self.starts), time=SETTLED, points=2)
                share = float(apart(ends).mean())
            return xr.Dataset({"hits": apart(sgd.sel(precision=precision)).sum(), "limit": share})

        return {"fractions": sl.results.over("precision", sgd.precision.values, one)}

    def check(self, data: Data) -> list[Check]:
        """One half without noise and with little; the limit's own number where there is much."""
        fractions = data["fractions"]
        least, largest = min(self.precisions), max(self.precisions)
        limit = float(fractions.limit.sel(precision=least))
        return [
            checks.proportion(
                f"end points with m₁m₂ < 0, λ = {sl.plot.style.number(precision)}",
                int(fractions.hits.sel(precision=precision)),
                self.runs,
                expected,
                note=note,
            )
            for precision, expected, note in (
                (NO_NOISE, 0.5, "each neuron keeps the sign of m + v, at any N"),
                (largest, 0.5, "predicted for λ → ∞"),
                (least, limit, "predicted by the limit at this λ"),
            )
        ]

    def draw(self, data: Data) -> Figure:
        """Fractions with their exact intervals over the precision; no noise on the far right."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=6.4, height=3.6)
        fractions = data["fractions"]
        words = [sl.plot.style.number(x) for x in fractions.precision.values.tolist()]
        panel.plot(words, fractions.limit, "k_", ms=22, mew=2, label="limit N → ∞ at this λ")
        sl.plot.proportions(fractions.hits, self.runs, words, axes=panel)
        panel.axhline(0.5, color="k", ls="--", zorder=1, label="1/2, predicted for λ → ∞")
        panel.set(xlabel="precision $\\lambda$", ylabel="fraction with $m_1 m_2 < 0$")
        panel.set_ylim(0.3, 0.8)
        return sl.plot.legend_below(figure, 2)


def apart(ends: xr.Dataset) -> np.ndarray:
    """Whether the overlaps of the two neurons have opposite signs at the end."""
    return sl.results.state(ends)["M"].prod(axis=(1, 2)) < 0


def spread(count: int) -> dict[str, np.ndarray]:
    """Starts v ~ N(0, I), m = 0, R = I on a lattice.

    Neurons may be exchanged, and all signs changed: angles of a quarter circle are enough.
    """
    number = np.arange(count) + 0.5
    angle = np.pi / 2 * (GOLDEN * number % 1 - 0.5)
    v = np.sqrt(-2 * np.log(number / count))[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return {"v": v, "M": np.zeros((count, 2, 1)), "R": np.tile(np.eye(2), (count, 1, 1))}
