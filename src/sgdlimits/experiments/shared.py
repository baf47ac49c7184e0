"""Settings of all experiments that run SGD."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments.settings import Settings, setting


class Sgd(Settings):
    """The size of the simulations; an experiment or a family of them has its own defaults."""

    dim: int = setting(1000, "dimension", least=2)
    runs: int = setting(100, "independent runs of SGD", least=10)
    time: float = setting(10.0, "duration, in units of dim/step samples", above=0)

    def simulate(self, task: Any, seed: int, **options: Any) -> xr.Dataset:
        """SGD of this size; options are those of ``sgdlimits.simulate``, which go first."""
        size: dict[str, Any] = {"dim": self.dim, "runs": self.runs, "time": self.time}
        return sl.simulate(task, seed=seed, **(size | options))

    def solve(self, task: Any, init: Any, points: int, **options: Any) -> xr.Dataset:
        """The limit for as long as SGD; options are those of ``sgdlimits.effective_dynamics``."""
        return sl.effective_dynamics(task, **options).solve(init, time=self.time, points=points)

    def with_limit(
        self, task: Any, seed: int, init: Any, *, points: int, step: float = 1.0, **options: Any
    ) -> dict[str, xr.Dataset]:
        """SGD from one start, and the limit at the same times, as ``sgd`` and ``limit``.

        Options are those of ``sgdlimits.effective_dynamics``.
        """
        sgd = self.simulate(task, seed, step=step, init=init, points=points)
        limit = sl.effective_dynamics(task, step=step, **options)
        return {"sgd": sgd, "limit": limit.solve(init, times=sgd.time)}

    def fluctuations(self, task: Any, init: Any, points: int, **options: Any) -> xr.Dataset:
        """Standard deviations of √dim times single runs around this solution of the limit."""
        solution = self.solve(task, init, points, **options)
        return sl.effective_dynamics(task, **options).fluctuations(solution)

    def simulate_over(
        self,
        name: str,
        values: Sequence[float] | np.ndarray,
        task: Callable[[float], Any],
        seed: int,
        **options: Any,
    ) -> xr.Dataset:
        """SGD for each value of a parameter, each with its own seed, in one dataset.

        Args:
            name: of the parameter, and of the dim along which the results are joined.
            values: of the parameter.
            task: what is learned, for one value.
            seed: of the first value; the next has the next.
            options: those of ``sgdlimits.simulate``, the same for all.
        """

        def run(value: float, seed: int) -> xr.Dataset:
            return self.simulate(task(value), seed, **options)

        return sl.results.over(name, values, run, count(seed))

    def simulate_from(
        self, task: Any, seed: int, starts: dict[str, Any], **options: Any
    ) -> xr.Dataset:
        """SGD from each of several states, all in one call; the result is over start and run.

        Args:
            task: what is learned.
            seed: of all runs.
            starts: states along a leading axis.
            options: those of ``sgdlimits.simulate``; ``runs`` is the number from each start.
        """
        runs = options.pop("runs", self.runs)
        init = {name: np.repeat(np.asarray(x), runs, axis=0) for name, x in starts.items()}
        total = len(next(iter(init.values())))
        sgd = self.simulate(task, seed, runs=total, init=init, **options)

        def part(start: int) -> xr.Dataset:
            own = sgd.isel(run=slice(start * runs, (start + 1) * runs))
            return own.assign_coords(run=np.arange(runs))

        return sl.results.over("start", range(total // runs), part)
