"""Two classes: does SGD ever cross from a quarter ring to the optimal classifiers?

Parallel neurons wᵢ = rᵢe with vᵢ = crᵢ are active together, and a step takes them to rᵢe' and c'rᵢ
with the same e' and c'. SGD itself, at any N and any precision, conserves the angle of (r₁, r₂). On
the ring it neither drifts nor diffuses, so that there is no time scale in N: noise moves the angle
only until neurons that start apart have become parallel, exponentially fast, and a run that has not
crossed by then never does.
"""

import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._binary import ring_point
from sgdlimits.experiments.settings import Settings

POINTS = 41
RTOL = 1e-4
NONE = 1e-6  # of diffusions: what rounding leaves of nothing


@experiment(
    paper="BGJ22",
    figure="Prop. 4.3, crossing at finite precision",
    claim="Binary mixture: a quarter ring is never crossed: its angle neither drifts nor diffuses.",
    tiny={"precisions": (2.0, 3.0), "dims": (20,), "runs": 64, "time": 100.0},
    quick={"time": 400.0},
)
class BinaryRingCrossing(Settings):
    """Starts near an end of the ring, where crossing is closest."""

    precisions: tuple[float, ...] = setting((2.0, 3.0, 4.0), "precisions λ of the data", least=1)
    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    angle: float = setting(5.0, "angle of the start on the ring, in degrees", above=0, most=45)
    apart: float = setting(0.01, "added to R, so that neurons are not parallel", above=0, most=0.1)
    dims: tuple[int, ...] = setting((20, 50, 200), "dimensions N", least=10)
    runs: int = setting(64, "independent runs of SGD", least=20)
    time: float = setting(2000.0, "duration, in units of dim samples", least=50)

    def start(self, precision: float, apart: float) -> dict[str, np.ndarray]:
        """A point of the ring, with neurons that are not quite parallel."""
        state = ring_point(math.radians(self.angle), precision, self.ridge)
        return state | {"R": state["R"] + apart * np.eye(2)}

    def compute(self, seed: int) -> Data:
        """Angles and correlations of neurons over time; whether runs have crossed."""

        def sgd(precision: float) -> xr.Dataset:
            return sl.results.over("dim", self.dims, lambda dim: self.one(precision, dim, seed))

        def limit(precision: float) -> xr.Dataset:
            found = sl.effective_dynamics(self.task(precision), rtol=RTOL).solve(
                self.start(precision, self.apart), time=self.time, points=POINTS
            )
            return angles(found)

        return {
            "sgd": sl.results.over("precision", self.precisions, sgd),
            "limit": sl.results.over("precision", self.precisions, limit),
            "noise": sl.results.over("precision", self.precisions, self.noise),
        }

    def noise(self, precision: float) -> xr.Dataset:
        """Diffusion of the angle and of the logarithm of the radius, on the ring and beside it."""
        limit = sl.effective_dynamics(self.task(precision), rtol=RTOL)
        overlaps = [limit.coordinates.index(f"M[{i},mu]") for i in range(2)]

        def of(apart: float) -> list[float]:
            state = self.start(precision, apart)
            m = state["M"][:, 0]
            sigma = limit.diffusion(state)[np.ix_(overlaps, overlaps)]
            along = np.array([-m[1], m[0]])
            return [float(u @ sigma @ u) / float(m @ m) ** 2 for u in (along, m)]

        return xr.Dataset(
            {"diffusion": (("place", "way"), [of(0.0), of(self.apart)])},
            {"place": ["ring", "beside"], "way": ["angle", "radius"]},
        )

    def task(self, precision: float) -> sl.tasks.BinaryMixture:
        """At one noise level."""
        return sl.tasks.BinaryMixture(precision=precision, ridge=self.ridge)

    def one(self, precision: float, dim: int, seed: int) -> xr.Dataset:
        """Runs from beside the ring, and a few from a point of it."""
        task, times = self.task(precision), np.linspace(0, self.time, POINTS)
        size: Any = {"dim": dim, "time": self.time, "points": POINTS, "seed": seed}
        near = self.start(precision, self.apart)
        runs = sl.simulate(task, runs=self.runs, init=near, until=(across, "<", 0.0), **size)
        parallel = sl.simulate(task, runs=10, init=self.start(precision, 0.0), **size)
        turned = np.abs(angles(parallel).angle - self.angle).max()
        found = angles(runs).assign(
            crossed=~runs.censored, turned=turned.drop_vars("samples", errors="ignore")
        )
        return found.assign_coords(time=times)

    def check(self, data: Data) -> list[Check]:
        """Crossings, angles of parallel neurons, and how angles drift in the limit."""
        found = []
        sgd, limit = data["sgd"], data["limit"]
        for precision in self.precisions:
            for dim in self.dims:
                part = sgd.sel(precision=precision, dim=dim)
                name = f"runs that cross by t = {self.time:g}, λ = {precision:g}, N = {dim}"
                ends = part.correlation.isel(time=-1)
                note = f"correlation of the neurons at the end: {float(ends.mean()):.6f} on average"
                crossed = int(part.crossed.sum())
                found.append(checks.exact(name, crossed, 0, note=note))
        turned = float(sgd.turned.max())
        found.append(checks.exact("largest turn of parallel neurons, degrees", turned, 0.0, 1e-6))
        drift = (limit.angle.isel(time=-1) - limit.angle.isel(time=POINTS // 2)).values
        found.append(checks.holds("in the limit angles drift to the middle", drift[0] > 0))
        falls = bool(np.all(np.diff(drift) < 0))
        note = "degrees: " + ", ".join(f"{x:.2g}" for x in drift)
        found.append(checks.holds("and do so less the larger λ is", falls, note=note))
        noise = data["noise"].diffusion
        ring, beside = noise.sel(place="ring"), noise.sel(place="beside")
        share = float((ring.sel(way="angle") / ring.sel(way="radius")).max())
        name = "diffusion of the angle over that of the radius, on the ring"
        found.append(checks.exact(name, share, 0.0, NONE))
        note = f"{float(beside.sel(way='angle').min()):.2g} at least, over N"
        moves = bool((beside.sel(way="angle") > NONE * beside.sel(way="radius")).all())
        found.append(checks.holds("beside the ring the angle diffuses", moves, note=note))
        places = itertools.product(self.precisions, self.dims)
        return [*found, *(self._settles(sgd.sel(precision=x, dim=dim)) for x, dim in places)]

    def _settles(self, part: xr.Dataset) -> Check:
        """Diffusion at a constant rate would move angles as much in both halves of the time."""
        middle = part.angle.isel(time=POINTS // 2)
        early = float((middle - part.angle.isel(time=0)).std("run"))
        late = float((part.angle.isel(time=-1) - middle).std("run"))
        # a ratio of two variances, of log-variance 4/(runs − 1) if they were equal
        enough = math.exp(-checks.allowed(self.runs) * math.sqrt(4 / (self.runs - 1)))
        name = f"angles stop moving, λ = {float(part.precision):g}, N = {int(part.dim)}"
        note = f"spread gained in the first half {early:.2g} degrees, in the second {late:.2g}"
        return checks.holds(name, late**2 < enough * early**2, note=note)

    def draw(self, data: Data) -> Figure:
        """Angles over time: of single runs, and of the limit; one panel for each precision."""
        shown = data["sgd"].isel(dim=0)

        def one(panel: Axes, runs: xr.Dataset, limit: xr.Dataset) -> None:
            label = f"SGD, N = {self.dims[0]}"
            sl.plot.runs(runs.angle, label=label, axes=panel)
            panel.plot(limit.time, limit.angle, "k", lw=2, label="limit")
            panel.axhline(0, color="k", ls=":", lw=1, label="crossing")
            panel.set_ylabel("angle, degrees")
            panel.margins(y=0.1)

        size: Any = {"title": "λ = {:g}", "columns": len(self.precisions), "width": 3.6}
        return sl.plot.facets(shown, "precision", one, data["limit"], height=3.2, legend=3, **size)


def angles(result: xr.Dataset) -> xr.Dataset:
    """The angle of (m₁, m₂) in degrees, and the correlation of both neurons' orthogonal parts."""
    first, second = (result.M.isel(anchor=0, neuron=i).reset_coords(drop=True) for i in (0, 1))
    R = result.R.transpose(..., "neuron", "neuron_").values
    size = np.sqrt(np.maximum(R[..., 0, 0] * R[..., 1, 1], 1e-300))
    angle = np.degrees(np.arctan2(second, first))
    return xr.Dataset({"angle": angle, "correlation": angle.copy(data=R[..., 0, 1] / size)})


def across(state: dict[str, Any]) -> Any:
    """Positive in the quadrants of the rings, negative in those of the optimal classifiers."""
    return state["M"][0, 0] * state["M"][1, 0]
