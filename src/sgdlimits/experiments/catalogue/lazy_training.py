"""Lazy training: two layers with a scale, from features that move to features that do not."""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY, LAZY = sl.theory.lazy, sl.lectures.lazy
NAMES = ("misfit", "smallest", "largest", "lipschitz")
WORDS = {
    "misfit": r"$\Vert y-f_0\Vert\,/\,(1+\alpha)\sqrt{n}$",
    "smallest": r"$\sigma_{\min}\,/\,\alpha\sqrt{d}$",
    "largest": r"$\sigma_{\max}\,/\,\alpha(\sqrt{n}+\sqrt{d})$",
    "lipschitz": r"Lip $/\,\alpha\sqrt{d/m}\,(\sqrt{n}+\sqrt{d})$",
}
TIMES = np.concatenate([[0.0], np.geomspace(1e-3, 10, 25)])  # in units of n/σ_min²
CONSTANT = 5.0  # by which the ratio of a measured size to its scaling may vary
FAR = 10.0  # α√m from which a cell is lazy
LEARNED = 0.05  # of the loss, left at the end of training
DRIFT = 2  # exponent of 1/α in ‖θ_t − θ̄_t‖


@experiment(
    paper="J24",
    figure="Thms 9.1, 9.2",
    claim="Wide networks or large scales train like their linearisation: what counts is α√m.",
    tiny={"samples": 5, "steps": 3, "most": 32, "width": 32, "rounds": 1000},
    quick={"steps": 9, "most": 128, "width": 64, "rounds": 2000},
)
class LazyTraining(Settings):
    """Data, the grid of scales and widths, the width of the flows."""

    samples: int = setting(10, "samples n", least=4)
    dim: int = setting(8, "dimension d", least=4)
    steps: int = setting(15, "scales α of the grid, from 1/4 to 16", least=3)
    most: int = setting(512, "largest width of the grid, a power of 2", least=32)
    width: int = setting(256, "width of the flows, even", least=16)
    rounds: int = setting(4000, "rounds of gradient descent in each cell of the grid", least=100)
    scales: tuple[float, ...] = setting(
        (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), "scales α of the flows, increasing", above=0
    )

    def compute(self, seed: int) -> Data:
        """The grid; flows beside linearised ones; constants over the dimension."""
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((self.samples, self.dim))
        y = rng.standard_normal(self.samples)
        widths = 2 ** np.arange(3, int(np.log2(self.most)) + 1)
        grid = LAZY.transition(
            X, y, scales=np.geomspace(0.25, 16, self.steps), widths=widths,
            rounds=self.rounds, seed=seed,
        )  # fmt: skip
        return {
            "grid": grid,
            "flows": sl.results.over("scale", self.scales, partial(self.flow, X, y, seed)),
            "sizes": sl.results.over("dim", (8, 16, 32, 64), partial(self.sizes, seed)),
        }

    def flow(self, X: np.ndarray, y: np.ndarray, seed: int, scale: float) -> xr.Dataset:
        """The flow and the linearised one at this scale, and what is promised of them."""
        model = LAZY.TwoLayers(self.width, scale=scale)
        w = model.start(self.dim, seed=seed, centred=True)
        found = model.constants(w, X, y)
        promise = self.promise(found)
        times = TIMES * len(y) / found.smallest**2
        path = model.flow(w, X, y, times=times)
        moved = path.weights.values - w.ravel()
        linear = THEORY.linear_flow(model.jacobian(w, X), y, times=times)
        along = {
            "loss": path.loss.values / float(path.loss[0]),
            "promised": np.exp(-promise.rate * times),
            "moved": np.linalg.norm(moved, axis=1),
            "apart": np.linalg.norm(moved - linear, axis=1),
        }
        single = {"reach": promise.reach, "deviation": promise.deviation, "ratio": promise.ratio}
        described: Any = {name: ("scaled_time", value) for name, value in along.items()}
        return xr.Dataset(described | single, {"scaled_time": TIMES})

    def promise(self, found: Any) -> Any:
        """Of Theorem 9.1, from constants that were measured."""
        sizes = {name: getattr(found, name) for name in ("smallest", "largest", "lipschitz")}
        return THEORY.guarantee(found.misfit, **sizes, samples=self.samples)

    def sizes(self, seed: int, dim: int) -> xr.Dataset:
        """Ratios of measured constants to their scalings, for n = 2d and m = 8d, by scale."""
        rng = np.random.default_rng([seed, dim])
        size = {"samples": 2 * dim, "dim": dim, "width": 8 * dim}
        X, y = rng.standard_normal((2 * dim, dim)), rng.standard_normal(2 * dim)

        def one(alpha: float) -> xr.Dataset:
            model = LAZY.TwoLayers(8 * dim, scale=alpha)
            found = model.constants(model.start(dim, seed=seed), X, y)
            said = THEORY.scalings(alpha, **size)
            return xr.Dataset({name: getattr(found, name) / getattr(said, name) for name in NAMES})

        return sl.results.over("alpha", (0.1, 1.0, 10.0), one)

    def check(self, data: Data) -> list[Check]:
        """Promises along flows, rates in α and α√m, ratios to the scalings."""
        grid, flows, results = data["grid"], data["flows"], []
        for scale in self.scales:
            flow = flows.sel(scale=scale)
            if not np.isfinite(flow.reach):
                continue
            ratio = float((flow.loss / flow.promised).max())
            name = f"α = {scale:g}: loss below the promised R₀ e^(−λ₀t)"
            results.append(checks.holds(name, ratio <= 1 + 1e-6, note=f"at most {ratio:.6g} of it"))
            for what, bound in (("moved", "reach"), ("apart", "deviation")):
                top, limit = float(flow[what].max()), float(flow[bound])
                name = f"α = {scale:g}: ‖θ_t − {'θ₀' if what == 'moved' else 'θ̄_t'}‖ is bounded"
                said = f"{top:.3g} of at most {limit:.3g}"
                results.append(checks.holds(name, 0 < top <= limit, note=said))
        kept = int(np.isfinite(flows.reach).sum())
        results.append(checks.holds("some scale meets the assumption", kept > 0, note=f"{kept}"))
        apart = flows.apart.max("scaled_time").isel(scale=slice(-3, None))
        name = "exponent of α in ‖θ_t − θ̄_t‖, from a centred start"
        results.append(checks.exact(name, checks.exponent(apart, "scale"), -DRIFT, 0.1))
        results.append(
            checks.holds(
                "every cell learns", grid.left.max() < LEARNED, note=f"{grid.left.max():.2g}"
            )
        )
        wide = grid.isel(width=-1)
        lazy = wide.sel(scale=wide.scale >= FAR / np.sqrt(self.most))
        for what, power in (("motion", 1), ("kernel_change", 2)):
            measured = float(checks.exponent(lazy[what], "scale"))
            name = f"{what.replace('_', ' ')}: exponent of α, for α√m ≥ {FAR:g} at m = {self.most}"
            results.append(checks.exact(name, measured, -power, 0.1 * power))
        reach = grid.scale * np.sqrt(grid.width.astype(float))
        scaled = (grid.motion * reach).where((reach >= FAR) & (grid.width >= self.most // 4))
        spread = float(scaled.max() / scaled.min())
        name = f"motion × α√m, for α√m ≥ {FAR:g}, three largest widths: largest over smallest"
        results.append(checks.exact(name, spread, 1.0, 0.5))
        for name in NAMES:
            values = data["sizes"][name]
            spread = float(values.max() / values.min())
            said = f"ratios {float(values.min()):.3g} to {float(values.max()):.3g}"
            title = f"{name}: measured over its scaling, over d = 8 … 64 and α: spread"
            results.append(checks.exact(title, spread, 1.0, CONSTANT - 1, note=said))
        return results

    def draw(self, data: Data) -> Figure:
        """The transition; its collapse; flows beside their bounds; the four scalings."""
        figure, panels = sl.plot.panels(2, 2, width=5.4, height=3.7)
        (first, second), (third, fourth) = panels
        self.transition(first, data["grid"])
        self.collapse(second, data["grid"])
        flows = data["flows"]
        alphas = flows.scale.values
        third.plot(alphas, flows.moved.max("scaled_time"), "o-", color="C0", ms=5,
                   label=r"$\Vert\theta_t-\theta_0\Vert$, flow")  # fmt: skip
        third.plot(alphas, flows.apart.max("scaled_time"), "s-", color="C1", ms=5,
                   label=r"$\Vert\theta_t-\bar\theta_t\Vert$, flow")  # fmt: skip
        for name, colour in (("reach", "C0"), ("deviation", "C1")):
            bound = flows[name].where(np.isfinite(flows[name]))
            third.plot(alphas, bound, "v--", color=colour, ms=5, mfc="w", lw=1.1)
        third.plot([], [], "v--", color="0.4", mfc="w", label="promised, where the theorem applies")
        third.set(xscale="log", yscale="log", xlabel=r"scale $\alpha$", ylabel="largest over time")
        third.set(title=f"flow and linearised flow, width {self.width}")
        for number, name in enumerate(NAMES):
            values = data["sizes"][name]
            middle = values.sel(alpha=1.0)
            fourth.fill_between(values.dim, values.min("alpha"), values.max("alpha"),
                                color=f"C{number}", alpha=0.2, lw=0)  # fmt: skip
            fourth.plot(values.dim, middle, "o-", color=f"C{number}", ms=4.5)
        heights = {name: float(data["sizes"][name].sel(alpha=1.0)[-1]) for name in NAMES}
        below = 0.0
        for name in sorted(NAMES, key=heights.__getitem__):
            below = max(heights[name], 1.25 * below)  # so that words do not touch
            colour = f"C{NAMES.index(name)}"
            fourth.text(72, below, WORDS[name], color=colour, va="center")
        fourth.set(xscale="log", yscale="log", xlim=(7, 700), xlabel="dimension $d$")
        fourth.set_xticks([8, 16, 32, 64], ["8", "16", "32", "64"])
        fourth.xaxis.minorticks_off()
        fourth.set(ylabel="measured / scaling")
        fourth.set(title=r"four scalings, $n=2d$, $m=8d$, $\alpha=0.1$ to 10")
        return sl.plot.legend_below(figure, 3)

    def transition(self, panel: Axes, grid: xr.Dataset) -> None:
        """Change of the kernel over scale and width, with lines of equal α√m."""
        shown = np.log10(grid.kernel_change.transpose("width", "scale").values)
        mesh = panel.pcolormesh(
            grid.scale, grid.width, shown, cmap="magma", shading="gouraud", rasterized=True
        )
        bar = panel.figure.colorbar(mesh, ax=panel)
        bar.set_label(r"change of the kernel, $\log_{10}$")
        panel.set(xscale="log", yscale="log", xlabel=r"scale $\alpha$", ylabel="width $m$")
        panel.grid(visible=False)
        low, high = float(grid.width[0]), float(grid.width[-1])
        for level in (1, 4, 16, 64):
            m = np.geomspace(low, high, 50)
            alpha = level / np.sqrt(m)
            inside = (alpha >= 0.25) & (alpha <= 16)
            panel.plot(alpha[inside], m[inside], "w--", lw=1)
            k = int(np.flatnonzero(inside)[len(np.flatnonzero(inside)) // 2])
            panel.text(alpha[k], m[k], f" {level}", color="w", va="bottom")
        panel.set_xticks([0.25, 1, 4, 16], ["1/4", "1", "4", "16"])
        panel.set_yticks(grid.width.values, [str(m) for m in grid.width.values])
        panel.minorticks_off()
        panel.set(title=r"from rich to lazy; dashed: $\alpha\sqrt{m}$")

    def collapse(self, panel: Axes, grid: xr.Dataset) -> None:
        """Motion and change of the kernel of all cells against α√m."""
        reach = (grid.scale * np.sqrt(grid.width.astype(float))).transpose("scale", "width")
        shades: Any = {"c": np.log2(np.broadcast_to(grid.width, reach.shape)), "cmap": "viridis_r"}
        for name, marker in (("motion", "o"), ("kernel_change", "s")):
            values = grid[name].transpose("scale", "width")
            panel.scatter(reach, values, s=16, marker=marker, **shades)
        wide, far = grid.isel(width=-1, scale=-1), float(reach[-1, -1])
        x = np.geomspace(0.5, float(reach.max()), 50)
        panel.plot(x, float(wide.motion) * far / x, "k-", lw=1, zorder=0)
        x = x[x > 2.5]
        panel.plot(x, float(wide.kernel_change) * (far / x) ** 2, "k-", lw=1, zorder=0)
        panel.plot(
            [], [], "o", color="0.4", label=r"motion $\Vert\theta-\theta_0\Vert/\Vert\theta_0\Vert$"
        )
        panel.plot([], [], "s", color="0.4", label=r"kernel $\Vert K-K_0\Vert/\Vert K_0\Vert$")
        panel.plot([], [], "k-", lw=1, label=r"powers $-1$ and $-2$ of $\alpha\sqrt{m}$")
        panel.set(xscale="log", yscale="log", xlabel=r"$\alpha\sqrt{m}$", ylabel="relative change")
        panel.set(title=f"all cells, n = {self.samples}, d = {self.dim}; darker is wider")
