"""With far fewer samples than α_c N nothing is found, with far more everything is."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue import _search as search

POINTS = 41  # numbers of samples in a picture
RANGE = {1: (0.05, 20.0), 2: (0.03, 5.0), 3: (0.01, 5.0)}  # α/α_c that is looked at
FEW = {1: 1.0, 2: 0.5, 3: 0.1}  # times N^(−1/4): α/α_c of a sequence that is too short
NEAR_ONE = 0.8  # an overlap that counts as recovered: J24 has 1 − o(1), here N is finite


class Window(NamedTuple):
    """α_N samples for each dimension at a step δ_N: a point of the theorem's window."""

    ratio: float
    step: float

    @property
    def time(self) -> float:
        """αδ, the time that these samples take."""
        return self.ratio * self.step


def enough(exponent: int, dim: int) -> Window:
    """One with √α_c/α ≪ δ ≪ 1/√α (log N/α for k = 2) and α far above α_c."""
    if exponent == 1:
        ratio = 10 * dim**0.25
        return Window(ratio, 2 * ratio ** (-2 / 3))
    if exponent == 2:
        return Window(np.log(dim) ** 2.5, 0.5 * np.log(dim) ** -1.4)
    return Window(10 * dim**1.25, 2 * dim**-0.6875)


def printed(dim: int) -> Window:
    """For k = 3 one with 1/α ≪ δ ≪ 1/√α, as J24 prints, but δ ≪ √α_c/α."""
    ratio = dim**1.25
    return Window(ratio, ratio**-0.8)


@experiment(
    paper="J24",
    figure="Thm 11.11",
    claim="With α ≪ α_c samples per dimension sup|m| vanishes as N grows; with α ≫ α_c m → 1.",
    tiny={"dims": (200, 2000), "third_dims": (60, 240), "runs": 60},
    quick={"dims": (200, 2000, 20_000), "third_dims": (60, 150, 400), "runs": 120},
    cost=6,
)
class RecoveryThreshold(Settings):
    """Starts on the upper half of the sphere; α_c is 1, log N and N."""

    dims: tuple[int, ...] = setting(
        (300, 3000, 30_000), "dimensions N for exponents 1 and 2", least=200
    )
    third_dims: tuple[int, ...] = setting((100, 300, 700), "dimensions N, exponent 3", least=50)
    runs: int = setting(100, "independent runs of SGD for each dimension", least=20)

    def compute(self, seed: int) -> Data:
        """Overlaps over α/α_c at the steps of search; and at the ends of two sequences."""

        def one(exponent: int) -> xr.Dataset:
            def run(dim: int) -> xr.Dataset:
                low, high = RANGE[exponent]
                critical = sl.theory.hermite.critical_samples(dim, exponent).ratio
                step = search.step_of(exponent, dim)
                shares = np.geomspace(low, high, POINTS)
                m = self.overlaps(exponent, dim, step, critical * step * shares, seed)
                few = int(np.searchsorted(shares, FEW[exponent] * dim**-0.25))
                found = {"m": (("run", "share"), m), "few": float(shares[few])}
                found["stuck"] = ("run", np.abs(m[:, : few + 1]).max(axis=1))
                found |= self.recovered(exponent, dim, enough(exponent, dim), seed + 1)
                return xr.Dataset(found, {"share": shares})

            return sl.results.over("dim", self._dims(exponent), run)

        def wrong(dim: int) -> xr.Dataset:
            return xr.Dataset(self.recovered(3, dim, printed(dim), seed + 2))

        found = {f"exponent {k}": one(k) for k in search.NAMES}
        return found | {"printed": sl.results.over("dim", self.third_dims, wrong)}

    def recovered(self, exponent: int, dim: int, window: Window, seed: int) -> dict[str, Any]:
        """Which runs pass m = 0.8 with so many samples, and the share that the diffusion does."""
        task, even = search.task_of(exponent), exponent == 2
        event = (search.size if even else search.overlap, ">", NEAR_ONE)
        passed = sl.first_passage(
            task,
            event,
            dim,
            self.runs,
            window.time,
            step=window.step,
            seed=seed,
            init=search.upper_starts(task, dim, seed, self.runs),
            sphere="tangential",
        )
        law = search.Passage(task, dim, window.step, NEAR_ONE, even=even)
        share = law.probability(window.time)
        return {"recovered": ("run", ~passed.censored.values), "expected": share}

    def overlaps(
        self, exponent: int, dim: int, step: float, times: np.ndarray, seed: int
    ) -> np.ndarray:
        """Overlaps of every run at these times."""
        task = search.task_of(exponent)
        sgd = sl.simulate(
            task,
            dim,
            runs=self.runs,
            times=np.concatenate([[0.0], times]),
            step=step,
            seed=seed,
            init=search.upper_starts(task, dim, seed, self.runs),
            sphere="tangential",
        )
        m = sgd.M.isel(neuron=0, anchor=0).transpose("run", "time").values[:, 1:]
        return np.abs(m) if exponent == 2 else m  # an even loss does not know the sign

    def check(self, data: Data) -> list[Check]:
        """Too few, α/α_c as N^(−1/4): sup|m| falls with N. Enough: as many recover as predicted."""
        found = []
        for k in search.NAMES:
            part = data[f"exponent {k}"]
            means, errors = _mean(part.stuck)
            slope = np.log(means[-1] / means[0]) / np.log(part.dim.values[-1] / part.dim.values[0])
            error = float(np.hypot(*(errors / means)[[0, -1]]))
            error /= np.log(part.dim.values[-1] / part.dim.values[0])
            note = (
                f"power of N {slope:.2f} ± {error:.2f}; sup|m| {means[0]:.3f} to {means[-1]:.3f}; "
                f"a test of the sign at level {checks.LEVEL:g}"
            )
            name = f"too few: sup|m| falls as N grows, k = {k}"
            falls = slope + checks.allowed(self.runs) * error < 0
            found += [checks.holds(name, falls, note=note), self._share(part.isel(dim=-1), k)]
        few = data["printed"].isel(dim=-1)
        window = printed(int(few.dim))
        needed = few.dim.item() ** 0.5 / window.ratio
        note = (
            f"α = N^(5/4), δ = 1/α^0.8: 1/α = {1 / window.ratio:.2g} ≪ δ = {window.step:.2g} ≪ "
            f"1/√α = {window.ratio**-0.5:.2g} as printed, but √α_c/α is {needed:.2g}"
        )
        return [*found, self._share(few, 3, note=note, printed=1.0)]

    def _share(self, part: xr.Dataset, k: int, **options: Any) -> Check:
        """Runs that recover: as many as paths of the limiting diffusion, which all do as N → ∞."""
        hits, expected = int(part.recovered.sum()), float(part.expected)
        kind = "printed window" if options else "enough"
        name = f"{kind}: share of runs with m > {NEAR_ONE:g}, k = {k}, N = {int(part.dim):,}"
        return checks.proportion(name, hits, self.runs, expected, **options)

    def draw(self, data: Data) -> Figure:
        """One panel for each exponent: medians and the middle 80 % of the runs."""
        figure, (panels,) = sl.plot.panels(1, 3, width=4.3, height=3.8, sharey=True)
        with sl.plot.style.figure_style():
            for panel, k in zip(panels, search.NAMES, strict=True):
                self.draw_exponent(panel, data[f"exponent {k}"], k)
            panels[0].set_ylabel("overlap $m$")
            panels[1].set_ylabel("$|m|$")
        return figure

    def draw_exponent(self, panel: Axes, part: xr.Dataset, exponent: int) -> None:
        """Overlaps over the samples in units of the critical number."""
        for dim, colour in picture.coloured(part.dim.values.tolist()):
            m = part.m.sel(dim=dim)
            low, high = (m.quantile(q, "run") for q in (0.1, 0.9))
            panel.fill_between(part.share, low, high, color=colour, alpha=0.15, linewidth=0)
            panel.plot(part.share, m.median("run"), color=colour, label=f"N = {dim:,}")
        panel.axvline(1, color="k", lw=0.8, ls=":")
        word = {1: "N", 2: "(N\\,\\log N)", 3: "N^2"}[exponent]
        panel.set(xscale="log", xlabel=rf"samples$\,/\,{word}$", ylim=(-0.25, 1.05))
        panel.set_title(f"exponent {exponent}: {search.NAMES[exponent]}", fontsize="medium")
        panel.legend(title="median, middle 80 %", fontsize=9, loc="upper left")

    def _dims(self, exponent: int) -> tuple[int, ...]:
        return self.third_dims if exponent == 3 else self.dims


def _mean(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Over runs, with standard errors."""
    errors = values.std("run").values / np.sqrt(values.sizes["run"])
    return values.mean("run").values, errors
