"""Phase retrieval by batches: the floor that a constant step leaves is that of the step c/b."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._retrieval_moves import (
    AT_REST,
    ON_THE_WAY,
    POINTS,
    TIME,
    RetrievalMoves,
    Words,
)

LATE = 0.75  # share of the time after which means over time are taken


@experiment(
    paper="ours",
    figure="excess risk against batch size",
    claim="Batches of b leave the floor of the step c/b; gradient descent, b → ∞, leaves none.",
    tiny={"dim": 300, "runs": 40, "time": 5.0, "batches": (1, 16)},
    quick={"dim": 1000, "runs": 60},
)
class BatchFloor(RetrievalMoves):
    """Every batch size from the same start, and gradient descent on the population loss."""

    batches: tuple[int, ...] = setting((1, 2, 4, 8, 16, 64), "samples b in a batch", least=1)
    time: float = 6.0

    @property
    def moves(self) -> dict[str, Words]:
        """One for each size."""
        return {f"b = {b}": {"step": self.step, "batch": b} for b in self.batches}

    def compute(self, seed: int) -> Data:
        """Excess risk over time by batches, and by discrete steps along the mean gradient."""
        population = {"b → ∞": {"step": self.step}}
        return {
            "batches": self.excess(self.moves, seed),
            "population": self.excess(population, seed, runs=1, method="population"),
        }

    def check(self, data: Data) -> list[Check]:
        """Paths and floors of every size, their exponent in b, and no floor without noise."""
        excess, path = data["batches"], "excess risk, {}"
        bias = ON_THE_WAY / self.dim
        found = checks.each("move", checks.path, path, excess.risk, excess.limit, bias=bias)
        late = self.late(data)
        for b, name in zip(self.batches, self.moves, strict=True):
            said, rest = f"excess risk at rest, {name}: γΔ/(b − 6γ)", self.rest(b)
            # what a batch adds at finite dim is divided by b as well
            bias = AT_REST / self.dim / b
            found.append(checks.mean(said, late.sel(move=name), rest, bias=bias))
        lowest = self.rest(max(self.batches))
        end = float(data["population"].risk.isel(time=-1).max())
        note = f"{end:.1e}, where the largest batch leaves {lowest:.1e}"
        found.append(checks.holds("gradient descent has no floor", end < lowest / 10, note=note))
        return found

    def late(self, data: Data) -> xr.DataArray:
        """Means over late times, for every size and run."""
        risk = data["batches"].risk
        return risk.sel(time=slice(LATE * self.time, None)).mean("time")

    def rest(self, batch: float) -> float:
        """γΔ/(b − 6γ), the floor of the step γ/b."""
        return self.floor(self.step / batch)

    def draw(self, data: Data) -> Figure:
        """Excess risk over time on the left; on the right what is left of it, against b."""
        figure, ((left, right),) = sl.plot.panels(1, 2, width=4.6, height=3.6, sharey=True)
        for name, colour in picture.coloured(self.moves):
            part = data["batches"].sel(move=name)
            sl.plot.band(part.risk, label=f"SGD, {name}", color=colour, axes=left)
            left.plot(part.time, part.limit, "k", lw=1.2, label="limit")
        population = data["population"].isel(move=0, run=0)
        left.plot(population.time, population.risk, color="0.5", ls="--", label="gradient descent")
        sizes = np.geomspace(min(self.batches), max(self.batches), POINTS)
        right.plot(sizes, [self.rest(b) for b in sizes], "k", lw=1.2, label="γΔ/(b − 6γ)")
        right.plot(sizes, self.step * self.noise / sizes, "k:", lw=1, label="γΔ/b")
        late = self.late(data)
        for (name, colour), b in zip(picture.coloured(self.moves), self.batches, strict=True):
            own = late.sel(move=name)
            error = 2 * float(own.std("run", ddof=1)) / np.sqrt(own.sizes["run"])
            look = {"fmt": "o", "color": colour, "markerfacecolor": "white", "capsize": 2.5}
            right.errorbar([b], [float(own.mean())], [error], **look)
        lowest = self.rest(max(self.batches))
        left.set(ylabel="excess risk", xlabel=TIME)
        left.set(yscale="log", ylim=(lowest / 8, 3))
        right.set(xscale="log", xlabel="samples $b$ in a batch", title="at rest")
        right.set_xticks(self.batches, [f"{b}" for b in self.batches])
        right.minorticks_off()
        left.set_title("over time")
        return sl.plot.legend_below(figure, 5)
