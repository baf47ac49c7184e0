"""Risk of least squares over the number of parameters, with ridge, and on random features."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY = sl.theory.double_descent
WIDTHS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.5, 5.0, 10.0)  # features per sample
SHOWN = np.geomspace(0.1, 10, 401)
PEAK = 5.0  # times the lowest risks on both sides


@experiment(
    paper="J24",
    figure="Thm 7.4",
    claim="Double descent: the risk peaks at one parameter per sample and falls beyond.",
    tiny={"loads": (0.5, 2.0), "samples": (50, 200), "features": 60, "runs": 10},
    quick={"samples": (100, 300, 900)},
    cost=3.0,
)
class DoubleDescent(Settings):
    """Parameters per sample, samples, the size of signal and noise."""

    loads: tuple[float, ...] = setting(
        (0.2, 0.5, 0.8, 0.92, 1.08, 1.25, 2.0, 4.0), "parameters per sample γ = d/n", above=0
    )
    samples: tuple[int, ...] = setting((200, 600, 2000), "samples n, increasing", least=40)
    signal: float = setting(1.0, "‖β‖²", above=0)
    noise: float = setting(0.1, "variance of the noise in labels", above=0)
    features: int = setting(150, "samples for random features", least=50)
    dim: int = setting(20, "dimension of the data of random features", least=2)
    runs: int = setting(12, "independent data sets", least=10)

    def compute(self, seed: int) -> Data:
        """Errors without ridge at every size, with the best ridge at the largest; features."""

        def at(samples: int, load: float, *, best: bool = False) -> xr.Dataset:
            dim = round(load * samples)
            ridge = THEORY.optimal_ridge(samples / dim, self.signal, self.noise) if best else 0.0
            return sl.lectures.regression.least_squares(
                dim,
                samples,
                signal=self.signal,
                noise=self.noise,
                ridge=ridge,
                runs=self.runs,
                seed=seed,
            )

        def size(samples: int) -> xr.Dataset:
            return sl.results.over("load", self.loads, partial(at, samples))

        def features(width: float) -> xr.Dataset:
            return sl.lectures.regression.random_features(
                round(width * self.features),
                self.features,
                dim=self.dim,
                signal=self.signal,
                noise=self.noise,
                runs=self.runs,
                seed=seed,
            )

        best = partial(at, self.samples[-1], best=True)
        return {
            "ridgeless": sl.results.over("samples", self.samples, size),
            "best": sl.results.over("load", self.loads, best),
            "features": sl.results.over("width", WIDTHS, features),
        }

    def risk(self, load: float, *, best: bool = False) -> float:
        """The limit at so many parameters per sample, without ridge or with the best one."""
        size = {"ratio": 1 / load, "signal": self.signal, "noise": self.noise}
        return THEORY.risk(**size, ridge=THEORY.optimal_ridge(**size) if best else 0.0)

    def check(self, data: Data) -> list[Check]:
        """Limits at the largest size, exact means at the smallest, where random features peak."""
        ridgeless, best = data["ridgeless"], data["best"]
        first, last = self.samples[0], self.samples[-1]
        results = []
        for load in self.loads:
            dim, small = round(load * last), round(load * first)
            error = ridgeless.error.sel(load=load, samples=last)
            exact = THEORY.mean_variance(last, dim, self.noise)
            bias = abs(exact - THEORY.variance(last / dim, self.noise))
            name = f"γ = {load:g}, n = {last}: risk without ridge"
            results.append(checks.mean(name, error, self.risk(dim / last), bias=bias))
            name = f"γ = {load:g}, n = {last}: risk with the best ridge"
            limit = self.risk(dim / last, best=True)
            results.append(checks.mean(name, best.error.sel(load=load), limit, bias=1 / last))
            exact = THEORY.mean_variance(first, small, self.noise)
            drawn = ridgeless.variance.sel(load=load, samples=first)
            name = f"γ = {load:g}, n = {first}: variance, exact mean at this size"
            printed = self.noise * load / (load - 1) if load < 1 else None
            results.append(checks.mean(name, drawn, exact, printed=printed))
        middle = data["features"].risk.median("run")
        before, after = middle.sel(width=slice(0, 0.8)), middle.sel(width=slice(1.3, None))
        peak = float(middle.sel(width=1.0))
        name = f"random features: at one per sample the risk is {PEAK:g} times that on both sides"
        beside = max(float(before.min()), float(after.min()))
        results.append(checks.holds(name, peak > PEAK * beside, note=f"{peak:.3g}, {beside:.3g}"))
        name = "random features: the least risk is beyond the peak"
        said = f"{float(after.min()):.3g} against {float(before.min()):.3g}"
        results.append(checks.holds(name, after.min() < before.min(), note=said))
        return results

    def draw(self, data: Data) -> Figure:
        """Ridgeless with its parts; with ridge; how gaps close; random features."""
        figure, panels = sl.plot.panels(2, 2, width=5.2, height=3.5)
        (first, second), (third, fourth) = panels
        ridgeless = data["ridgeless"].isel(samples=-1)
        self.curve(first, self.risk, "k", "risk, limit")
        ratios = 1 / SHOWN
        parts = [THEORY.bias(ratio, self.signal) for ratio in ratios]
        first.plot(SHOWN, parts, "k--", lw=1.1, label="bias, limit")
        parts = [THEORY.variance(ratio, self.noise) for ratio in ratios]
        first.plot(SHOWN, parts, "k:", lw=1.1, label="variance, limit")
        n = self.samples[-1]
        self.points(first, ridgeless.error, "C0", f"least squares, n = {n}, ± 2 s.e.")
        first.set(title="without ridge")
        self.curve(second, self.risk, "0.6", "risk, limit, without ridge")
        self.curve(second, partial(self.risk, best=True), "k", "risk, limit")
        self.points(second, data["best"].error, "C1", f"ridge regression, n = {n}, ± 2 s.e.")
        second.set(title="with the best ridge")
        for panel in (first, second):
            panel.axhline(self.signal, color="0.6", lw=0.8, zorder=0)
            panel.text(0.11, 1.03 * self.signal, r"$\hat\beta=0$", color="0.4")
            panel.set(ylim=(0, 2.2 * self.signal), xlabel=r"parameters per sample $\gamma=d/n$")
        self.gaps(third, data["ridgeless"])
        features = data["features"]
        low, middle, high = (features.risk.quantile(q, "run") for q in (0.1, 0.5, 0.9))
        fourth.fill_between(features.width, low, high, color="C2", alpha=0.2, lw=0)
        fourth.plot(features.width, middle, "o-", color="C2", ms=4, label="random features, median")
        training = features.training.median("run")
        fourth.plot(features.width, np.maximum(training, 1e-4), "--", color="0.5", lw=1.2)
        fourth.text(0.13, 0.03, "training error", color="0.4")
        fourth.set(yscale="log", ylim=(3e-3, 300), xlabel="features per sample $p/n$")
        fourth.set(title=f"random ReLU features, n = {self.features}, d = {self.dim}")
        for panel in (first, second, fourth):
            panel.axvline(1.0, color="0.8", lw=0.8, zorder=0)
            panel.set(xscale="log", xlim=(SHOWN[0], SHOWN[-1]))
            panel.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        for panel in panels[:, 0]:
            panel.set_ylabel(r"risk $\Vert\hat\beta-\beta\Vert^2$")
        third.set_ylabel("distance of the risk to its limit")
        fourth.set_ylabel("risk")
        return sl.plot.legend_below(figure, 3)

    def curve(self, panel: Axes, risk: Callable[[float], float], colour: str, label: str) -> None:
        """The limit over the number of parameters; it is infinite at one per sample."""
        values = np.array([risk(load) for load in SHOWN])
        panel.plot(SHOWN, np.where(np.isfinite(values), values, np.nan), color=colour, label=label)

    def points(self, panel: Axes, errors: xr.DataArray, colour: str, label: str) -> None:
        """Means over runs with two standard errors."""
        bars = 2 * errors.std("run", ddof=1) / np.sqrt(errors.sizes["run"])
        look: Any = {"fmt": "o", "ms": 5, "capsize": 3, "color": colour, "label": label}
        panel.errorbar(errors["load"], errors.mean("run"), bars, **look)

    def gaps(self, panel: Axes, ridgeless: xr.Dataset) -> None:
        """Distance to its limit of the mean over the noise: 1/n for variance, 1/√n with bias."""
        sizes = np.array(self.samples)
        for side, power, colour in ((0.5, "-1", "C0"), (2.0, "-1/2", "C3")):
            load = min(self.loads, key=lambda load: abs(np.log(load / side)))
            risks = ridgeless.risk.sel(load=load)
            apart = np.abs(risks - self.risk(load)).mean("run").values
            label = rf"least squares, $\gamma={load:g}$"
            panel.plot(sizes, apart, "o", color=colour, ms=5, label=label)
            line = apart[0] * (sizes[0] / sizes) ** (1.0 if power == "-1" else 0.5)
            panel.plot(sizes, line, "--", color=colour, lw=1.2)
            middle = (sizes[-2], line[-2])
            panel.annotate(f"$n^{{{power}}}$", middle, (6, 6), textcoords="offset points")
        panel.set(xscale="log", yscale="log", xlabel="samples $n$", title="growing sizes")
        panel.set_xticks(sizes, [str(n) for n in sizes])
        panel.xaxis.minorticks_off()
        panel.margins(x=0.15, y=0.15)
