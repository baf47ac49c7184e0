"""Random tasks and states: is the error that the engine states for its drift the true one?"""

import warnings

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue import _random_tasks
from sgdlimits.experiments.settings import Settings

ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5)  # asked for, one of them at each state
FACTOR = 3.0  # a true error larger than so many times the stated one is a lie
SURE = 4.0  # standard errors of brute force
ROUNDING = 1e-9  # relative to the drift
FLOOR = 1e-12  # smaller errors are drawn here
PRECISIONS = (-3.0, 6.0)  # powers of ten


@experiment(
    paper="ours",
    figure="honest errors",
    claim="True errors of the drift exceed three times the stated ones in less than 1 % of cases.",
    tiny={"tasks": 1, "states": 4, "samples": 2**12},
    quick={"tasks": 8, "states": 5, "samples": 2**14},
)
class HonestErrors(Settings):
    """Activations, losses, labels, widths, precisions, weights and correlations at random."""

    tasks: int = setting(42, "kinds of tasks, drawn at random", least=1)
    states: int = setting(12, "precisions and states for each", least=1)
    samples: int = setting(2**16, "samples of each component in brute force", least=2**10)

    def compute(self, seed: int) -> Data:
        """Drift, stated error and true error, all relative to the largest component."""
        rows = []
        for number in range(self.tasks):
            rng = np.random.default_rng([seed, number])
            kind = _random_tasks.random_kind(rng)
            means = _random_tasks.random_means(kind, rng)
            for index in range(self.states):
                task = _random_tasks.random_task(kind, means, 10 ** rng.uniform(*PRECISIONS))
                state, asked = _random_tasks.random_state(kind, rng), rng.choice(ACCURACIES)
                limit = sl.effective_dynamics(task, rtol=asked)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "expectations are known to")
                    drift, stated = (
                        np.concatenate(
                            [x["v"], x["M"].ravel(), x["R"][np.triu_indices(kind.width)]]
                        )
                        for x in (limit.drift(state), limit.drift_error(state))
                    )
                true, error = _random_tasks.brute_force(
                    kind, task, state, self.samples, seed=number * self.states + index
                )
                size = np.max(np.abs(true))
                gap = np.max(np.abs(drift - true))
                parts = (np.max(stated), gap, np.max(error))
                rows.append([*(part / max(size, 1e-300) for part in parts), asked, kind.smooth])
        names = ("stated", "true", "brute_force", "asked", "smooth")
        columns = np.array(rows, dtype=float).T
        return {"cases": xr.Dataset({n: ("case", x) for n, x in zip(names, columns, strict=True)})}

    def check(self, data: Data) -> list[Check]:
        """The share of lies, where one could have been seen."""
        cases = data["cases"]
        lies = int(self.lies(cases).sum())
        seen = int((SURE * cases.brute_force < FACTOR * cases.stated + ROUNDING).sum())
        note = f"{lies} of {len(cases.case)}; {seen} with a reference more accurate than the claim"
        return [
            checks.holds(
                "true error > 3 × stated in < 1 % of cases",
                lies <= 0.01 * len(cases.case),
                note=note,
            )
        ]

    def lies(self, cases: xr.Dataset) -> xr.DataArray:
        """Which cases are worse than they say, for sure."""
        return cases.true - SURE * cases.brute_force > FACTOR * cases.stated + ROUNDING

    def draw(self, data: Data) -> Figure:
        """True against stated errors: below the line is honest.

        Unresolved: true errors that are not above the error of brute force.
        """
        figure, ((panel,),) = sl.plot.panels(1, 1, width=6.4, height=4.2)
        cases, colours = data["cases"], sl.plot.style.PALETTE
        known = cases.true > SURE * cases.brute_force
        for smooth, colour, word in ((1, "blue", "analytic"), (0, "vermillion", "with kinks")):
            for sure, extra in ((True, ""), (False, ", unresolved")):
                chosen = ((cases.smooth == smooth) & (known == sure)).values
                some = cases.isel(case=np.flatnonzero(chosen))
                if len(some.case) == 0:
                    continue
                panel.plot(
                    np.maximum(some.stated, FLOOR),
                    np.maximum(some.true, FLOOR),
                    "o",
                    ms=4,
                    color=colours[colour],
                    markerfacecolor=colours[colour] if sure else "none",
                    label=word + extra,
                )
        ends = np.array([FLOOR, 10.0])
        panel.plot(ends, ends, "k:", lw=1, label="true = stated")
        panel.plot(ends, FACTOR * ends, "k--", lw=1, label="true = 3 × stated")
        panel.set(xscale="log", yscale="log", xlim=(FLOOR / 2, 30), ylim=(FLOOR / 2, 30))
        panel.set(xlabel="stated error / drift", ylabel="true error / drift")
        return sl.plot.legend_below(figure, 3)
