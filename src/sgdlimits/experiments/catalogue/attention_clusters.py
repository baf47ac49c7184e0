"""Tokens on the sphere climb an energy, gather in clusters that live long, and become one."""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY, FLOW, TOKENS = sl.theory.attention, sl.lectures.attention, sl.lectures.tokens
JOINED = 0.99  # pairs with a larger inner product are in one cluster
FIRST, LAST = -0.8, 0.5  # inner product of two clusters, from where to where they meet
SHARES = (0.5, 0.125)  # of particles, in the first of two clusters
COOLING = (0.0, 2.0, 4.0, 6.0, 8.0)  # β of two clusters
ENERGIES = (0.0, 4.0)  # β of energies
SADDLES = {
    "regular simplex": np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3),
    "two poles": np.array([[0.0, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0, -1]]),
}
AWAY = 1e-7  # of the start, from a saddle
SOLVED = 1e-6  # error of inner products: the tolerance of a step is 1e-9
LEAVING = (8.0, 11.0)  # times between which it is left
SNAPSHOTS = (0.0, 3.0, 30.0, 300.0)  # of histograms


@experiment(
    paper="J24",
    figure="Thm 14.1",
    claim="Self-attention climbs an energy; tokens gather in clusters that live e^(cβ), then one.",
    tiny={"particles": 8, "dim": 32, "runs": 10, "horizon": 300.0, "points": 31},
    quick={"horizon": 1000.0},
)
class AttentionClusters(Settings):
    """Particles, dimension of the random ones, temperatures on the circle, runs."""

    particles: int = setting(32, "particles n", least=4)
    dim: int = setting(128, "dimension of the random start beside the orthonormal one", least=8)
    betas: tuple[float, ...] = setting((1.0, 2.0, 3.0, 4.0), "β on the circle", least=0.5, most=9.0)
    runs: int = setting(16, "independent starts on the circle", least=8)
    horizon: float = setting(3000.0, "the last time on the circle", least=300.0)
    points: int = setting(81, "recorded times", least=21)

    def compute(self, seed: int) -> Data:
        """The flow in high dimension, on the circle and on the sphere; two clusters; saddles."""
        late = np.geomspace(0.1, self.horizon, self.points)
        circle = FLOW.flow(
            TOKENS.uniform(self.particles, 2, runs=self.runs, seed=seed),
            np.append(0.0, late),
            inverse_temperature=self.betas,
        )
        sphere = FLOW.flow(
            TOKENS.uniform(self.particles, 3, seed=seed)[0],
            np.append(0.0, np.geomspace(0.02, 100.0, 4 * self.points)),
            inverse_temperature=9.0,
        )
        pairs = TOKENS.products(circle.points)
        counts = TOKENS.clusters(circle.points, JOINED)
        counted = {
            "clusters": (circle.points.dims[:3], counts),
            "products": ((*circle.points.dims[:3], "pair"), pairs),
        }
        return {
            "equal": sl.results.over("inverse_temperature", (0.0, 4.0, 8.0), self.equal),
            "random": sl.results.over(
                "inverse_temperature", (0.0, 4.0, 8.0), partial(self.equal, seed=seed)
            ),
            "circle": xr.Dataset(counted, circle[list(circle.points.dims[:3])].coords),
            "sphere": sphere,
            "energies": sl.results.over(
                "inverse_temperature", ENERGIES, partial(self.energies, seed)
            ),
            "meetings": sl.results.over("share", SHARES, self.meetings),
            "saddles": sl.results.over("saddle", list(SADDLES), partial(self.saddle, seed)),
        }

    def equal(self, beta: float, seed: int | None = None) -> xr.Dataset:
        """Products of orthonormal particles, or of random ones, over time, and the closed form."""
        times = np.append(0.0, np.geomspace(0.05, 20 + 2 * np.exp(beta), 4 * self.points))
        start = np.eye(self.particles, max(self.particles, self.dim))
        if seed is not None:
            start = TOKENS.uniform(self.particles, self.dim, seed=seed)[0]
        path = FLOW.flow(start, times, inverse_temperature=beta)
        described = {
            "products": (("point", "pair"), TOKENS.products(path.points)),
            "expected": ("point", THEORY.equal_products(times, self.particles, beta)),
            "time": ("point", times),
        }
        return xr.Dataset(described)

    def energies(self, seed: int, beta: float) -> xr.Dataset:
        """The energy along a path, and what its rate adds up to; Σ ‖ẋ_i‖² at each time."""
        # Simpson's rule needs times that are even; most happens early
        times = np.linspace(0, 12, 401)
        start = TOKENS.uniform(self.particles, 3, seed=seed)[0]
        path = FLOW.flow(start, times, inverse_temperature=beta, tolerance=1e-11)
        X = path.points.values
        speeds = np.sum(FLOW.velocity(X, inverse_temperature=beta) ** 2, axis=(1, 2))
        described = {
            "energy": ("time", [THEORY.energy(x, beta) for x in X]),
            "rate": ("time", [THEORY.energy_rate(x, beta) for x in X]),
            "square_speed": ("time", speeds),
        }
        return xr.Dataset(described, {"time": times})

    def meetings(self, share: float) -> xr.Dataset:
        """The inner product of two clusters when it should be ``LAST``, and when it is."""
        first, angle = round(8 * share), np.arccos(FIRST)
        other = [np.cos(angle), np.sin(angle)]
        start = np.array([[1.0, 0.0]] * first + [other] * (8 - first))

        def one(beta: float) -> xr.Dataset:
            time = THEORY.meeting_time(beta, FIRST, LAST, share=share)
            times = time * np.array([0.0, 0.8, 0.9, 0.95, 0.99, 1.0, 1.01, 1.05, 1.1, 1.2])
            path = FLOW.flow(start, times, inverse_temperature=beta, tolerance=1e-12)
            products = TOKENS.products(path.points).min(axis=1)
            measured = np.interp(LAST, products, times)
            return xr.Dataset({"measured": measured, "product": products[times == time].item()})

        return sl.results.over("inverse_temperature", COOLING, one)

    def saddle(self, seed: int, name: str) -> xr.Dataset:
        """The length of the mean at two times after a start beside a saddle of E₀."""
        points = SADDLES[name]
        start = points + AWAY * np.random.default_rng(seed).standard_normal(points.shape)
        path = FLOW.flow(start, [0.0, *LEAVING], inverse_temperature=0.0, tolerance=1e-13)
        length = np.linalg.norm(path.points.mean("particle"), axis=1)
        rate = np.log(length[2] / length[1]) / (LEAVING[1] - LEAVING[0])
        return xr.Dataset({"rate": rate, "expected": THEORY.escape_rate(points)})

    def check(self, data: Data) -> list[Check]:
        """Products, energies, saddles and two clusters in closed form; how long clusters live."""
        results = []
        for beta, part in data["equal"].groupby("inverse_temperature"):
            gap = float(abs(part.products - part.expected).max())
            name = f"orthonormal particles, β = {beta:g}: largest distance of a product to γ"
            results.append(checks.exact(name, gap, 0.0, SOLVED))
            results += self.rates(float(beta), part)
        for beta, part in data["energies"].groupby("inverse_temperature"):
            part = part.squeeze()
            name = f"E at β = {beta:g}: largest fall in a step, of its rise"
            rise = float(part.energy[-1] - part.energy[0])
            fall = max(0.0, -float(part.energy.diff("time").min()))
            results.append(checks.exact(name, fall / rise, 0.0, 1e-12))
            name = f"E at β = {beta:g}: its rise, of the integral of its rate"
            results.append(checks.exact(name, rise / integral(part.rate), 1.0, 1e-5))
            if beta == 0:
                name = "E₀: the integral of Σ‖ẋ_i‖², of its rise, as gradient ascent says"
                measured = integral(part.square_speed) / rise
                # what is printed for E₀ is twice as large, so its ascent would be twice as fast
                results.append(checks.exact(name, measured, 1.0, 1e-5, printed=2.0))
        for name in SADDLES:
            part = data["saddles"].sel(saddle=name)
            expected = float(part.expected)
            text = f"{name}: rate at which this saddle of E₀ is left"
            results.append(checks.exact(text, part.rate, expected, 0.01, printed=2 * expected))
        for share in SHARES:
            part = data["meetings"].product.sel(share=share)
            name = (
                f"two clusters, share {share:g}: product when it should be {LAST}, worst of all β"
            )
            worst = max(part.values, key=lambda product: abs(product - LAST))
            results.append(checks.exact(name, worst, LAST, 1e-6))
        lives = several(data["circle"])
        medians = lives.median("run")
        name = "circle: the median time with more than one cluster grows with β"
        grows = bool((medians.diff("inverse_temperature") > 0).all())
        said = ", ".join(f"{value:.3g}" for value in medians.values)
        results.append(checks.holds(name, grows, note=f"medians {said}"))
        norms = np.linalg.norm(data["sphere"].points, axis=-1)
        name = "sphere: largest distance of a norm from 1"
        return [*results, checks.exact(name, np.abs(norms - 1).max(), 0.0, 1e-8)]

    def rates(self, beta: float, part: xr.Dataset) -> list[Check]:
        """The exponential rate that holds at all times, of its formula; the one late in time."""
        times, gaps = part.time.values.ravel(), 1 - part.products.mean("pair").values.ravel()
        formula = THEORY.decay_rate(0.0, self.particles, beta)
        kept = (times > 0) & (gaps > SOLVED)
        measured = np.min(-np.log(gaps[kept]) / times[kept])
        # the rate grows along the path: its mean up to the first time is between those at the ends
        first = THEORY.decay_rate(1 - gaps[1], self.particles, beta)
        allowed = first / formula - 1 + SOLVED / (formula * times[1])
        name = (
            f"orthonormal particles, β = {beta:g}: rate λ of 1 − γ(t) ≤ e^(−λt), of 2/(e^β + n − 1)"
        )
        said = f"λ is {formula:.3g}"
        results = [checks.exact(name, measured / formula, 1.0, allowed, note=said)]
        late = np.flatnonzero(kept & (gaps < 1e-3))
        if len(late) > 1:
            fall = np.log(gaps[late[0]] / gaps[late[-1]]) / (times[late[-1]] - times[late[0]])
            name = f"orthonormal particles, β = {beta:g}: rate late in time"
            results.append(checks.exact(name, fall, 2.0, 0.01))
        return results

    def draw(self, data: Data) -> Figure:
        """Paths on the sphere, clusters and products; the closed forms."""
        figure, panels = sl.plot.panels(2, 3, width=4.3, height=3.6)
        (first, second, third), (fourth, fifth, sixth) = panels
        sl.plot.sphere(data["sphere"], axes=first)
        first.set(title=r"paths to clusters, $\beta=9$, $t\leq 100$")
        circle = data["circle"]
        for beta, colour in picture.coloured(self.betas):
            mean = circle.clusters.sel(inverse_temperature=beta).mean("run")
            second.plot(mean.time[1:], mean[1:], color=colour, label=rf"$\beta={beta:g}$")
        second.set(xscale="log", yscale="log", xlabel="time $t$", ylabel="clusters, mean of runs")
        plain(second.yaxis, [k for k in (1, 2, 3, 5, 10, 20, 30) if k <= self.particles])
        second.set_title(f"clusters on the circle, $n={self.particles}$")
        second.legend()
        self.histograms(third, circle.products.isel(inverse_temperature=-1))
        for number, (beta, colour) in enumerate(
            picture.coloured(data["equal"].inverse_temperature.values)
        ):
            known, drawn = (
                data[name].sel(inverse_temperature=beta) for name in ("equal", "random")
            )
            low, high = np.quantile(drawn.products, [0.05, 0.95], axis=1)
            fourth.fill_between(drawn.time, low, high, color=colour, alpha=0.2, lw=0)
            mean = known.products.mean("pair")
            label = rf"$\beta={beta:g}$"
            fourth.plot(known.time[::12], mean[::12], "o", ms=4, color=colour, label=label)
            theory = "theory" if number == 0 else None
            fourth.plot(known.time, known.expected, "k", lw=1.1, label=theory)
        fourth.set(xscale="log", xlim=(0.05, None), xlabel="time $t$")
        fourth.set_ylabel(r"$\langle x_i,x_j\rangle$")
        fourth.set_title("orthonormal particles keep equal angles")
        fourth.legend(loc="center right")
        text = f"bands: 90 %\nof pairs, random\nstart, $d={self.dim}$"
        fourth.text(
            0.99, 0.04, text, transform=fourth.transAxes, ha="right", color="0.3", fontsize=9
        )
        self.lives(fifth, data)
        self.rises(sixth, data["energies"])
        return figure

    def histograms(self, panel: Axes, products: xr.DataArray) -> None:
        """Of inner products of all pairs and runs at a few times, one above the other."""
        edges = np.linspace(-1, 1, 41)
        for number, (time, colour) in enumerate(picture.coloured(SNAPSHOTS)):
            values = products.sel(time=time, method="nearest").values.ravel()
            share = np.histogram(values, edges)[0] / values.size
            height = 0.9 * np.sqrt(share)
            base = len(SNAPSHOTS) - 1 - number
            panel.stairs(base + height, edges, baseline=base, fill=True, color=colour, alpha=0.6)
            panel.text(-0.98, base + 0.62, f"$t={time:g}$", color=colour)
        panel.set(xlabel=r"$\langle x_i,x_j\rangle$", ylabel="share of pairs (its root)")
        panel.set(yticks=[], ylim=(0, len(SNAPSHOTS)))
        panel.set_title(rf"products on the circle, $\beta={self.betas[-1]:g}$")

    def lives(self, panel: Axes, data: Data) -> None:
        """Times of two clusters in closed form, and those of random starts, over β."""
        fine = np.linspace(0, max(COOLING), 61)
        for share, colour in picture.coloured(SHARES):
            times = [THEORY.meeting_time(beta, FIRST, LAST, share=share) for beta in fine]
            found = data["meetings"].sel(share=share)
            panel.plot(fine, times, color=colour)
            panel.plot(
                found.inverse_temperature, found.measured, "o", color=colour,
                label=f"two clusters, share {share:g}",
            )  # fmt: skip
        lives = several(data["circle"])
        look: Any = {
            "color": "0.35",
            "label": "random start on the circle",
        }
        for beta in self.betas:
            values = lives.sel(inverse_temperature=beta)
            panel.plot(np.full(len(values), beta), values, "k.", ms=4, alpha=0.35)
        panel.plot(self.betas, lives.median("run"), "D", ms=6, **look)
        panel.axhline(self.horizon, color="0.6", lw=0.8, ls=":")
        panel.text(
            8.2, self.horizon, "end of runs", color="0.4", ha="right", va="bottom", fontsize=9
        )
        panel.set(yscale="log", ylim=(1, 2e8), xlabel=r"inverse temperature $\beta$", ylabel="time")
        panel.set_title("metastable: life grows like $e^{c\\beta}$")
        panel.legend(title="runs (marks), theory (lines)", loc="upper left")

    def rises(self, panel: Axes, energies: xr.Dataset) -> None:
        """Energies from 0 to 1 of their rise, with the integral of the rate on top."""
        for beta, colour in picture.coloured(energies.inverse_temperature.values):
            part = energies.sel(inverse_temperature=beta)
            values = part.energy - part.energy[0]
            added = part.rate.cumulative_integrate("time")
            scale = float(values[-1])
            panel.plot(
                part.time, values / scale, color=colour, label=rf"$E_\beta$, $\beta={beta:g}$"
            )
            label = (
                r"$\int \dot E\,dt$ by formula"
                if beta == energies.inverse_temperature[-1]
                else None
            )
            panel.plot(part.time[::20], added[::20] / scale, "kx", ms=5, label=label)
            if beta == 0:
                printed = part.square_speed.cumulative_integrate("time") / 2 / scale
                panel.plot(
                    part.time, printed, color=colour, ls=":", label="if $E_0$ were as printed"
                )
        panel.set(xlabel="time $t$", ylabel="rise of the energy, of all of it")
        panel.set_title(f"energies only rise, $n={self.particles}$, $d=3$")
        panel.legend(loc="lower right", fontsize=9)


def integral(values: xr.DataArray) -> float:
    """Over even times, by Simpson's rule."""
    step = float(values.time[1] - values.time[0])
    weights = np.ones(values.sizes["time"])
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return float(np.sum(weights * values.values) * step / 3)


def several(circle: xr.Dataset) -> xr.DataArray:
    """The last recorded time at which there is more than one cluster, in each run."""
    return circle.time.where(circle.clusters > 1).max("time")


def plain(axis: Any, values: list[int]) -> None:
    """These values on a logarithmic axis, as they are said."""
    axis.set_ticks(values, [f"{value:g}" for value in values])
    axis.set_ticks([], minor=True)
