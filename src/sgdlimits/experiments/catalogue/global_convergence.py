"""Width against bad starts: which random starts reach zero risk, and how many as p grows."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting

NO_STEP = 1e-9  # of the limit that has no corrector
SQUARED_NORM = 0.25  # of the weights at the start
STARTS = {"large": 1.0, "small": 0.1}  # |v|: 2v² above and below the squared norm
SOLVED = 0.05  # of the risk of what cannot learn one of the teachers, 1/3


@experiment(
    paper="L23",
    figure="global convergence",
    claim="The share of starts that reach zero risk grows with p as 1 − 2^(1−p); all from small v.",
    tiny={"widths": (2, 4), "dim": 30, "runs": 40, "step": 0.2, "time": 30.0},
    quick={"widths": (2, 3, 4, 6), "dim": 50, "runs": 60, "step": 0.2},
)
class GlobalConvergence(Settings):
    """y = ½(a₁² − a₂²), f = (1/p) Σ vⱼsⱼ², readouts of random sign; times are the slides', t/p.

    Gradient flow keeps ‖wⱼ‖² − 2vⱼ², since dv/dτ = E[ψs²] and d‖w‖²/dτ = 4v E[ψs²]: where
    2v² > ‖w‖² no readout changes its sign, and a start learns both teachers if and only if it has
    both signs, which has probability 1 − 2^(1−p). Where 2v² < ‖w‖² signs change, and two neurons
    are enough.
    """

    widths: tuple[int, ...] = setting((2, 3, 4, 6, 8), "widths p, increasing", least=2)
    dim: int = setting(200, "dimension d", least=20)
    step: float = setting(0.1, "step γ of SGD", above=0)
    runs: int = setting(200, "random starts", least=20)
    time: float = setting(40.0, "duration over width, t/p", above=0)

    def one(self, width: int, start: str, seed: int) -> xr.Dataset:
        """Whether each start has both signs, and whether the limit and SGD reach zero risk."""
        task = sl.tasks.TeacherStudent(
            activation="square",
            student_width=width,
            teacher_readout=[1.0, -1.0],
            readout="trained",
        )
        init = task.random_state(self.dim, seed, runs=range(self.runs), scale=SQUARED_NORM)
        init["v"] = STARTS[start] * np.sign(init["v"])
        times = [0.0, self.time * width]
        options: Any = {"step": self.step, "seed": seed, "init": init, "times": times}
        paths = {
            "limit": sl.effective_dynamics(task, NO_STEP).solve(init, times=times),
            "sgd": sl.simulate(task, self.dim, runs=self.runs, **options),
        }
        both = (init["v"] > 0).any(axis=1) & (init["v"] < 0).any(axis=1)
        found: dict[str, Any] = {"signs": ("run", both)}
        for name, path in paths.items():
            risk = sl.measure(task, path).risk.isel(time=-1).values
            found[name] = ("run", risk < SOLVED / 3)
        return xr.Dataset(found)

    def compute(self, seed: int) -> Data:
        """All widths from large and from small readouts."""

        def along(start: str) -> xr.Dataset:
            return sl.results.over("width", self.widths, lambda p: self.one(p, start, seed))

        return {"solved": sl.results.over("start", list(STARTS), along)}

    def check(self, data: Data) -> list[Check]:
        """Start by start in the limit, the share in SGD, and everything from small readouts."""
        large, small = (data["solved"].sel(start=start) for start in STARTS)
        wrong = int((large.limit != large.signs).sum())
        found = [checks.exact("starts whose signs do not tell the end of the limit", wrong, 0)]
        for p in self.widths:
            hits = int(large.sgd.sel(width=p).sum())
            name = f"share of SGD at zero risk, p = {p}"
            found.append(checks.proportion(name, hits, self.runs, 1 - 2.0 ** (1 - p)))
        first = float(small.limit.sel(width=self.widths[0]).mean())
        told = f"most starts succeed from small readouts, p = {self.widths[0]}"
        return [*found, checks.holds(told, first > 0.9, note=f"{first:.3f}")]

    def draw(self, data: Data) -> Figure:
        """Shares over the width."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=6.0, height=3.8)
        p = np.linspace(self.widths[0], self.widths[-1], 100)
        panel.plot(p, 1 - 2 ** (1 - p), "k--", lw=1.2, label="$1 - 2^{1-p}$, both signs there")
        for start, colour in zip(STARTS, picture.COLOURS, strict=False):
            part = data["solved"].sel(start=start)
            words = f"$v = \\pm {STARTS[start]:g}$"
            share = part.limit.mean("run")
            panel.plot(part.width, share, "s", mfc="w", ms=9, color=colour, label=f"limit, {words}")
            own = part.sgd.mean("run")
            bars = 2 * np.sqrt(own * (1 - own) / self.runs)
            label = f"SGD, $d = {self.dim}$, {words}"
            panel.errorbar(part.width, own, bars, fmt="o", ms=4, color=colour, label=label)
        panel.set(xlabel="width $p$", ylabel="share of starts at zero risk", ylim=(0, 1.05))
        panel.set(xticks=self.widths)
        return sl.plot.legend_below(figure, 2)
