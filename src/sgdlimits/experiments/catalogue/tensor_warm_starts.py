"""Tensor PCA from warm starts: below the overlap m† of a saddle they fail, above they succeed."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import marks
from sgdlimits.experiments.scalar_sde import deciding_noise
from sgdlimits.experiments.shared import Sgd

SHARES = np.array([0.4, 1.6])  # warm starts on the two sides of m†, in units of m†
SHOWN = 6  # runs in a picture from each side
OFFSETS = np.linspace(-2, 2, 9)  # starts next to m†, in units of the noise that decides
# starts of the search for rest points
SEARCH = {"m": np.tile(np.linspace(-2, 2, 11), 2), "r2": np.repeat([0.5, 1.0], 11)}


@experiment(
    paper="BGJ22",
    figure="Prop. 3.2, Remark 3",
    claim="Tensor PCA above λ_c: warm starts with m < m† fail, with m > m† they reach m⋆.",
    tiny={"orders": (4,), "dim": 1000, "runs": 48, "time": 2.0},
    quick={"runs": 128},
    headline=True,
)
class TensorWarmStarts(Sgd):
    """Orders of the tensor, the signal, and how many runs start where."""

    orders: tuple[int, ...] = setting((3, 4), "orders k of the tensor", least=3, most=5)
    excess: float = setting(1.3, "signal-to-noise ratio in units of its critical value", least=1.1)
    dim: int = setting(2000, "dimension n", least=1000)
    runs: int = setting(256, "independent runs of SGD from each start", least=32)
    time: float = setting(3.0, "duration, in units of dim samples", least=2)

    def compute(self, seed: int) -> Data:
        """Rest points by search; SGD from both sides of m† and from its microscopic vicinity."""

        def rest(order: int) -> xr.Dataset:
            points = sl.effective_dynamics(self.task(order)).fixed_points(init=SEARCH)
            alike = [state for point in points for state in point.orbit]
            states = np.array([[state["m"], state["r2"]] for state in alike])
            exact = sl.theory.spiked_tensor.fixed_points(order, self.task(order).snr)
            closed = np.array([[point.overlap, point.radius_squared] for point in exact])
            apart = np.linalg.norm(closed[:, None] - states, axis=2).min(axis=1)
            return xr.Dataset({"apart": apart.max(), "points": len(closed)})

        def warm(order: int) -> xr.Dataset:
            return self.from_overlaps(order, seed, self.overlaps(order)[0] * SHARES, points=201)

        def near(order: int) -> xr.Dataset:
            limit, saddle = sl.effective_dynamics(self.task(order)), self.overlaps(order)[0]
            noise = deciding_noise(limit, {"m": saddle, "r2": 1.0})
            starts = saddle + OFFSETS * noise / np.sqrt(self.dim)
            return self.from_overlaps(order, seed, starts, points=2).assign(noise=noise)

        functions = {"rest": rest, "warm": warm, "near": near}
        return {x: sl.results.over("order", self.orders, f) for x, f in functions.items()}

    def task(self, order: int) -> sl.tasks.SpikedTensor:
        """A tensor with a spike above the critical signal."""
        snr = self.excess * sl.theory.spiked_tensor.critical_snr(order)
        return sl.tasks.SpikedTensor(order=order, snr=snr)

    def overlaps(self, order: int) -> tuple[float, float]:
        """m† and m⋆."""
        return sl.theory.spiked_tensor.overlaps(order, self.task(order).snr)

    def from_overlaps(self, order: int, seed: int, m: np.ndarray, **options: Any) -> xr.Dataset:
        """SGD from overlaps m and r² = 1, and whether each run ends near m⋆."""
        starts = {"m": m, "r2": np.ones_like(m)}
        sgd = self.simulate_from(self.task(order), seed + order, starts, **options)
        star = self.overlaps(order)[1]
        return sgd.assign(learned=abs(sgd.m.isel(time=-1, drop=True) - star) < star / 2)

    def check(self, data: Data) -> list[Check]:
        """Rest points against closed forms; where warm starts end; who decides next to m†."""

        def note(order: int) -> str:
            return f"{int(data['rest'].points.sel(order=order))} points"

        name = "distance of rest points by search from closed forms, k = {}"
        apart = data["rest"].apart
        told = checks.each("order", checks.exact, name, apart, 0.0, 1e-6, note=note)
        for start, (word, expected) in enumerate((("below", 0.0), ("above", 1.0))):
            hits = data["warm"].learned.isel(start=start)
            name = f"share of starts {word} m† that learn, all k"
            told.append(checks.proportion(name, int(hits.sum()), hits.size, expected))
        # on both sides, so that the first correction in 1/√n, which favours one, cancels
        right, left = (data["near"].learned.isel(start=side == OFFSETS) for side in (1, -1))
        stayed, share = right.sum(("start", "run")) + (~left).sum(("start", "run")), norm.cdf(1)
        name = "share that ends on its side of m† from one s.d. away, k = {}"
        return told + checks.each("order", checks.proportion, name, stayed, 2 * self.runs, share)

    def draw(self, data: Data) -> Figure:
        """Portraits with warm starts; below, the probability to learn across m†."""
        height = 3.4 if len(self.orders) > 1 else 4.4  # a narrow legend is high
        figure, panels = sl.plot.panels(2, len(self.orders), height=height)
        for (upper, lower), order in zip(panels.T, self.orders, strict=True):
            self.draw_portrait(upper, data, order)
            near = data["near"].sel(order=order)
            noise, hits = float(near.noise), near.learned.sum("run")
            label = f"share of {self.runs} runs from each start, 95 % interval"
            sl.plot.proportions(hits, self.runs, noise * OFFSETS, label=label, axes=lower)
            x = np.linspace(-2.5, 2.5, 201)
            label = r"diffusive limit at $(m_\dagger, 1)$"
            lower.plot(noise * x, norm.cdf(x), "k", label=label)
            lower.set(xlabel=r"start: $\sqrt{n}\,(m - m_\dagger)$")
            lower.set_ylabel(r"probability to reach $m_\star$")
        return sl.plot.legend_below(figure, 3)

    def draw_portrait(self, panel: Axes, data: Data, order: int) -> None:
        """The drift, rest points, and runs from both sides of m†."""
        task, (_, star) = self.task(order), self.overlaps(order)
        area: Any = {"x_range": (-0.15 * star, 1.25 * star), "y_range": (0.7, 1.3), "points": 61}
        limit, points = sl.effective_dynamics(task), marks(order, task.snr)
        sl.plot.portrait(limit, "m", "r2", **area, fixed_points=points, axes=panel)
        for start, (colour, word) in enumerate((("C4", "below"), ("C0", "above"))):
            few = data["warm"].sel(order=order, start=start).isel(run=slice(SHOWN))
            panel.plot(few.m.T, few.r2.T, color=colour, alpha=0.5, lw=0.6)
            label = f"{SHOWN} runs of SGD that start {word} $m_\\dagger$"
            panel.plot(few.m[:, -1], few.r2[:, -1], ".", color=colour, ms=7, label=label)
        panel.set_title(f"k = {order}, λ = {task.snr:.3g}")
