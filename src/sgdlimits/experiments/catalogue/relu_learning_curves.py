"""Learning curves of ReLU committees at two step sizes: how fast they fall, and where they end."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.shared import Sgd

POINTS = 61
LATE = 80.0  # when the limit has come to rest
RTOL = 3e-3  # of expectations: single runs differ by more
WOBBLE = 0.02  # of the noise floor: what that leaves in the limit near rest
GAP = 1.5  # times step/dim, between mean risk and limit: 1.2 measured at d = 500 and 1000, step 1
SMALL = 0.1  # relative error of the floor: it is that of small noise, to order √noise


@experiment(
    paper="ours",
    figure="risk of ReLU committees",
    claim="At equal time a larger step learns slower, and rests where the corrector says.",
    tiny={"width": 1, "dim": 300, "runs": 40, "time": 20.0},
    quick={"dim": 1000, "runs": 60},
)
class ReluLearningCurves(Sgd):
    """A student of K ReLU units learns a sum of K orthonormal ones; its risk is exact."""

    width: int = setting(2, "number of units K of student and teacher", least=1)
    steps: tuple[float, ...] = setting((0.25, 1.0), "step sizes", above=0)
    noise: float = setting(1e-3, "variance Δ of the label noise", above=0)
    dim: int = 2000
    runs: int = 100
    time: float = setting(30.0, "duration, in units of dim/step samples", above=0, most=LATE - 1)

    @property
    def task(self) -> sl.tasks.TeacherStudent:
        """Sums of units, fixed readouts."""
        return sl.tasks.TeacherStudent(
            activation="relu",
            teacher_width=self.width,
            student_width=self.width,
            noise=self.noise,
            scale="sum",
        )

    def compute(self, seed: int) -> Data:
        """Risk of SGD and of the limit from one start, and of SGD from where the limit rests."""
        task, size = self.task, np.eye(self.width)
        start = {"M": 0.1 + 0.4 * size, "R": size}

        def one(step: float) -> xr.Dataset:
            def run(init: Any, points: int) -> xr.Dataset:
                sgd = self.simulate(task, seed, step=step, init=init, points=points)
                return sl.measure(task, sgd)

            sgd = run(start, POINTS)
            limit = sl.effective_dynamics(task, step=step, rtol=RTOL)
            path = sl.measure(task, limit.solve(start, times=np.append(sgd.time, LATE)))
            rest = run(sl.results.state(path), 2)
            # times are whole numbers of samples: they differ by less than step/d between steps
            even = sgd[["risk", "diverged"]].assign_coords(time=np.linspace(0, self.time, POINTS))
            return even.assign(
                limit=("time", path.risk.values[:-1]),
                end=path.risk.isel(time=-1, drop=True),
                rest=rest.risk.isel(time=-1, drop=True),
            )

        return {"risk": sl.results.over("step", self.steps, one)}

    def check(self, data: Data) -> list[Check]:
        """The mean risk over time, and the excess risk at rest over the noise floor Δ/2."""
        risk, name = data["risk"], "excess risk at rest over Δ/2, step = {:g}"
        over = risk.rest / (self.noise / 2) - 1
        found = []
        for step in self.steps:
            part, end = risk.sel(step=step), excess(self.width, step)
            gap = WOBBLE * self.noise / 2 + GAP * step / self.dim
            found += [
                checks.path(f"risk, step = {step:g}", part.risk, part.limit, bias=gap),
                checks.mean(name.format(step), over.sel(step=step), end, bias=SMALL * end),
            ]
        return found

    def draw(self, data: Data) -> Figure:
        """Both curves on logarithmic axes, each with its limit and the end of it."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=6.4, height=4.2)
        for step, colour in picture.coloured(self.steps):
            part = data["risk"].sel(step=step)
            path = part[["limit"]].rename(limit="risk")
            look: Any = {"label": f"SGD, step {step:g}", "color": colour, "axes": panel}
            sl.plot.learning_curve(part, path, asymptote=part.end.item(), log="y", **look)
        panel.axhline(self.noise / 2, color="0.5", lw=1, label="noise floor Δ/2")
        return sl.plot.legend_below(figure, 2)


def excess(width: int, step: float) -> float:
    r"""Risk above Δ/2 at rest, over Δ/2, as Δ → 0.

    Near the teacher the residual is ξ − Σ_k σ'(s_k) d_k·x, with d_k Gaussian of covariance R in the
    orthogonal directions, and units are active independently with probability ½. So

        HR + RH = c (ΔH + E[σ'σ'ᵀ (σ'ᵀRσ')]),   ε = ½ tr(HR),   H = E[σ'σ'ᵀ].
    """
    active = np.array(list(itertools.product([0.0, 1.0], repeat=width)))
    share, one = 0.5**width, np.eye(width)
    H = share * active.T @ active
    fourth = share * np.einsum("ni,nj,nk,nl->ijkl", active, active, active, active)
    both = np.einsum("ik,jl->ijkl", H, one) + np.einsum("ik,jl->ijkl", one, H)
    R = np.linalg.tensorsolve(both - step * fourth, step * H)
    return float(np.trace(H @ R))
