"""How far SGD is from its ODE: the exponents of dimension, step and width, one at a time."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting

EXPONENTS = {"dim": -0.5, "step": 0.5, "width": -0.5}
SYMBOLS = {"dim": "d", "step": r"\gamma", "width": "p"}
ROWS = np.array([[0.6, 0.1], [-0.2, 0.5], [0.3, 0.3], [0.1, -0.4]])  # overlaps of four neurons
CLASSICAL: Any = {"teacher_width": 2, "student_width": 10}  # more neurons than directions
NO_STEP = 1e-9  # of the limit that has no corrector
BLOCKS = 20  # of runs, whose exponents are averaged
SLACK = 0.05  # on exponents over a finite range: drifts have terms of relative order 1/p


@experiment(
    paper="L23",
    figure="main theorem",
    claim="SGD is within (γ/(dp))^(1/2) of its ODE, in each exponent; as γ → 0 of gradient flow.",
    tiny={
        "dims": (50, 400),
        "steps": (0.1, 0.8),
        "widths": (4, 8),
        "runs": 200,
        "time": 0.1,
        "width": 4,
    },
    quick={"widths": (4, 8, 16), "runs": 400},
)
class RegimesErrors(Settings):
    """Times are the slides', t/p; γ is the step. Starts are the same four neurons, p/4 times each.

    The theorem bounds the largest of all p² entries, which for independent ones has a factor
    √(2 log p²) over a single one: exponents are those of the root mean square over entries of M.
    """

    dim: int = setting(200, "dimension d where it is fixed", least=50)
    step: float = setting(0.4, "step γ where it is fixed", above=0)
    width: int = setting(8, "number of neurons p where it is fixed, a multiple of 4", least=4)
    dims: tuple[int, ...] = setting((50, 200, 800, 3200), "dimensions d, increasing", least=50)
    steps: tuple[float, ...] = setting((0.1, 0.4, 1.6), "steps γ, increasing", above=0)
    widths: tuple[int, ...] = setting((4, 8, 16, 24), "widths p, increasing, as width", least=4)
    noise: float = setting(1.0, "variance Δ of the label noise", above=0)
    small_steps: tuple[float, ...] = setting((0.02, 0.08, 0.32), "steps γ at d = 3", above=0)
    runs: int = setting(1000, "independent runs of SGD", least=100)
    time: float = setting(0.3, "duration over width, t/p", above=0)

    def gaps(self, seed: int, **size: Any) -> xr.Dataset:
        """Root mean square over entries of M and largest entry of Ω − limit, of each run."""
        width = size.get("width", self.width)
        task = sl.tasks.TeacherStudent(student_width=width, noise=self.noise)
        copies = -(-width // len(ROWS))
        init = {"M": np.repeat(ROWS, copies, axis=0)[:width], "R": np.eye(width) / 2}
        return self._gaps(task, init, seed, size.get("dim", self.dim), size.get("step", self.step))

    def classical(self, seed: int, step: float) -> xr.Dataset:
        """The same at d = 3 against gradient flow, from one random start; all coordinates."""
        task = sl.tasks.TeacherStudent(noise=self.noise, **CLASSICAL)
        start = task.random_state(3, seed=seed)
        return self._gaps(task, start, seed, 3, step, limit_step=NO_STEP, method="direct")

    def _gaps(
        self, task: Any, init: Any, seed: int, dim: int, step: float, **options: Any
    ) -> xr.Dataset:
        limit = sl.effective_dynamics(task, step=options.pop("limit_step", step))
        times = [0.0, self.time * task.width]
        sgd = sl.simulate(
            task, dim, runs=self.runs, step=step, init=init, times=times, seed=seed, **options
        )
        ode = limit.solve(init, times=sgd.time)
        last, end = sgd.isel(time=-1), ode.isel(time=-1)
        apart = last.M - end.M
        gram = np.abs(_gram(last) - _gram(end)).max((-2, -1))
        largest = np.maximum(gram, np.abs(apart).max(("neuron", "anchor")).values)
        root = np.sqrt((apart**2).mean(("neuron", "anchor")))
        found = {"root": ("run", root.values), "largest": ("run", largest)}
        return xr.Dataset(found, {"run": last.run.values})

    def compute(self, seed: int) -> Data:
        """Gaps at the end of runs, one parameter varied at a time."""
        values = {"dim": self.dims, "step": self.steps, "width": self.widths}

        def along(name: str) -> xr.Dataset:
            return sl.results.over(name, values[name], lambda x: self.gaps(seed, **{name: x}))

        classical = sl.results.over(
            "step", self.small_steps, lambda step: self.classical(seed, step)
        )
        return {name: along(name) for name in values} | {"classical": classical}

    def check(self, data: Data) -> list[Check]:
        """Mean exponent over runs from the first value to the last."""
        name = "exponent of the distance to the ODE in {}"
        found = [
            checks.mean(
                name.format(dim),
                _exponents(data[dim].root, dim),
                expected,
                note="from {:g} to {:g}".format(*data[dim][dim].values[[0, -1]]),
                bias=SLACK,
            )
            for dim, expected in EXPONENTS.items()
        ]
        family = _exponents(data["classical"].root, "step")
        told = "exponent of the distance to gradient flow in step, d = 3"
        return [*found, checks.mean(told, family, 0.5, bias=SLACK)]

    def draw(self, data: Data) -> Figure:
        """One panel for each parameter, with the predicted power laws."""
        figure, grid = sl.plot.panels(2, 2, width=4.6, height=3.1)
        looks = (("root", "root mean square over $M$"), ("largest", r"largest entry of $\Omega$"))
        for panel, (name, gaps) in zip(grid.ravel(), data.items(), strict=True):
            dim = "step" if name == "classical" else name
            for (kind, label), colour in zip(looks, picture.COLOURS, strict=False):
                line = EXPONENTS[dim]
                sl.plot.convergence(gaps[kind], line, label=label, color=colour, axes=panel)
                panel.lines[-1].set_label(r"slope of $(\gamma/(dp))^{1/2}$")
            panel.set(xlabel=f"${SYMBOLS[dim]}$", ylabel="distance to the limit")
            fixed = {other: getattr(self, other) for other in EXPONENTS if other != dim}
            words = ", ".join(f"${SYMBOLS[x]} = {value:g}$" for x, value in fixed.items())
            classical = "$d = 3$, $p = 10$, gradient flow"
            panel.set_title(classical if name == "classical" else words)
        return sl.plot.legend_below(figure, 3)


def _exponents(root: xr.DataArray, dim: str) -> xr.DataArray:
    """Exponents of root mean squares over blocks of runs."""
    size = root.sizes["run"] // BLOCKS
    square = (root**2).isel(run=slice(BLOCKS * size)).coarsen(run=size).mean()
    return checks.exponent(square**0.5, dim)


def _gram(result: xr.Dataset) -> np.ndarray:
    """Q = MMᵀ + R of orthonormal teachers."""
    M = result.M.transpose(..., "neuron", "anchor").values
    return np.asarray(M @ np.swapaxes(M, -1, -2) + result.R.values)
