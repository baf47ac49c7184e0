"""Estimators that fit noise exactly and still learn: a kernel with a pole, beside other curves."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

KERNEL, NEAREST = sl.theory.nadaraya_watson, sl.theory.nearest_neighbours
SMOOTHING = sl.lectures.smoothing
LOADS = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.1, 1.25, 1.6, 2.5, 5.0, 10.0])
SHOWN = np.geomspace(0.1, 10, 201)
FAR = (10**8, 10**10)  # samples between which the exact risk has the power of the theorem
ALLOWED = 0.1  # relative distance of a fitted power to that of the theorem
POINTS = 25  # of the picture in one dimension


@experiment(
    paper="J24",
    figure="Thm 5.3",
    claim="A kernel with a pole interpolates its data and its risk falls like n^(−2β/(2β + d)).",
    tiny={"dims": (1, 2), "samples": (200, 800), "curve": 200, "runs": 800, "parameters": 40},
    quick={"samples": (250, 1000, 4000), "curve": 500, "runs": 800, "parameters": 100},
)
class Interpolation(Settings):
    """Dimensions, samples, and the target f(x) = ‖x‖^β, seen at its cusp."""

    dims: tuple[int, ...] = setting((1, 2, 3), "dimensions d of the data", least=1, most=9)
    samples: tuple[int, ...] = setting((500, 2000, 8000, 32_000), "samples n, increasing", least=50)
    smoothness: float = setting(1.0, "smoothness β", above=0, most=1)
    noise: float = setting(0.25, "variance of labels", above=0)
    pole: float = setting(0.25, "exponent a of the kernel, in units of d", above=0, most=0.45)
    curve: int = setting(1000, "samples of the curves, in two dimensions", least=100)
    parameters: int = setting(200, "samples of least squares", least=20)
    runs: int = setting(3000, "independent data sets", least=100)

    def compute(self, seed: int) -> Data:
        """Risks at the cusp over samples, bandwidth and neighbours; least squares; one curve."""
        law: dict[str, Any] = {"smoothness": self.smoothness, "noise": self.noise}
        law |= {"runs": self.runs, "seed": seed}

        def growing(dim: int) -> xr.Dataset:
            def one(samples: int) -> xr.Dataset:
                width = KERNEL.best_bandwidth(samples, dim, self.smoothness)
                drawn = SMOOTHING.kernel_errors(
                    dim, samples, [width], exponent=self.pole * dim, **law
                )
                exact = self.kernel_risk(samples, dim, width)
                return xr.Dataset({"error": drawn.error.isel(bandwidth=0, drop=True)}).assign(
                    exact=exact
                )

            return sl.results.over("samples", self.samples, one)

        counts = np.unique(np.geomspace(1, self.curve, 13).round().astype(int))
        widths = np.sqrt(counts / self.curve)
        kernel = SMOOTHING.kernel_errors(2, self.curve, widths, exponent=2 * self.pole, **law)
        nearest = SMOOTHING.neighbour_errors(2, self.curve, counts, **law)

        def least(load: float) -> xr.Dataset:
            return sl.lectures.regression.least_squares(
                round(load * self.parameters), self.parameters, noise=self.noise, runs=20, seed=seed
            )[["error"]]

        return {
            "growing": sl.results.over("dim", self.dims, growing),
            "kernel": kernel,
            "nearest": nearest,
            "least_squares": sl.results.over("load", LOADS, least),
            "line": self.line(np.random.default_rng([seed, 1])),
        }

    def kernel_risk(self, samples: int, dim: int, width: float) -> float:
        """Exact risk of the kernel at the cusp."""
        own = (samples, dim, width, self.pole * dim)
        return KERNEL.variance(*own, self.noise) + KERNEL.squared_bias(*own, self.smoothness)

    def nearest_risk(self, neighbours: int) -> float:
        """Exact risk of the nearest neighbours at the cusp, in two dimensions."""
        bias = NEAREST.squared_bias(neighbours, self.curve, 2, self.smoothness)
        return bias + NEAREST.variance(neighbours, self.noise)

    def line(self, rng: np.random.Generator) -> xr.Dataset:
        """Noisy points on a line, and their interpolant, at the points and very near to them."""
        x = np.sort(rng.uniform(-1, 1, POINTS))
        y = target(x) + 0.3 * rng.standard_normal(POINTS)
        smooth = SMOOTHING.NadarayaWatson(x[:, None], y, bandwidth=0.35, exponent=0.4)
        near = np.concatenate(
            [x + side * 10.0**-power for power in range(1, 13) for side in (-1, 1)]
        )
        grid = np.unique(np.concatenate([np.linspace(-1, 1, 801), x, near[np.abs(near) < 1]]))
        variables = {"y": ("point", y), "at_points": ("point", smooth(x[:, None]))}
        variables["curve"] = ("grid", smooth(grid[:, None]))
        return xr.Dataset(variables, {"point": x, "grid": grid})

    def check(self, data: Data) -> list[Check]:
        """Interpolation; exact risks; powers of n, fitted and of the exact risk far out."""
        line, growing = data["line"], data["growing"]
        name = "largest distance of the interpolant to its data"
        results = [checks.exact(name, abs(line.at_points - line.y).max(), 0.0)]
        for dim in self.dims:
            errors, power = growing.error.sel(dim=dim), KERNEL.rate(dim, self.smoothness)
            last = self.samples[-1]
            exact = float(growing.exact.sel(dim=dim, samples=last))
            name = f"d = {dim}, n = {last}: risk of the kernel"
            results.append(checks.mean(name, errors.sel(samples=last), exact))
            fitted, error = fit(errors)
            name = f"d = {dim}: fitted power of n in the risk"
            allowed = ALLOWED * power + 4 * error
            said = f"theorem {power:.3g} within 10 % and 4 standard errors of {error:.2g}"
            results.append(checks.exact(name, fitted, -power, allowed, note=said))
            far = [
                self.kernel_risk(n, dim, KERNEL.best_bandwidth(n, dim, self.smoothness))
                for n in FAR
            ]
            slope = np.log(far[1] / far[0]) / np.log(FAR[1] / FAR[0])
            name = f"d = {dim}: power of n in the exact risk, n = 1e8 to 1e10"
            results.append(checks.exact(name, slope, -power, 0.02 * power))
        for k in (1, int(data["nearest"].neighbours[6])):
            exact = self.nearest_risk(k)
            name = f"{k} nearest of {self.curve} points: risk"
            printed = exact - self.noise if k == 1 else None  # f(x) in place of labels
            error = data["nearest"].error.sel(neighbours=k)
            results.append(checks.mean(name, error, exact, printed=printed))
        return results

    def draw(self, data: Data) -> Figure:
        """An interpolant; rates; two curves with a lowest point; one with a second descent."""
        figure, panels = sl.plot.panels(2, 2, width=5.2, height=3.6)
        (first, second), (third, fourth) = panels
        line = data["line"]
        first.plot(line.grid, target(line.grid.values), "k--", lw=1.2, label="target")
        first.plot(line.grid, line.curve, color="C0", lw=1.2, label="kernel with a pole")
        first.plot(line.point, line.y, "o", color="C1", ms=4, label="data")
        first.set(title="it interpolates every label", xlabel="$x$", ylabel="$y$")
        for dim, colour in picture.coloured(self.dims):
            part = data["growing"].sel(dim=dim)
            mean, bars = part.error.mean("run"), 2 * part.error.std("run", ddof=1)
            power = KERNEL.rate(dim, self.smoothness)
            label = (
                rf"$d={dim}$: fitted $n^{{{fit(part.error)[0]:.2f}}}$, theorem $n^{{-{power:.2f}}}$"
            )
            look: Any = {"color": colour, "capsize": 3, "fmt": "o", "ms": 4, "label": label}
            second.errorbar(part.samples, mean, bars / np.sqrt(self.runs), **look)
            second.plot(part.samples, part.exact, color=colour, lw=1.2)
        second.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="risk at the cusp")
        second.set(title=rf"and learns at the best rate ($\beta={self.smoothness:g}$)")
        second.set_xticks(self.samples, [f"{n}" for n in self.samples])
        second.xaxis.minorticks_off()
        self.curves(third, data["kernel"], data["nearest"])
        self.descent(fourth, data["least_squares"])
        return sl.plot.legend_below(figure, 4)

    def curves(self, panel: Axes, kernel: xr.Dataset, nearest: xr.Dataset) -> None:
        """Risk over n divided by the number of points that are averaged."""
        counts = nearest.neighbours.values
        averaged = self.curve * kernel.bandwidth.values**2
        fine = np.geomspace(1, self.curve, 60)
        exact = [self.nearest_risk(round(k)) for k in fine]
        panel.plot(self.curve / fine.round(), exact, "k", lw=1.2, label="theory")
        exact = [self.kernel_risk(self.curve, 2, np.sqrt(k / self.curve)) for k in fine]
        panel.plot(self.curve / fine, exact, "k", lw=1.2)
        words = ("nearest neighbours", "kernel with a pole")
        for word, size, drawn in zip(words, (counts, averaged), (nearest, kernel), strict=True):
            look: Any = {"marker": "s" if word == words[0] else "o", "ls": "", "ms": 5}
            colour = picture.COLOURS[2 if word == words[0] else 0]
            risks = drawn.error.mean("run")
            panel.plot(self.curve / size, risks, color=colour, label=f"{word}, mean", **look)
        panel.axhline(self.noise, color="0.6", lw=0.8, zorder=0)
        panel.text(4, 1.06 * self.noise, "noise", color="0.4")
        panel.set(xscale="log", yscale="log", title=f"the classical curve, n = {self.curve}, d = 2")
        panel.set(xlabel="complexity: $n$ / points averaged", ylabel="risk at the cusp")

    def descent(self, panel: Axes, drawn: xr.Dataset) -> None:
        """Least squares without ridge over parameters per sample."""
        limit = [sl.theory.double_descent.risk(1 / x, 1.0, self.noise) for x in SHOWN]
        panel.plot(SHOWN, np.where(np.isfinite(limit), limit, np.nan), "k", lw=1.2)
        low, middle, high = (drawn.error.quantile(q, "run") for q in (0.25, 0.5, 0.75))
        bars = np.stack([middle - low, high - middle])
        label = "least squares, median and quartiles"
        panel.errorbar(drawn["load"], middle, bars, fmt="o", color="C3", ms=5, label=label)
        panel.axvline(1.0, color="0.6", lw=0.8, zorder=0)
        panel.text(1.1, 0.03, "interpolates →", color="0.4")
        panel.set(xscale="log", yscale="log", ylim=(0.02, 30))
        panel.set(title=f"the double descent, n = {self.parameters}")
        panel.set(xlabel="complexity: parameters / sample", ylabel="risk")


def target(x: np.ndarray) -> np.ndarray:
    """What the points on a line are noisy values of."""
    return np.asarray(np.sin(np.pi * x) + np.abs(x))


def fit(errors: xr.DataArray) -> tuple[float, float]:
    """Power of n in the mean error, by least squares in logarithms, and its standard error."""
    x = np.log(errors.samples.values.astype(float))
    x -= x.mean()
    mean = errors.mean("run")
    relative = errors.std("run", ddof=1) / np.sqrt(errors.sizes["run"]) / mean
    scale = float((x**2).sum())
    return float(x @ np.log(mean.values)) / scale, float(
        np.linalg.norm(x * relative.values)
    ) / scale
