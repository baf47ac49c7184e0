"""XOR: both layers align with the outliers of their blocks of Hessian and gradient matrix."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._alignment import (
    Alignment,
    check_alignment,
    draw_measured,
    draw_parts,
    draw_predicted,
    parts,
    prediction,
)
from sgdlimits.experiments.catalogue._xor_spectra import XorSpectra, norms

LIVE = 0.1  # neurons with less of the largest norm decay: their direction is noise
LARGEST = 4  # neurons whose blocks are computed again on fresh data


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.4, 9.5",
    claim="XOR: the weights of both layers align with outlier eigenspaces, up to O(1/√λ).",
    tiny={
        "width": 6, "dim": 100, "precisions": (100.0,), "points": 2, "neurons": 3, "draws": 4,
        "train": False,
    },
    quick={"dim": 200, "points": 3, "draws": 10, "train": False},
)  # fmt: skip
class XorAlignment(XorSpectra, Alignment):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    width: int = setting(20, "width K", least=LARGEST + 1)
    neurons: int = setting(6, "neurons that are followed, the first ones", least=2)
    draws: int = 6
    train: bool = setting(True, "whether training data are looked at too, at the smallest λ")

    def compute(self, seed: int) -> Data:
        """Follow SGD; then draw new data at the state that it reached, which is all that counts."""
        followed = min(self.neurons, self.width)

        def follow(precision: float, kind: str = "test") -> xr.Dataset:
            task = self.task(precision)
            times = self.times if kind == "test" else self.times[[0, -2, -1]]
            tracked = self.track(task, times, seed, data=kind, blocks=[*range(followed), "vv"])
            largest = int(np.argmax(norms(sl.results.state(tracked))[:followed]))
            always = [f"W{largest}W{largest}", "vv"]
            return tracked.assign(effective=prediction(task, tracked, self.ratio, always))

        def again(precision: float) -> xr.Dataset:
            task, end = self.task(precision), sl.results.state(test.sel(precision=precision))
            best = [int(i) for i in np.argsort(-norms(end))[:LARGEST]]
            draws = self.track_again(task, end, seed + 1, self.draws, blocks=[*best, "vv"])
            effective = prediction(task, draws.isel(draw=0), self.ratio, [])
            measured = draws[["alignment", "eigenvalues"]].assign(effective=effective)
            ranks = [f"{rank}. largest" for rank in range(1, LARGEST + 1)]
            return measured.isel(time=0).assign_coords(block=[*ranks, "vv"])

        test = sl.results.over("precision", self.precisions, follow)
        data = {"test": test, "fresh": sl.results.over("precision", self.precisions, again)}
        if self.train:
            smallest = [min(self.precisions)]
            data["train"] = sl.results.over("precision", smallest, follow, ["train"])
        return data

    def check(self, data: Data) -> list[Check]:
        """Alignment at the end against the effective theory; above 0.95 where theory says so."""
        results = []
        for title, part in parts(data):
            if "draw" in part.dims:
                results += self.check_fresh(title, part)
            else:
                fresh = data["fresh"].sel(precision=part.precision, matrix=part.matrix)
                results.append(self.check_run(title, part.isel(time=-1), fresh))
        return results

    def check_fresh(self, title: str, fresh: xr.Dataset) -> list[Check]:
        """Alignment of each layer on fresh data at the end of a run against its prediction."""
        values = np.abs(fresh.eigenvalues.sel(block="vv")).mean("draw").values
        # noise turns E_4 of vv, in mean: second order, with kurtosis up to 6
        turning = float(3 * self.width * values[4] / values[3] / self.samples)
        first, second = fresh.isel(block=slice(0, -1)), fresh.sel(block=["vv"])
        return [
            # at a fixed state: in mean 0.04/d to 0.08/d at d = 50
            *check_alignment(f"{title}, {LARGEST} largest W_i", first, "draw", 1 / self.dim),
            *check_alignment(f"{title}, v", second, "draw", turning),
        ]

    def check_run(self, title: str, end: xr.Dataset, fresh: xr.Dataset) -> Check:
        """Mean alignment of the live neurons of a run, one draw, in the spread of fresh draws."""
        size, first = norms(sl.results.state(end)), end.isel(block=slice(0, -1))
        live = size[: first.sizes["block"]] > LIVE * size.max()
        measured, expected = first.alignment.values[live], first.effective.values[live].mean()
        gaps = (fresh.alignment - fresh.effective).isel(block=slice(0, -1))
        spread = gaps.std("draw", ddof=1).max()  # neurons share data: averages may gain nothing
        low, middle, high = np.quantile(measured, [0, 0.5, 1])
        note = f"{low:.3f}, {middle:.3f}, {high:.3f} (least, median, largest) of {live.sum()} live "
        note += f"neurons of {len(live)}, predicted mean {expected:.3f}"
        name, others = f"{title}: mean alignment of the live W_i", (spread, self.draws)
        return checks.single(name, measured.mean(), expected, *others, note=note, bias=1 / self.dim)

    def draw(self, data: Data) -> Figure:
        """Alignment of every block over time, and predictions."""

        def one(panel: Axes, part: xr.Dataset) -> None:
            label, rho = f"SGD, d = {self.dim}: ", part.alignment
            draw_measured(panel, rho.isel(block=slice(0, -1)), label + "$W_i$, $E_2$")
            draw_measured(panel, rho.sel(block="vv"), label + "$v$, $E_4$", sl.plot.style.PATHS)
            draw_predicted(panel, part.effective, "effective spectrum")

        runs = {kind: part for kind, part in data.items() if kind != "fresh"}
        return draw_parts(runs, one, "alignment")
