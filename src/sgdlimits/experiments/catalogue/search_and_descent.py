"""Search and descent: how long each takes, what the noise does meanwhile, and a lower bound."""

import functools
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue import _search as search

EXPONENTS = (2, 3)
SCALES = {2: 0.05, 3: 1.0}  # c, in units of 1/√N for exponent 3: small, for the descent to end
WALK = 10.0  # N times the relative distance of mean times of descent from the limit's, at most
POINTS = 401  # of a path whose martingale is taken
SHOWN = 25
LONGEST = {2: 2.0, 3: 8.0}  # how long runs are watched, in units of log N and √N


@experiment(
    paper="J24",
    figure="Thm 11.12",
    claim="Descent takes N/δ samples whatever the exponent; the search before it takes the rest.",
    tiny={
        "dims": (200, 1000),
        "third_dims": (60, 150),
        "descent_dims": (200, 800),
        "runs": 48,
        "dim": 100,
    },
    quick={
        "dims": (300, 3000, 10_000),
        "third_dims": (100, 250, 600),
        "descent_dims": (300, 1000, 3000),
        "runs": 100,
        "dim": 300,
    },
    cost=6,
)
class SearchAndDescent(Settings):
    """Time is δ·samples/N; the theorem's CN samples are CN/δ where δ decreases with N."""

    dims: tuple[int, ...] = setting(
        (1000, 3000, 10_000, 30_000, 100_000), "dimensions N for exponent 2", least=50
    )
    third_dims: tuple[int, ...] = setting(
        (100, 300, 1000, 3000), "dimensions N for exponent 3", least=50
    )
    descent_dims: tuple[int, ...] = setting(
        (1000, 3000, 10_000), "dimensions N of descents from m = η", least=50
    )
    level: float = setting(0.2, "η: search ends at m = η, descent at 1 − η", above=0, most=0.4)
    runs: int = setting(200, "independent runs of SGD for each dimension", least=20)
    dim: int = setting(1000, "dimension N of the paths that are shown", least=100)

    def compute(self, seed: int) -> Data:
        """Times of both phases over N; and paths at exponent 3 from one start with their noise."""
        informed = {"M": [[self.level]], "R": [[1 - self.level**2]]}

        def passage(exponent: int, dim: int, level: float, init: Any, seed: int) -> xr.Dataset:
            passed = sl.first_passage(
                search.task_of(exponent),
                (search.overlap, ">", level),
                dim,
                self.runs,
                LONGEST[exponent] * (np.sqrt(dim) if exponent == 3 else np.log(dim)),
                step=step_of(exponent, dim),
                sphere="tangential",
                seed=seed,
                init=init,
            )
            return passed[["time", "censored"]].drop_attrs()

        def searched(exponent: int, dim: int) -> xr.Dataset:
            upper = search.upper_starts(search.task_of(exponent), dim, seed, self.runs)
            return passage(exponent, dim, self.level, upper, seed)

        def descended(exponent: int, dim: int) -> xr.Dataset:
            # the chain has no memory: descent after the search is descent from a start at η
            ran = passage(exponent, dim, 1 - self.level, informed, seed + 1)
            limit = sl.effective_dynamics(search.task_of(exponent), step=step_of(exponent, dim))
            event = (search.overlap, ">", 1 - self.level)
            return ran.assign(limit=float(limit.first_passage(event, informed).time))

        found = {"paths": self.paths(seed), "noise": self.noise(seed)}
        for k in EXPONENTS:
            dims = self.third_dims if k == 3 else self.dims
            one = functools.partial
            found[f"search {k}"] = sl.results.over("dim", dims, one(searched, k))
            found[f"descent {k}"] = sl.results.over("dim", self.descent_dims, one(descended, k))
        return found

    def paths(self, seed: int) -> xr.Dataset:
        """Exponent 3 with a fifth of the step, so that the noise is negligible, from 2/√N."""
        task, step = search.task_of(3), 0.2 * step_of(3, self.dim)
        start = {"M": [[2 / np.sqrt(self.dim)]], "R": [[1 - 4 / self.dim]]}
        time = 1.2 * np.sqrt(self.dim) / (0.75 * signal_of(3))
        sgd = sl.simulate(
            task,
            self.dim,
            runs=SHOWN,
            time=time,
            step=step,
            seed=seed,
            init=start,
            points=101,
            sphere="tangential",
        )
        half = 1 / np.sqrt(self.dim)  # m₀/2: what the martingale and the corrector may not take
        steps = np.floor(sgd.time.values * self.dim / step)
        rate = signal_of(3) * step / self.dim * (1 - 0.25)  # (1 − m²) is at least that to m = ½
        bound = sl.theory.hermite.search_lower_bound(half, rate, steps, 3, ceiling=0.5)
        m = sgd.M.isel(neuron=0, anchor=0, drop=True)
        return xr.Dataset({"m": m, "bound": ("time", bound)}, attrs=sgd.attrs)

    def noise(self, seed: int) -> xr.Dataset:
        """Of paths that stay at the equator, how far the directional error martingale has come.

        M_t = m_t − m₀ − Σ drift, with the drift of the limit along the path, by trapezoids.
        """
        task = search.task_of(3)

        def run(dim: int) -> xr.Dataset:
            step = step_of(3, dim)
            time = 0.3 * np.sqrt(dim)
            init = {"M": [[0.0]], "R": [[1.0]]}
            sgd = sl.simulate(
                task,
                dim,
                runs=self.runs,
                time=time,
                step=step,
                seed=seed + 1,
                init=init,
                points=POINTS,
                sphere="tangential",
            )
            m = sgd.M.isel(neuron=0, anchor=0, drop=True).transpose("run", "time").values
            knots = np.linspace(-0.6, 0.6, 13)
            drift, diffusion = search.moments_of(task, step, knots)
            rate = np.polynomial.Polynomial.fit(knots, drift, 9)(m)
            width = np.diff(sgd.time.values)
            pushed = np.cumsum((rate[:, 1:] + rate[:, :-1]) / 2 * width, axis=1)
            largest = np.maximum.accumulate(np.abs(m[:, 1:] - m[:, :1] - pushed), axis=1)
            share = np.arange(1, POINTS) / (POINTS - 1)
            variance = float(np.polynomial.Polynomial.fit(knots, diffusion, 9)(0.0)) / step
            # (δ/N) √(V T), with T = time·N/δ samples
            unit = step / dim * np.sqrt(variance * time * dim / step)
            return xr.Dataset(
                {
                    "largest": (("run", "share"), largest),
                    "unit": unit,
                    "samples": time * dim / step,
                    "step": step,
                },
                {"share": share},
            )

        return sl.results.over("dim", self.third_dims, run)

    def check(self, data: Data) -> list[Check]:
        """Descent does not grow with N and search does; martingale; lower bound."""
        found = []
        for k in EXPONENTS:
            part = data[f"descent {k}"]
            means, spreads = part.time.mean("run").values, part.time.std("run").values
            slope, error = power(part.dim.values, means, spreads / np.sqrt(self.runs))
            # δ that falls with N has a corrector that does: of the limit at each N, tending to 0
            told, _ = power(part.dim.values, part.limit.values, spreads / np.sqrt(self.runs))
            note = f"{int(part.censored.sum())} runs were not finished when the watch ended"
            name = f"power of N in the time of descent, that of the limit's, k = {k}"
            low, high = part.dim.values[[0, -1]]
            tolerance = checks.allowed(self.runs) * error + WALK / low / np.log(high / low)
            found.append(Check(name, told, slope, error, tolerance, note))
            name = f"and the limit's does not grow with N, k = {k}"
            found.append(checks.holds(name, told < 1e-9, note=f"power {told:.3f}"))
            part = data[f"search {k}"]
            medians = part.time.median("run").values
            law = np.sqrt(part.dim.values) if k == 3 else np.log(part.dim.values)
            growth = np.log(medians[-1] / medians[0]) / np.log(law[-1] / law[0])
            word = "√N" if k == 3 else "log N"
            note = (
                f"median time from N = {part.dim[0]:,} to {part.dim[-1]:,} as {word}^{growth:.2f}"
            )
            found.append(checks.holds(f"search grows as {word}, k = {k}", growth > 0.5, note=note))
        for dim in data["noise"].dim.values.tolist():
            part = data["noise"].sel(dim=dim)
            name = f"E sup|M_t| over (δ/N)√(VT), N = {dim:,}"
            ratio = part.largest.isel(share=-1) / part.unit
            note = f"Brownian motion has {np.sqrt(np.pi / 2):.4f}, seen at {POINTS - 1} times less"
            found.append(checks.mean(name, ratio, seen_at(POINTS - 1), note=note, bias=0.02))
        paths = data["paths"]
        above = bool(((paths.m >= paths.bound) | (paths.bound >= 0.5)).all())
        found.append(checks.holds("runs are above the lower bound", above))
        return found

    def draw(self, data: Data) -> Figure:
        """Both phases over N, paths with the bound, and the martingale."""
        figure, ((left, middle, right),) = sl.plot.panels(1, 3, width=4.6, height=4.0)
        with sl.plot.style.figure_style():
            self.draw_phases(left, data)
            self.draw_paths(middle, data["paths"])
            self.draw_noise(right, data["noise"])
        return figure

    def draw_phases(self, panel: Axes, data: Data) -> None:
        """Medians of both."""
        for k in EXPONENTS:
            for name, marker, look in (("search", "o", "-"), ("descent", "s", "--")):
                part, colour = data[f"{name} {k}"], search.COLOURS[k]
                middle = part.time.median("run")
                ends = np.abs(part.time.quantile([0.25, 0.75], "run") - middle)
                panel.errorbar(
                    part.dim,
                    middle,
                    ends.transpose("quantile", "dim"),
                    fmt=marker + look,
                    color=colour,
                    markerfacecolor=colour if name == "search" else "white",
                    ms=5.5,
                    capsize=3,
                    lw=1.2,
                    label=f"{name}, k = {k}",
                )
        panel.set(
            xscale="log", yscale="log", xlabel="dimension $N$", ylabel="time $δ$ · samples / $N$"
        )
        panel.set_title(
            f"search to m = {self.level:g}, descent to {1 - self.level:g}", fontsize="medium"
        )
        panel.legend(ncols=2, fontsize=8.5, loc="upper left")
        low, high = panel.get_ylim()
        panel.set_ylim(low, high * 6)

    def draw_paths(self, panel: Axes, paths: xr.Dataset) -> None:
        """Runs and what they cannot fall below."""
        sl.plot.runs(paths.m, most=SHOWN, label=f"SGD, N = {self.dim:,}, k = 3", axes=panel)
        inside = paths.bound < 0.5
        panel.plot(
            paths.time.where(inside), paths.bound, "k", lw=2, label="Bihari–LaSalle lower bound"
        )
        panel.set(xlabel="time $δ$ · samples / $N$", ylabel="overlap $m$", yscale="log")
        panel.set_title(r"from $m_0 = 2/\sqrt{N}$, step $0.2/\sqrt{N}$", fontsize="medium")
        panel.legend(fontsize=9, loc="lower right")

    def draw_noise(self, panel: Axes, noise: xr.Dataset) -> None:
        """Largest excursions, in the unit of the theorem."""
        for dim, colour in picture.coloured(noise.dim.values.tolist()):
            part = noise.sel(dim=dim)
            root = np.sqrt(part.share * part.samples)
            mean = part.largest.mean("run") / part.unit * np.sqrt(part.samples)
            panel.plot(root**2, mean, color=colour, lw=3, alpha=0.7, label=f"SGD, N = {dim:,}")
        panel.plot(root**2, np.sqrt(np.pi / 2) * root, "k--", lw=1.2, label=r"$\sqrt{\pi T/2}$")
        panel.set(xscale="log", yscale="log", xlabel="samples $T$")
        panel.set_ylabel(r"mean of $\sup_{t \leq T}|M_t|$, in units of $\sqrt{V}\,\delta/N$")
        panel.set_title("directional error martingale", fontsize="medium")
        panel.legend(fontsize=9)


def step_of(exponent: int, dim: int) -> float:
    """δ, constant for exponent 2."""
    return SCALES[exponent] / (np.sqrt(dim) if exponent == 3 else 1.0)


def signal_of(exponent: int) -> float:
    """a_k in φ'(m) ≈ −a_k m^(k−1) at the equator."""
    told = sl.theory.hermite.information_exponent(search.loss_of(exponent))
    return -exponent * float(told.coefficients.value[exponent])


def power(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Of x in y by weighted least squares in logarithms, and its standard error."""
    logs, weight = np.log(x), (y / errors) ** 2
    centred = logs - np.average(logs, weights=weight)
    information = np.sum(weight * centred**2)
    return float(np.sum(weight * centred * np.log(y)) / information), float(information**-0.5)


def seen_at(count: int) -> float:
    """E max|B| of Brownian motion on [0, 1] that is seen at so many even times."""
    return float(np.sqrt(np.pi / 2) - 0.5826 / np.sqrt(count))
