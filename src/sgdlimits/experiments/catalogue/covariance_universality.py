"""Sample covariances of four laws of entries against the Marchenko–Pastur law."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

LAWS = sl.lectures.LAWS
FINITE = [name for name, law in LAWS.items() if np.isfinite(law.kurtosis)]
WILD = "student3"  # the law without a fourth moment
HEIGHTS = np.geomspace(0.03, 0.3, 6)  # above the middle of the spectrum, many eigenvalues wide
SHIFT = 0.5  # resolvents of quadratic forms are (S + SHIFT)⁻¹
EDGE = 2.0  # Tracy and Widom: the mean of the top is 1.74 d^(−2/3) below its limit at φ = 2
COLOURS = dict(picture.coloured(LAWS))


@experiment(
    paper="J24",
    figure="Thm 6.6",
    claim="The bulk of a sample covariance is universal; its edge needs a finite fourth moment.",
    tiny={"dims": (50, 100, 200), "runs": 20, "vectors": 2000},
    quick={"dims": (50, 100, 200, 400), "runs": 24},
    cost=3.0,
)
class CovarianceUniversality(Settings):
    """Dimensions, samples per dimension, independent data sets."""

    dims: tuple[int, ...] = setting((100, 200, 400, 800, 1600), "dimensions d", least=20)
    ratio: float = setting(2.0, "samples per dimension φ", least=1.5, most=10)
    runs: int = setting(24, "independent data sets for each law and dimension", least=10)
    vectors: int = setting(20_000, "vectors for each quadratic form", least=1000)

    def compute(self, seed: int) -> Data:
        """Spectra of every law and size; transforms near the axis; quadratic forms."""

        def spectra(entries: str, dim: int, runs: int = self.runs) -> xr.Dataset:
            size: Any = {"entries": entries, "runs": runs, "seed": seed}
            return sl.lectures.covariance.spectra(dim, round(self.ratio * dim), **size)

        def sizes(entries: str) -> xr.Dataset:
            return sl.results.over("dim", self.dims, partial(self.gaps, spectra, entries))

        def last(entries: str) -> xr.Dataset:
            return spectra(entries, self.dims[-1], 1)[["eigenvalues"]].isel(run=0)

        gaussian = spectra("gaussian", self.dims[-1])
        points = float(np.mean(sl.theory.marchenko_pastur.edges(self.ratio))) + 1j * HEIGHTS
        m = sl.lectures.covariance.transforms(gaussian, points)
        square = np.abs(m - m.mean(axis=0)) ** 2 * self.runs / (self.runs - 1)
        names = list(LAWS)
        return {
            "sizes": sl.results.over("entries", names, sizes),
            "spectra": sl.results.over("entries", names, last),
            "heights": xr.Dataset({"square": (("run", "height"), square)}, {"height": HEIGHTS}),
            "forms": sl.results.over("entries", names, partial(self.forms, seed)),
        }

    def gaps(self, spectra: Any, entries: str, dim: int) -> xr.Dataset:
        """Distance of the spectra of one law and size to the limit, and of S to I."""
        drawn = spectra(entries, dim)
        above = sl.theory.marchenko_pastur.cdf(drawn.eigenvalues, self.ratio)
        steps = np.arange(dim) / dim
        apart = np.maximum(above - steps, steps + 1 / dim - above).max(axis=1)
        return xr.Dataset({"kolmogorov": ("run", apart), "distance": drawn.distance})

    def forms(self, seed: int, entries: str) -> xr.Dataset:
        """Gaps of quadratic forms of a resolvent, in mean and in mean square."""

        def one(dim: int) -> xr.Dataset:
            A = sl.lectures.covariance.resolvent(dim, round(self.ratio * dim), SHIFT, seed=seed)
            gap = sl.lectures.covariance.quadratic_forms(
                A, entries=entries, runs=self.vectors, seed=seed
            )
            exact, printed = np.nan, np.nan
            if entries in FINITE:
                kurtosis = LAWS[entries].kurtosis
                exact = sl.theory.resolvents.quadratic_form_variance(A, kurtosis)
                printed = exact - (np.sum(A**2) - np.sum(np.diag(A) ** 2)) / dim**2
            one = {"gap": ("vector", gap), "exact": exact, "printed": printed}
            return xr.Dataset(one)

        return sl.results.over("dim", self.dims, one)

    def check(self, data: Data) -> list[Check]:
        """The law and its edges for each law of entries; powers of height and dimension."""
        sizes, forms = data["sizes"], data["forms"]
        dim = self.dims[-1]
        limit = sl.theory.marchenko_pastur.distance_to_mean(self.ratio)
        tops = sizes.distance.isel(dim=-1).median("run")
        mean = sizes.kolmogorov.isel(dim=-1).mean("run")
        results = []
        for name in FINITE:
            title = LAWS[name].title
            text = f"{title}, d = {dim}: Kolmogorov distance to the law, in units of log d/d"
            scaled = mean.sel(entries=name) * dim / np.log(dim)
            results.append(checks.exact(text, scaled, 0.0, 1.0))
            text = f"{title}, d = {dim}: median ‖S − I‖"
            allowed = EDGE * dim ** (-2 / 3) + 0.03 * limit
            results.append(checks.exact(text, tops.sel(entries=name), limit, allowed))
        title = LAWS[WILD].title
        text = f"{title}: the bulk is the same, exponent in d of the Kolmogorov distance"
        power = checks.exponent(sizes.kolmogorov.mean("run").sel(entries=WILD), "dim")
        said = "some √d entries are so large that they leave the bulk"
        results.append(checks.exact(text, power, -0.5, 0.15, note=said))
        text = f"{title}, d = {dim}: median ‖S − I‖ is beyond 1.5 × {limit:.4g}"
        wild = float(tops.sel(entries=WILD))
        results.append(checks.holds(text, wild > 1.5 * limit, note=f"it is {wild:.3g}"))
        power = checks.exponent(data["heights"].square.mean("run"), "height")
        text = "exponent in Im z of E|m(z) − E m(z)|²"
        results.append(checks.exact(text, power, -2.0, 0.3, printed=1.0))
        for name in ("gaussian", "rademacher"):  # squares of the others have no variance
            part = forms.sel(entries=name).isel(dim=-1)
            text = (
                f"{LAWS[name].title}, d = {dim}: mean square gap of quadratic forms, of exact one"
            )
            ratio = part.gap**2 / float(part.exact)
            # without off-diagonal pairs counted twice
            printed = float(part.printed / part.exact) if name == "rademacher" else None
            results.append(checks.mean(text, ratio, 1.0, printed=printed))
        means = np.abs(forms.gap).mean("vector").sel(entries=FINITE)
        name = "{}: exponent in d of their mean gap"
        powers = checks.exponent(means, "dim")
        for law, power in zip(FINITE, powers, strict=True):
            results.append(checks.exact(name.format(LAWS[law].title), power, -0.5, 0.05))
        return results

    def draw(self, data: Data) -> Figure:
        """Histograms with the law on top; below, how gaps close."""
        figure, panels = sl.plot.panels(2, 4, width=3.5, height=3.1)
        for panel, name in zip(panels[0], LAWS, strict=True):
            self.histogram(panel, data["spectra"].eigenvalues.sel(entries=name), name)
        sizes, heights = data["sizes"], data["heights"]
        first, second, third, fourth = panels[1]
        over_sizes(first, sizes.kolmogorov.mean("run"))
        first.set(title="the bulk", ylabel="Kolmogorov distance", yscale="log")
        ticks(first.yaxis, (0.002, 0.005, 0.01, 0.02, 0.05, 0.1))
        over_sizes(second, sizes.distance.median("run"))
        limit = sl.theory.marchenko_pastur.distance_to_mean(self.ratio)
        second.axhline(limit, color="k", ls="--", lw=1.2, label="Marchenko–Pastur")
        second.set(title="the edge", ylabel=r"$\Vert S-I\Vert$, median", yscale="log")
        ticks(second.yaxis, (2, 3, 4, 6, 10, 20))
        square = heights.square.mean("run")
        third.plot(square.height, square, "o", color=COLOURS["gaussian"])
        anchor = float(square[-1])
        for power, look, word in ((-2, "k--", "corrected"), (1, "k:", "printed")):
            line = anchor * (HEIGHTS / HEIGHTS[-1]) ** power
            third.plot(HEIGHTS, line, look, lw=1.2)
            text = rf"{word}: $\eta^{{{power}}}$"
            third.annotate(
                text,
                (HEIGHTS[2], line[2]),
                (4, 8 * np.sign(-power) - 3),
                textcoords="offset points",
            )
        third.set(xscale="log", yscale="log", xlabel=r"height $\eta=\mathrm{Im}\,z$")
        ticks(third.xaxis, (0.03, 0.1, 0.3))
        third.set(title="concentration", ylabel=r"$E|m_d(z)-E\,m_d(z)|^2$")
        over_sizes(fourth, np.abs(data["forms"].gap).mean("vector"))
        fourth.set(title="quadratic forms", yscale="log")
        ticks(fourth.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
        fourth.set_ylabel(r"$E|\langle x,Ax\rangle-\mathrm{tr}\,A|/d$")
        return sl.plot.legend_below(figure, 5)

    def histogram(self, panel: Axes, values: xr.DataArray, name: str) -> None:
        """Eigenvalues of one data set, and how many are beyond the picture."""
        low, high = sl.theory.marchenko_pastur.edges(self.ratio)
        end = 1.25 * high
        inside = values.values[values.values < end]
        weights = np.full(len(inside), 1 / len(values) / (end / 50))
        panel.hist(
            inside, 50, range=(0, end), weights=weights, color=COLOURS[name], alpha=0.45,
            label=LAWS[name].title,
        )  # fmt: skip
        x = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, 400))) / 2
        density = sl.theory.marchenko_pastur.density(x, self.ratio)
        panel.plot(x, density, "k", label="Marchenko–Pastur")
        panel.set(xlim=(0, end), ylim=(0, 1.2 * density.max()), xlabel="eigenvalue")
        panel.set(title=f"{LAWS[name].title}, d = {len(values)}")
        outside = len(values) - len(inside)
        if outside:
            text = f"{outside} beyond,\nup to {float(values.max()):.3g} →"
            panel.text(0.98, 0.6, text, ha="right", transform=panel.transAxes)


def over_sizes(panel: Axes, values: xr.DataArray) -> None:
    """One line for each law of entries."""
    for name, colour in COLOURS.items():
        part = values.sel(entries=name)
        panel.plot(part.dim, part, "o-", ms=4, color=colour, label=LAWS[name].title)
    panel.set(xscale="log", xlabel="dimension $d$")
    ticks(panel.xaxis, values.dim.values)


def ticks(axis: Any, values: Iterable[float]) -> None:
    """Those of these values that are seen, on a logarithmic axis, and no others."""
    low, high = axis.get_view_interval()
    seen = [value for value in values if low <= value <= high]
    axis.set_ticks(seen, [f"{value:g}" for value in seen])
    axis.set_ticks([], minor=True)
