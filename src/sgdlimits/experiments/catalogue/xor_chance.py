"""XOR with four neurons: three random starts in 32 lead SGD to an optimal network."""

import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._xor import NO_NOISE, NoisyXor, classifies, optimal_signs

LIMIT, FOLLOWED = "limit", "SGD, λ = ∞,\nthen the limit"


@experiment(
    paper="BGJ22",
    figure="Fig. 10",
    claim="XOR, four neurons: 3 of 32 random starts lead to an optimal network, 29 do not.",
    tiny={"precisions": (10000.0,), "runs": 64, "time": 20.0, "ridge": 0.05},
    quick={"precisions": (100.0, 1000.0, 10000.0), "time": 20.0},
    headline=True,
)
class XorChance(NoisyXor):
    """Noise levels of the data; no noise at all is always added."""

    precisions: tuple[float, ...] = (10.0, 100.0, 1000.0, 10000.0)
    runs: int = setting(500, "independent runs of SGD, and starts of the limit", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", least=20)

    def compute(self, seed: int) -> Data:
        """Optimal networks by the signs of SGD, and by where the limit without noise rests."""
        sgd = self.sgd(seed)
        starts = {
            FOLLOWED: sl.results.state(sgd.sel(precision=NO_NOISE)),
            LIMIT: self.small_starts(seed + 100),
        }

        def signs(precision: float) -> xr.Dataset:
            ends = sl.results.state(sgd.sel(precision=precision))
            return xr.Dataset({"hits": optimal_signs(ends).sum()})

        def rest(start: str) -> xr.Dataset:
            ends = sl.results.state(self.at_rest(starts[start]))
            return xr.Dataset({"hits": classifies(ends, margin=1e-3).sum()})

        return {
            "sgd": sl.results.over("precision", sgd.precision.values, signs),
            "limit": sl.results.over("start", [*starts], rest),
        }

    def check(self, data: Data) -> list[Check]:
        """3/32 without noise, three ways; and at the largest precision."""
        sgd, limit = data["sgd"].hits, data["limit"].hits
        largest = max(self.precisions)
        formula = sl.theory.xor.success_probability(4)
        chances = {
            "limit": limit.sel(start=LIMIT),
            "SGD, λ = ∞, then the limit": limit.sel(start=FOLLOWED),
            "SGD, λ = ∞": sgd.sel(precision=NO_NOISE),
            f"SGD, λ = {largest:g}": sgd.sel(precision=largest),
        }
        return [
            checks.exact("formula (5.2) at K = 4", formula, 3 / 32, 1e-12),
            *(
                checks.proportion(f"optimal end points: {name}", int(hits), self.runs, formula)
                for name, hits in chances.items()
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """Fractions with their exact intervals."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=7.2, height=3.8)
        sgd, limit = data["sgd"], data["limit"]
        panel.axhline(3 / 32, color="k", ls="--", label="3/32, predicted for λ → ∞")
        words = [f"SGD,\nλ = {sl.plot.style.number(x)}" for x in sgd.precision.values.tolist()]
        for hits, names, label, color in (
            (sgd.hits, words, "by the signs of v and m at the end", sl.plot.style.SIMULATION),
            (limit.hits, limit.start, "by the rest point that is reached", sl.plot.style.PATHS),
        ):
            sl.plot.proportions(hits, self.runs, names, label=label, color=color, axes=panel)
        panel.set(ylabel="optimal end points", ylim=(0, None))
        return sl.plot.legend_below(figure, 2)
