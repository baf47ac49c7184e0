"""Mediocrity: the landscape of phase retrieval on the sphere, and how samples see it curve."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import (
    Axes,
    Check,
    Data,
    Figure,
    Settings,
    experiment,
    setting,
)

CHUNK = 2**22  # numbers drawn at a time
COLOURS = ("blue", "vermillion", "green", "purple")


@experiment(
    paper="AKLS23",
    figure="Fig. 4, App. H",
    claim="The sphere is a golf course: at the equator all directions are flat but one.",
    tiny={"overlaps": (0.0,), "dim": 60, "ratio": 200, "sets": 6, "nodes": 256},
    quick={"dim": 100},
)
class RetrievalLandscape(Settings):
    """One neuron on the sphere, and independent data sets at which its Hessian is measured."""

    overlaps: tuple[float, ...] = setting(
        (0.0, 0.5), "overlaps m with the teacher", least=0, most=0.9
    )
    noise: float = setting(0.5, "variance Δ of the label noise", least=0)
    dim: int = setting(300, "dimension d", least=20)
    ratio: int = setting(400, "samples for each dimension, n/d", least=20)
    sets: int = setting(8, "independent data sets at each overlap", least=5)
    nodes: int = setting(16384, "quadrature nodes of the predicted bulk", least=64)

    def compute(self, seed: int) -> Data:
        """Eigenvalues of the Hessian on the tangent space for each data set; the bulk predicted."""
        task = sl.tasks.PhaseRetrieval(noise=self.noise)

        def measured(overlap: float) -> xr.Dataset:
            rng = np.random.default_rng([seed, round(1e6 * overlap)])
            found = [self.hessian(overlap, rng) for _ in range(self.sets)]
            values = np.stack([np.linalg.eigvalsh(hessian) for hessian in found])
            towards = np.array([hessian[0, 0] for hessian in found])
            across = (np.trace(found, axis1=1, axis2=2) - towards) / (self.dim - 2)
            dims = {"eigenvalue": (("run", "rank"), values), "towards": ("run", towards)}
            return xr.Dataset(dims | {"across": ("run", across)})

        def predicted(overlap: float) -> xr.Dataset:
            state = {"M": [[overlap]], "R": [[1 - overlap**2]]}
            bulk = sl.spectra.effective(task, state, ratio=self.ratio, nodes=self.nodes)
            # the sphere adds −w·∇R = 4m² − 4 in every direction
            shift = 4 * overlap**2 - 4
            low, high = float(bulk.edges[0]), float(bulk.edges[-1])
            x = np.linspace(low, high, 201)
            both = {"x": ("point", x + shift), "density": ("point", bulk.density(x))}
            return xr.Dataset(both | {"edge": low + shift})

        return {
            "measured": sl.results.over("overlap", self.overlaps, measured),
            "predicted": sl.results.over("overlap", self.overlaps, predicted),
            "points": self.points(),
            "plane": self.plane(),
        }

    def points(self) -> xr.Dataset:
        """Critical points of free weights in closed form, and what the engine says of them."""
        limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=self.noise, spherical=False))
        known = sl.theory.phase_retrieval.critical_points(self.dim, noise=self.noise)

        def one(point: Any) -> dict[str, Any]:
            m, q = point.overlap, point.square_norm
            state = {"M": [[m]], "R": [[q - m**2]]}
            slope = max(float(np.abs(x).max()) for x in limit.population_drift(state).values())
            own = {"m": m, "q": q, "risk": point.risk, "slope": slope}
            return own | {"kind": point.kind, "engine": float(limit.risk(state))}

        found = [one(point) for point in known]
        return xr.Dataset({name: ("point", [x[name] for x in found]) for name in found[0]})

    def plane(self) -> xr.Dataset:
        """The risk over (m, q), where m² ≤ q."""
        m, q = np.linspace(-1.25, 1.25, 201), np.linspace(0, 1.6, 161)
        risk = sl.theory.phase_retrieval.risk
        values = [
            [risk([a], [[b]], noise=self.noise) if a**2 <= b else np.nan for a in m] for b in q
        ]
        return xr.Dataset({"risk": (("q", "m"), values)}, {"m": m, "q": q})

    def hessian(self, overlap: float, rng: np.random.Generator) -> np.ndarray:
        """Hessian of the mean loss over one data set on the sphere, first towards the teacher.

        By rotation invariance the teacher and the weights span the first two coordinates; towards
        the teacher the unit tangent vector is (√(1 − m²), −m), and the others are coordinates.
        """
        m, d, n = overlap, self.dim, self.dim * self.ratio
        side = np.sqrt(1 - m**2)
        hessian, radial = np.zeros((d - 1, d - 1)), 0.0
        for part in np.array_split(np.arange(n), -(-n * d // CHUNK)):
            x = rng.standard_normal((len(part), d))
            field, towards = m * x[:, 0] + side * x[:, 1], side * x[:, 0] - m * x[:, 1]
            label = x[:, 0] ** 2 + np.sqrt(self.noise) * rng.standard_normal(len(part))
            x = np.concatenate([towards[:, None], x[:, 2:]], axis=1)
            hessian += x.T @ (2 * (3 * field**2 - label)[:, None] * x)
            radial += np.sum(2 * (label - field**2) * field**2)
        return np.asarray((hessian + radial * np.eye(d - 1)) / n)

    def check(self, data: Data) -> list[Check]:
        """Curvatures towards the teacher and across it, width of the bulk, one direction down."""
        measured, edges = data["measured"], data["predicted"].edge

        def expected(overlap: float) -> tuple[float, float]:
            spectrum = sl.theory.phase_retrieval.sphere_hessian(overlap, 4)
            (towards,) = (value for value, count in spectrum if count == 1)
            (across,) = (value for value, count in spectrum if count == 2)
            return towards, across

        def outside(overlap: float) -> float:
            values = measured.eigenvalue.sel(overlap=overlap).values
            return float(np.mean(np.sum(values < float(edges.sel(overlap=overlap)) - 0.3, axis=1)))

        def spread(overlap: float) -> float:
            return 4 * (24 - 12 * overlap**2 + self.noise) / self.ratio

        bulk = measured.eigenvalue.isel(rank=slice(1, None)).var("rank")
        down = xr.DataArray([outside(m) for m in self.overlaps], measured.overlap.coords)
        points, saddle = data["points"], data["points"].isel(point=1)
        gap = float(np.abs(points.engine - points.risk).max())
        return [
            checks.exact("largest drift at the critical points", points.slope.max(), 0.0, 1e-9),
            checks.exact("largest gap of risks there, engine and closed form", gap, 0.0, 1e-9),
            checks.exact(
                "risk over Δ/2 on the plateau, (71)",
                saddle.engine - self.noise / 2,
                4 / 3,
                1e-9,
                printed=10 / 3,
            ),
            *checks.each(
                *("overlap", checks.mean, "curvature towards the teacher, m = {:g}"),
                *(measured.towards, lambda m: expected(m)[0]),
                printed=lambda m: expected(m)[0] / 2,
                note="(79) as printed lacks a factor 2",
            ),
            *checks.each(
                *("overlap", checks.mean, "mean curvature across it, m = {:g}"),
                *(measured.across, lambda m: expected(m)[1]),
            ),
            *checks.each(
                *("overlap", checks.mean, "variance of the bulk, 4(24 − 12m² + Δ)d/n, m = {:g}"),
                *(bulk, spread),
                bias=4 * spread(0.0) / self.dim,
            ),
            *checks.each(
                *("overlap", checks.exact, "directions below the predicted bulk, m = {:g}"),
                *(down, 1.0),
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """The sphere seen from the side of the equator, spectra, and the plane of free weights."""
        figure, panels = sl.plot.panels(1, 3, height=4.2, width_ratios=(1, 1.3, 1.2))
        left, right, plane = panels[0]
        globe(left)
        sl.plot.landscape(data["plane"].risk, data["points"], "m", "q", axes=plane)
        plane.plot(data["plane"].m, np.ones(len(data["plane"].m)), "k--", lw=1, label="the sphere")
        plane.set_title("free weights: risk over $(m, q)$", fontsize=10)
        for m, colour in zip(self.overlaps, COLOURS, strict=False):
            own, bulk = (data[name].sel(overlap=m) for name in ("measured", "predicted"))
            values, paint = own.eigenvalue.values.ravel(), sl.plot.style.PALETTE[colour]
            bins = np.arange(values.min() - 0.1, values.max() + 0.2, 0.1)
            label = f"{self.sets} sampled Hessians, m = {m:g}"
            right.hist(values, bins, density=True, color=paint, alpha=0.45, label=label)
            right.plot(bulk.x, bulk.density, "k", lw=1.3, label="predicted bulk")
            towards = min(sl.theory.phase_retrieval.sphere_hessian(m, self.dim))[0]
            right.plot(towards, 0, "kv", ms=8, clip_on=False, label="8m² − 4, the way down")
            arrow = {"arrowstyle": "-|>", "color": paint}
            right.annotate("", (towards, 0.03), (towards, 0.3), arrowprops=arrow)
        right.set(xlabel="eigenvalue of the Hessian on the sphere", ylabel="density")
        words = f"d = {self.dim}, n/d = {self.ratio}, Δ = {self.noise:g}"
        right.set_title(words, fontsize=10)
        return sl.plot.legend_below(figure, 4)


def globe(panel: Axes) -> None:
    """Risk on the sphere in three dimensions, teacher at the top, and the gradient flow."""
    angle = np.linspace(0, 2 * np.pi, 400)
    y = np.linspace(-1, 1, 401)
    x = np.linspace(-1, 1, 401)
    X, Y = np.meshgrid(x, y)
    inside = X**2 + Y**2 <= 1
    risk = np.ma.masked_where(~inside, 2 * (1 - Y**2))
    shades = panel.contourf(X, Y, risk, np.linspace(0, 2, 21), cmap="YlGn_r")
    for line in (-0.9, -0.5, 0.0, 0.5, 0.9):
        side = np.sqrt(1 - line**2)
        panel.plot([-side, side], [line, line], "0.3", lw=2.2 if line == 0 else 0.6)
    panel.plot(np.cos(angle), np.sin(angle), "0.3", lw=1)
    u, v = np.meshgrid(np.linspace(-0.75, 0.75, 7), np.linspace(-0.78, 0.78, 9))
    kept = u**2 + v**2 < 0.85
    u, v = u[kept], v[kept]
    panel.quiver(u, v, -4 * v**2 * u, 4 * v * (1 - v**2), color="k", scale=22, width=0.006)
    panel.plot([0, 0], [1, -1], "k*", ms=13, clip_on=False)
    panel.annotate(r"$w_\star$", (0.05, 1.05), annotation_clip=False, fontsize=13)
    panel.annotate(r"$-w_\star$", (0.05, -1.13), annotation_clip=False, fontsize=13)
    panel.text(0, 0.06, "equator: risk is largest, and flat", ha="center", fontsize=9.5)
    panel.set(xlim=(-1.12, 1.12), ylim=(-1.18, 1.18), aspect="equal")
    panel.axis("off")
    bar = panel.figure.colorbar(shades, ax=panel, shrink=0.7, ticks=[0, 1, 2])
    bar.set_label("excess risk $2(1-m^2)$", fontsize=10.5)
