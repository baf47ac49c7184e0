"""What the experiments on ways to move share: one neuron that retrieves a phase, from one start."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments.base import setting
from sgdlimits.experiments.shared import Sgd

POINTS = 61
# bounds for dim times the distance of means from the limit: measured are 23 on the way, 0.2 at rest
ON_THE_WAY, AT_REST = 25.0, 1.0

TIME = "time $t$ (= steps · step/dim)"

Words = dict[str, Any]  # of one way to move, as ``simulate`` and ``effective_dynamics`` take them


class RetrievalMoves(Sgd):
    """Phase retrieval on the sphere; its excess risk over Δ/2 is 2(1 − m²)."""

    step: float = setting(0.1, "step c of plain SGD", above=0, most=0.15)
    noise: float = setting(0.5, "variance Δ of the label noise", above=0, most=1)
    overlap: float = setting(0.3, "overlap m at the start", above=0, most=0.9)
    dim: int = 2000
    runs: int = 100
    time: float = setting(8.0, "duration, in units of dim/step steps", above=0)

    def excess(self, moves: Mapping[str, Words], seed: int, **options: Any) -> xr.Dataset:
        """Excess risk of SGD over run and time, and of the limit, for every way to move.

        Options are those of ``simulate``. Times are the same for all: whole numbers of steps, they
        differ by less than step/d between moves. They are those of SGD at step/(1 − β): momentum β
        moves 1/(1 − β) times as fast as its own time.
        """
        task = sl.tasks.PhaseRetrieval(noise=self.noise)
        start = {"M": [[self.overlap]], "R": [[1 - self.overlap**2]]}
        times = options.pop("times", np.linspace(0, self.time, POINTS))

        def one(name: str, seed: int) -> xr.Dataset:
            own = times * (1 - moves[name].get("momentum", 0.0))
            sgd = self.simulate(task, seed, init=start, times=own, **options, **moves[name])
            limit = sl.effective_dynamics(task, **moves[name]).solve(start, times=sgd.time)
            risk = 2 * sgd.R.isel(neuron=0, neuron_=0, drop=True).drop_vars(
                "samples", errors="ignore"
            )
            both = xr.Dataset({"risk": risk.assign_coords(time=times)})
            return both.assign(limit=("time", 2 * limit.R.values[:, 0, 0]))

        return sl.results.over("move", list(moves), one, count(seed))

    def floor(self, step: float) -> float:
        """Excess risk at rest, (8) of AKLS23: γΔ/(1 − 6γ)."""
        return sl.theory.phase_retrieval.excess_risk(step, self.noise)
