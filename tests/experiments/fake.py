"""An experiment that costs nothing, to be copied into a catalogue of its own."""

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import threadpoolctl  # type: ignore[import-untyped]
import xarray as xr

import sgdlimits as sl
from sgdlimits import InputError, _cores
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting


def make(trouble: str) -> None:
    """Go wrong in a way, and with ``:FILE`` only if there is no such file: once."""
    kind, _, once = trouble.partition(":")
    if once and Path(once).exists():
        return
    if once:
        Path(once).touch()
    if kind == "input":
        raise InputError("size=3 is not allowed: size must be larger")
    if kind == "value":
        raise ValueError("a fault of ours")
    if kind == "exit":
        raise SystemExit(0)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "sleep":
        time.sleep(300)
    raise RuntimeError(kind)


@experiment(
    paper="BGJ22",
    figure="Fig. 0",
    claim="Normal numbers have mean zero.",
    tiny={"size": 20},
    quick={"size": 50},
    headline=True,
)
class FakeNumbers(Settings):
    """Two numbers, and ways to break it."""

    size: int = setting(1000, "how many", least=2)
    shift: float = setting(0.0, "what is added")
    trouble: str = setting("", "input, value, exit, kill, sleep, or an error to raise")

    def compute(self, seed: int) -> Data:
        """Draw normal numbers, and a matrix whose eigenvalues depend on the threads of BLAS."""
        if self.trouble:
            make(self.trouble)
        warnings.warn("one run diverged", RuntimeWarning, stacklevel=1)
        random = np.random.default_rng(seed)
        values = self.shift + random.standard_normal(self.size)
        matrix = random.standard_normal((300, 300))
        spectrum = np.linalg.eigvalsh(matrix @ matrix.T)
        pools = threadpoolctl.threadpool_info()
        blas = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
        threads = {"threads": _cores.usable(), "blas": max(blas)}
        variables = {"x": ("run", values), "spectrum": ("eigenvalue", spectrum)}
        return {"numbers": xr.Dataset(variables, attrs=threads)}

    def check(self, data: Data) -> list[Check]:
        """Mean zero, not five."""
        values = data["numbers"].x.values
        return [
            checks.mean("mean", values, 0.0),
            checks.mean("mean, as printed", values, self.shift, printed=5.0),
        ]

    def draw(self, data: Data) -> Figure:
        """A histogram."""
        figure, panels = sl.plot.panels(1, 1)
        panels[0, 0].hist(data["numbers"].x.values, label="numbers")
        sl.plot.legend_below(figure)
        return figure
