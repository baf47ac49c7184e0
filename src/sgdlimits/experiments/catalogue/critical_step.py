"""Critical against small step sizes: what the noise of high dimension does to a warm start."""

from itertools import count

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.shared import Sgd

ORDER = 3


@experiment(
    paper="BGJ22",
    figure="Sec. 2.1",
    claim="Tensor PCA: the corrector holds r² at c and traps warm starts; m† → 0 as c → 0.",
    tiny={"steps": (1.0, 0.3), "dim": 1000, "runs": 24},
    quick={"steps": (1.0, 0.3, 0.1, 0.03)},
    headline=True,
)
class CriticalStep(Sgd):
    """Step sizes, the signal, and one start for all runs."""

    steps: tuple[float, ...] = setting(
        (1.0, 0.3, 0.1, 0.01), "step sizes c, in units of 1/dim", above=0, most=1
    )
    snr: float = setting(4.0, "signal-to-noise ratio λ", above=0, most=10)
    overlap: float = setting(0.15, "overlap m at the start; r² is 1", above=0, most=2)
    dim: int = setting(2000, "dimension n", least=500)
    runs: int = setting(40, "independent runs of SGD for each step size", least=16)
    time: float = setting(1.5, "duration, in units of dim/step samples", above=0)

    def compute(self, seed: int) -> Data:
        """SGD, the limit and its fluctuations, and the population dynamics, all from one start."""
        task = sl.tasks.SpikedTensor(order=ORDER, snr=self.snr)
        start = {"m": self.overlap, "r2": 1.0}

        def sgd(step: float, seed: int) -> xr.Dataset:
            return self.simulate(task, seed, step=step, init=start, points=101)

        def limit(step: float) -> xr.Dataset:
            return self.solve(task, start, points=101, step=step)

        def fluctuations(step: float) -> xr.Dataset:
            return self.fluctuations(task, start, points=101, step=step)

        return {
            "sgd": sl.results.over("step", self.steps, sgd, count(seed)),
            "limit": sl.results.over("step", self.steps, limit),
            "fluctuations": sl.results.over("step", self.steps, fluctuations),
            "population": limit(1e-9),
        }

    def check(self, data: Data) -> list[Check]:
        """Overlap and radius at the end, and the path at the largest step."""
        ends, largest = data["sgd"].isel(time=-1), max(self.steps)
        without = f"population dynamics: {float(data['population'].m[-1]):.3g}"
        sgd, limit, sizes = (data[x].sel(step=largest) for x in ("sgd", "limit", "fluctuations"))
        path = f"path of m and r², c = {largest:g}"

        def rest(step: float) -> float:
            return self.rest(step, float(data["limit"].m.sel(step=step)[-1]))

        return [
            *checks.each("step", checks.mean, "m at the end, c = {:g}", ends.m, rest, note=without),
            checks.mean("r²/c at the end, all c", ends.r2 / ends.step, 1.0),
            checks.path(path, sgd, limit, ["m", "r2"], fluctuations=sizes),
        ]

    def rest(self, step: float, end: float) -> float:
        """The overlap, in closed form, of the rest point that is nearest to the end."""
        points = sl.theory.spiked_tensor.fixed_points(ORDER, self.snr, step)
        return min((point.overlap for point in points), key=lambda overlap: abs(overlap - end))

    def draw(self, data: Data) -> Figure:
        """Overlap and radius over time, and the rest points as the step size moves."""
        figure, panels = sl.plot.panels(1, 3, width=4.0, height=3.9)
        population = data["population"]
        for panel, name in zip(panels[0], ("m", "r2"), strict=False):
            for step, colour in picture.coloured(self.steps):
                values, label = data["sgd"][name].sel(step=step), f"SGD, c = {step:g}"
                sl.plot.runs(values, most=8, label="_", color=colour, axes=panel)
                sl.plot.band(values, label=label, color=colour, axes=panel)
            panel.plot(population.time, data["limit"][name].T, "k", lw=1.2, label="limit")
            label = "population dynamics, c → 0"
            panel.plot(population.time, population[name], "k:", lw=2, label=label)
            panel.set_ylabel(sl.plot.symbol(name))
        self.draw_rest_points(panels[0, 2], data["sgd"].m.isel(time=-1))
        for panel in panels[0]:
            panel.set_title(f"k = {ORDER}, λ = {self.snr:g}")
        return sl.plot.legend_below(figure)

    def draw_rest_points(self, panel: Axes, ends: xr.DataArray) -> None:
        """Both overlaps at rest over the step size, and where runs end."""
        # λ is critical at the step c with λ_c·c^{k/2} = λ
        fold = (self.snr / sl.theory.spiked_tensor.critical_snr(ORDER)) ** (2 / ORDER)
        steps = np.linspace(1e-3, min(1.1, fold), 201)
        rest = np.array([sl.theory.spiked_tensor.overlaps(ORDER, self.snr, step) for step in steps])
        panel.plot(steps, rest[:, 1], "k", lw=1.2, label=r"$m_\star$ (stable)")
        panel.plot(steps, rest[:, 0], "k--", lw=1.2, label=r"$m_\dagger$ (unstable)")
        panel.axhline(0, color="k", lw=1.2)
        panel.axhline(self.overlap, color="0.5", ls="-.", lw=1.2, label="start")
        for step, colour in picture.coloured(self.steps):
            panel.plot(np.full(self.runs, step), ends.sel(step=step), ".", color=colour, ms=7)
        panel.set(xlabel="step size c", ylabel="overlap $m$ at the end")
