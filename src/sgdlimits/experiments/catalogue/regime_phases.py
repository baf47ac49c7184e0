"""The phases of exponents of step and width: learning, plateau and no learning, at nine points."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue._committee import excess_risk

TOTALS = {"learning": 0.5, "plateau": 0.0, "no learning": -0.4}  # κ + δ
WIDTHS = (0.0, 0.25, 0.5)  # κ
UNIT_DIM = 16  # where γ/p = 1 on all lines
POINTS = 9
COLOURS = dict(zip(TOTALS, ("#009E73", "#E69F00", "#D55E00"), strict=True))
STARTS = ("teacher", "random")
# left of the first risk: what "small", "moderate" and "large" are taken to mean. They are words and
# no predictions, cut so that they exclude one another; the exponents in d are what theory says
BOUNDS = {"learning": (0.0, 0.15), "plateau": (0.15, 0.5), "no learning": (0.5, 2.0)}
SLACK = {"learning": 0.1, "plateau": 0.05}  # the excess risk is not quite linear in γ/p


@experiment(
    paper="L23",
    figure="regimes; VSLKZ22 Fig. 1",
    claim="Step d^(−δ), width d^κ: SGD learns for κ + δ > 0, levels off at 0, fails below.",
    tiny={"dims": (64, 256), "runs": 20, "time": 10.0},
    quick={"dims": (64, 256, 1024), "runs": 20},
)
class RegimePhases(Settings):
    """One teacher, p students, labels with noise Δ = 1; times are the slides', t/p.

    From the teacher all students move alike, as one neuron with the step γ/p, and the excess risk
    that noise makes is a function of γ/p alone: it falls as d^(−(κ+δ)), stays, or rises. From
    random weights the share of the risk that is left is small, moderate, or large.
    """

    dims: tuple[int, ...] = setting((64, 256, 1024, 4096), "dimensions d, increasing", least=32)
    least_width: int = setting(2, "width p in the least dimension", least=1)
    noise: float = setting(1.0, "variance Δ of the label noise", above=0)
    runs: int = setting(40, "independent runs of SGD from each start", least=10)
    time: float = setting(20.0, "duration over width, t/p", above=0)

    def one(self, kappa: float, total: float, dim: int, seed: int) -> xr.Dataset:
        """Excess risk over time from both starts."""
        width = round(self.least_width * (dim / self.dims[0]) ** kappa)
        ratio = (dim / UNIT_DIM) ** -total
        task = sl.tasks.TeacherStudent(teacher_width=1, student_width=width, noise=self.noise)
        teacher = {"M": np.ones((width, 1)), "R": np.zeros((width, width))}
        times = np.linspace(0, self.time, POINTS)
        options: Any = {"runs": self.runs, "step": ratio * width, "times": width * times}

        def risk(start: str) -> xr.Dataset:
            init = teacher if start == "teacher" else None
            sgd = excess_risk(sl.simulate(task, dim, init=init, seed=seed, **options))
            # times are whole numbers of samples, a little different in each dimension
            coords = {"run": sgd.run.values, "time": times}
            return xr.Dataset({"risk": (("run", "time"), sgd.risk.values)}, coords)

        return sl.results.over("start", STARTS, risk).assign(width=width, ratio=ratio)

    def compute(self, seed: int) -> Data:
        """Both starts at each of nine points and in each dimension."""

        def point(total: float, kappa: float) -> xr.Dataset:
            return sl.results.over("dim", self.dims, lambda d: self.one(kappa, total, d, seed))

        def line(total: float) -> xr.Dataset:
            return sl.results.over("kappa", WIDTHS, lambda kappa: point(total, kappa))

        return {"risk": sl.results.over("total", list(TOTALS.values()), line)}

    def check(self, data: Data) -> list[Check]:
        """At each point: the exponent in d of the noise's risk, and what is left of the first."""
        found = []
        risk = data["risk"].risk.isel(time=slice(POINTS // 2, None)).mean("time")
        first = data["risk"].risk.isel(time=0).sel(start="random").mean("run")
        left = risk.sel(start="random").isel(dim=-1) / first.isel(dim=-1)
        for name, total in TOTALS.items():
            low, high = BOUNDS[name]
            for kappa in WIDTHS:
                said = f"{name}, κ = {kappa:g}, δ = {total - kappa:g}"
                kept = risk.sel(start="teacher", total=total, kappa=kappa)
                share = float(left.sel(total=total, kappa=kappa).mean("run"))
                right = sl.theory.regimes.phase(total - kappa, kappa) == name
                found.append(
                    checks.holds(
                        f"left of the first risk in ({low:g}, {high:g}), by definition: {said}",
                        right and low < share < high,
                        note=f"{share:.3f}",
                    )
                )
                exponents, told = checks.exponent(kept, "dim"), f"exponent in d: {said}"
                if name in SLACK:
                    found.append(checks.mean(told, exponents, -total, bias=SLACK[name]))
                else:
                    error = float(exponents.std("run", ddof=1)) / self.runs**0.5
                    rises = float(exponents.mean()) > checks.allowed(self.runs) * error
                    found.append(checks.holds(f"rises in d: {said}", rises))
        return found

    def draw(self, data: Data) -> Figure:
        """The plane of exponents on the left, excess risks over d on the right."""
        figure, ((left, middle, right),) = sl.plot.panels(1, 3, width=4.2, height=3.8)
        self.draw_plane(left)
        risk = data["risk"].risk.isel(time=slice(POINTS // 2, None)).mean(("time", "run"))
        for panel, start in ((middle, "teacher"), (right, "random")):
            for name, total in TOTALS.items():
                for marker, kappa in zip("os^", WIDTHS, strict=True):
                    label = f"{name}, $\\kappa + \\delta = {total:g}$" if kappa == 0 else "_"
                    values = risk.sel(start=start, total=total, kappa=kappa)
                    look: Any = {"color": COLOURS[name], "marker": marker, "ms": 6, "lw": 1.2}
                    panel.plot(values.dim, values, label=label, **look)
            panel.set(xscale="log", yscale="log", xlabel="dimension $d$")
            panel.set(xticks=self.dims, xticklabels=[str(d) for d in self.dims])
            panel.xaxis.minorticks_off()
        d = np.array(self.dims, float)
        middle.plot(d, 0.093 * (d / UNIT_DIM) ** -0.5, "k--", lw=1, label="$d^{-1/2}$")
        middle.set(title="from the teacher", ylabel="excess risk")
        right.set(title="from random weights")
        for panel in (middle, right):
            panel.set_ylim(0.8 * float(risk.min()), 1.25 * float(risk.max()))
        return sl.plot.legend_below(figure, 4)

    def draw_plane(self, panel: Axes) -> None:
        """Regions of exponents, and the nine points."""
        kappa = np.array([-0.1, 0.65])
        bottom, top = -1.05, 0.65
        ends = {
            "no limit": (bottom + 0 * kappa, -0.5 - kappa),
            "no learning": (-0.5 - kappa, -kappa),
        }
        ends["learning"] = (-kappa, top + 0 * kappa)
        colours = COLOURS | {"no limit": "0.6"}
        for name, (low, high) in ends.items():
            panel.fill_between(kappa, low, high, color=colours[name], alpha=0.25, lw=0)
        panel.plot(kappa, -kappa, color=COLOURS["plateau"], lw=3)
        for name, total in TOTALS.items():
            for marker, k in zip("os^", WIDTHS, strict=True):
                panel.plot(k, total - k, marker, color=COLOURS[name], ms=8, mec="k", mew=0.6)
        words = {"learning": (0.3, 0.42), "no learning": (-0.06, -0.25), "no limit": (-0.06, -0.85)}
        for name, place in words.items():
            panel.text(*place, name, fontsize=11)
        panel.text(0.1, -0.06, "plateau", rotation=-32, fontsize=11)
        panel.set(xlim=kappa, ylim=(bottom, top), title="step $d^{-\\delta}$, width $d^\\kappa$")
        panel.set(xlabel=r"exponent $\kappa$ of the width", ylabel=r"exponent $\delta$ of the step")
