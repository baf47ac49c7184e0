"""Committees of equals: the symmetric plateau, its escape rate, and how long it lasts over d."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting

SMALL = 1e-6  # a step so small that there is no corrector
SYMMETRIC = {"M": 0.2, "R": 0.5}  # of a start that is the same for all neurons
LONG = 400.0  # until the symmetric flow is at rest
MARGIN = 0.5  # by how much a neuron's largest overlap exceeds its second when it has left
STARTS = range(8)  # random starts of the limit
FAR = (1e8, 1e12)  # dimensions of starts whose escape is long enough for its rate
POINTS = 601
CLOSE = 0.1  # part of the escape time


@experiment(
    paper="L23",
    figure="high-dimensional regime; SS95",
    claim="Neurons are equal on a plateau for a time log(d)/(2λ), then each takes its own teacher.",
    tiny={"teachers": (2,), "dims": (50, 200), "runs": 20, "step": 1.0, "time": 120.0},
    quick={"teachers": (2, 4), "dims": (50, 200), "runs": 20, "step": 0.5, "time": 180.0},
)
class CommitteeSpecialisation(Settings):
    """Sums of erf units without noise, as many students as teachers; times are δ·steps.

    On the plateau of small steps all students are equal, R_in = (k(2k − 1))^(−1/2) and
    Q = 1/(2k − 1), in the span of the teachers. Random weights break the symmetry by d^(−1/2),
    which grows as e^(λt), λ the largest eigenvalue of the drift there.
    """

    teachers: tuple[int, ...] = setting((2, 4), "numbers k of teachers and of students", least=2)
    step: float = setting(0.3, "step c in δ = c/d", above=0)
    dims: tuple[int, ...] = setting((50, 200, 800), "dimensions d of SGD, increasing", least=20)
    runs: int = setting(60, "independent runs of SGD, each from its own start", least=10)
    time: float = setting(200.0, "duration of SGD, in units of dim/step samples", above=0)

    def task(self, k: int) -> sl.tasks.TeacherStudent:
        """Both are sums of k units."""
        return sl.tasks.TeacherStudent(teacher_width=k, student_width=k, scale="sum")

    def plateau(self, k: int) -> xr.Dataset:
        """The drift of small steps on the plateau in closed form, its risk, and the escape rate."""
        limit, slow = (sl.effective_dynamics(self.task(k), step) for step in (self.step, SMALL))
        M = np.full((k, k), 1 / np.sqrt(k * (2 * k - 1)))
        closed = {"M": M, "R": np.zeros((k, k))}
        drift = max(float(np.abs(x).max()) for x in slow.drift(closed).values())
        start = {"M": np.full((k, k), SYMMETRIC["M"]), "R": SYMMETRIC["R"] * np.eye(k)}
        rest = sl.results.state(limit.solve(start, time=LONG, points=2))
        # the flow keeps the symmetry, up to rounding that grows: the mean has it exactly
        rest["M"] = np.full((k, k), rest["M"].mean())
        rate = float(np.linalg.eigvals(limit.jacobian(rest)).real.max())
        found = {"drift": drift, "risk": float(slow.risk(closed)), "rate": rate}
        return xr.Dataset({name: ((), value) for name, value in found.items()})

    def escape(self, k: int, dim: float, seed: int) -> xr.Dataset:
        """When neurons specialise, in the limit and where d is not too large in SGD too."""
        task, count = self.task(k), max(len(STARTS), self.runs)
        limit = sl.effective_dynamics(task, self.step)
        starts = task.random_state(dim, seed, runs=STARTS)
        times = np.linspace(0, 3 * self.time, 3 * POINTS)
        found = {"limit": _passage(limit.solve(starts, times=times))}
        if dim <= self.dims[-1]:
            options: Any = {"time": self.time, "points": POINTS, "step": self.step, "seed": seed}
            found["sgd"] = _passage(sl.simulate(task, int(dim), runs=self.runs, **options))
        for name in ("limit", "sgd"):  # of one length
            have = found.get(name, np.empty(0))
            found[name] = np.pad(have, (0, count - len(have)), constant_values=np.nan)
        return xr.Dataset({name: ("run", x) for name, x in found.items()})

    def paths(self, k: int, seed: int) -> xr.Dataset:
        """Overlaps of one run of SGD in the largest dimension and of the limit from its start."""
        task, dim = self.task(k), self.dims[-1]
        start = task.random_state(dim, seed)
        options: Any = {"time": self.time, "points": POINTS, "step": self.step, "seed": seed}
        sgd = sl.simulate(task, dim, runs=1, init=start, **options).isel(run=0)
        limit = sl.effective_dynamics(task, self.step).solve(start, times=sgd.time)
        return xr.Dataset({"sgd": sgd.M, "limit": limit.M})

    def compute(self, seed: int) -> Data:
        """Plateaus over k, escapes over k and d, overlaps over time for the largest k."""
        dims = [*map(float, self.dims), *FAR]

        def over_dims(k: int) -> xr.Dataset:
            return sl.results.over("dim", dims, lambda dim: self.escape(k, dim, seed))

        return {
            "plateau": sl.results.over("k", self.teachers, self.plateau),
            "escape": sl.results.over("k", self.teachers, over_dims),
            "paths": self.paths(self.teachers[-1], seed),
        }

    def check(self, data: Data) -> list[Check]:
        """The plateau in closed form, the growth of escape times with log d, SGD, the end."""
        plateau, escape = data["plateau"], data["escape"]
        far = escape.limit.sel(dim=list(FAR))
        slope = far.diff("dim").isel(dim=0, drop=True).mean("run") / np.log(FAR[1] / FAR[0])
        largest = escape.sel(dim=float(self.dims[-1]))
        both = (largest.sgd - largest.limit.mean("run")) / largest.limit.mean("run")
        lost = int(np.isnan(largest.sgd.isel(run=slice(self.runs))).sum())
        ends = np.sort(np.abs(data["paths"].limit[-1].values), axis=1)

        def risk(k: float) -> float:  # SS95 at R = (k(2k − 1))^(−1/2), Q = 1/(2k − 1)
            return k / np.pi * (np.pi / 6 - k * np.arcsin(1 / (2 * k)))

        def growth(k: float) -> float:
            return 1 / (2 * float(plateau.rate.sel(k=k)))

        def allowed(k: float) -> float:  # 3 %: slower modes decay while the fastest grows
            return 0.03 * growth(k)

        each = checks.each
        return [
            *each("k", checks.exact, "drift on the plateau, k = {}", plateau.drift, 0.0, SMALL),
            *each("k", checks.exact, "risk on the plateau, k = {}", plateau.risk, risk, 1e-9),
            *each("k", checks.exact, "escape time over log d, k = {}", slope, growth, allowed),
            *each("k", _near, "escape of SGD over that of the limit − 1, k = {}", both),
            checks.exact("runs of SGD that have not escaped", lost, 0),
            checks.holds("each neuron ends at one teacher", bool(np.all(ends[:, -2] < 0.1))),
        ]

    def draw(self, data: Data) -> Figure:
        """Overlaps over time on the left, escape times over the dimension on the right."""
        figure, ((left, right),) = sl.plot.panels(1, 2, width=5.2, height=3.7)
        paths, k = data["paths"], self.teachers[-1]
        for neuron, colour in zip(paths.neuron.values, picture.COLOURS * k, strict=False):
            few = paths.isel(time=slice(None, None, 20)).sel(neuron=neuron)
            left.plot(few.time, few.sgd, ".", color=colour, ms=3.5)
            left.plot(paths.time, paths.limit.sel(neuron=neuron), color=colour, lw=1.1)
        left.axhline(
            (k * (2 * k - 1)) ** -0.5, color="k", ls=":", lw=1, label="plateau, $c \\to 0$"
        )
        left.plot([], [], "k-", lw=1.1, label="limit")
        left.plot([], [], "k.", label=f"SGD, $d = {self.dims[-1]}$")
        left.set(xlabel=sl.plot.style.TIME_LABEL, ylabel="overlaps $M$")
        left.set_title(f"$k = p = {k}$, step ${self.step:g}$: a colour for each student")
        for (number, marker), colour in zip(
            zip(self.teachers, "os^v", strict=False), picture.COLOURS, strict=False
        ):
            part, rate = data["escape"].sel(k=number), float(data["plateau"].rate.sel(k=number))
            limit, sgd = part.limit.mean("run"), part.sgd.mean("run")
            line = limit[-1] + np.log(part.dim / part.dim[-1]) / (2 * rate)
            look: Any = {"color": colour, "marker": marker, "ls": "none", "ms": 6}
            right.plot(part.dim, limit, mfc="w", label=f"limit, $k = {number}$", **look)
            right.plot(part.dim, sgd, label=f"SGD, $k = {number}$", **look)
            right.plot(part.dim, line, "--", color=colour, lw=1, label="$\\log(d)/(2\\lambda)$")
        right.set(
            xscale="log", xlabel="dimension $d$ of the random start", ylabel="escape time $t$"
        )
        right.set_title("when neurons specialise")
        return sl.plot.legend_below(figure, 5)


def _passage(path: xr.Dataset) -> np.ndarray:
    """The first time at which a neuron has one overlap larger than all others by a margin."""
    sizes = np.sort(np.abs(path.M.transpose("run", "time", "neuron", "anchor").values), axis=-1)
    special = np.max(sizes[..., -1] - sizes[..., -2], axis=-1) > MARGIN
    first = path.time.values[np.argmax(special, axis=1)]
    return np.where(special.any(axis=1), first, np.nan)


def _near(name: str, samples: xr.DataArray) -> Check:
    # a tolerance of the comparison: starts of size d^(−1/2) are not small, so that log(d) has a
    # constant beside it, and kicks of SGD add to them
    values = samples.values[np.isfinite(samples.values)]
    return checks.mean(name, values, 0.0, bias=CLOSE, note=f"within {CLOSE:.0%} is called close")
