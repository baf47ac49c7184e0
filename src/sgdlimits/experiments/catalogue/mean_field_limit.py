"""Wide committees: particles in place of all overlaps, their distance to the ODE, their density."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

GRAM = np.array([[1.0, 0.5], [0.5, 2.0]])  # of the teachers: not the identity, as P is printed
NO_STEP = 1e-9  # of the limit that has no corrector
OWN_DIM = 8  # of the particles' start: overlaps of order one
SPREAD = 20  # of the density's start
SLACK = 0.2  # on exponents in p: the next order is p^(−2)


@experiment(
    paper="L23",
    figure="mean-field regime",
    claim="Wide committees: Q = MP⁻¹Mᵀ + diag Q⊥ at cost O(p), nearer than the bound p^(−1/2).",
    tiny={"widths": (16, 32), "dims": (50, 800), "cells": 30, "particles": 500, "runs": 10},
    quick={"widths": (8, 16, 32), "cells": 60, "particles": 4000, "runs": 10},
)
class MeanFieldLimit(Settings):
    """Squares, two teachers with Gram matrix P; times are the slides', t/p.

    Four neurons are there p/4 times each, so that the mean field is the same for all p: from
    diagonal R the distance of the full ODE is of order 1/p. From random weights overlaps of order
    d^(−1/2) are there from the start.
    """

    widths: tuple[int, ...] = setting((8, 16, 32, 64), "widths p, multiples of 4", least=8)
    dims: tuple[int, ...] = setting((50, 200, 800), "dimensions d of random starts", least=50)
    particles: int = setting(10000, "particles beside the density", least=100)
    cells: int = setting(90, "cells of the density in each direction", least=10)
    runs: int = setting(20, "draws of random starts", least=10)
    time: float = setting(3.0, "duration over width, t/p", above=0)

    def pair(self, width: int) -> xr.Dataset:
        """Largest distances over time of the full ODE to the mean field, also as printed."""
        flow = sl.theory.mean_field.MeanField(activation="square", teacher_gram=GRAM)
        four = flow.random_particles(4, OWN_DIM, seed=3)
        start = {name: np.repeat(x, width // 4, axis=0) for name, x in four.items()}
        task = sl.tasks.TeacherStudent(activation="square", student_width=width, teacher_gram=GRAM)
        wide = flow.solve(start, time=self.time, points=13)
        full = sl.effective_dynamics(task, NO_STEP).solve(
            {"M": start["M"], "R": np.diag(start["q"])}, times=width * wide.time.values
        )
        M, diag = wide.M.values, wide.q.values[..., None] * np.eye(width)
        own, other = full.M.values, np.linalg.inv(GRAM)
        Q = own @ other @ np.swapaxes(own, -1, -2) + full.R.values

        def apart(middle: np.ndarray, sign: float) -> float:
            return float(np.abs(Q - (M @ middle @ np.swapaxes(M, -1, -2) + sign * diag)).max())

        gaps = {"Q": apart(other, 1), "M": float(np.abs(own - M).max())}
        printed = {"minus": apart(other, -1), "gram": apart(GRAM, 1)}
        return xr.Dataset({name: ((), gap) for name, gap in (gaps | printed).items()})

    def random_start(self, dim: int, seed: int) -> xr.Dataset:
        """Largest |R_ij| of SGD over time, in each of several draws of random weights."""
        width = self.widths[0]
        task = sl.tasks.TeacherStudent(teacher_gram=GRAM, student_width=width)
        times = np.linspace(0, 0.1 * width, 3)  # before the flow has made correlations of its own
        sgd = sl.simulate(task, dim, runs=self.runs, step=1.0, times=times, seed=seed)
        off = np.abs(sgd.R * (1 - np.eye(width)))
        return xr.Dataset({"R": off.max(("neuron", "neuron_", "time"))})

    def compute(self, seed: int) -> Data:
        """Distances over width and dimension; density and particles of one teacher."""
        flow = sl.theory.mean_field.MeanField(teacher_width=1, nodes=30)
        times = np.linspace(0, 2 * self.time, 4)
        grid = sl.theory.mean_field.start_density(
            SPREAD, overlap_cells=self.cells, norm_cells=self.cells
        )
        density = sl.theory.mean_field.solve_density(flow, grid, times=times)
        points = flow.random_particles(self.particles, SPREAD, seed=seed)
        return {
            "widths": sl.results.over("width", self.widths, self.pair),
            "dims": sl.results.over("dim", self.dims, lambda dim: self.random_start(dim, seed)),
            "density": density,
            "particles": flow.solve(points, times=times),
        }

    def check(self, data: Data) -> list[Check]:
        """Exponents in p and d, the printed formulas, and the density against the particles."""
        gaps, first = data["widths"], self.widths[-2]
        last = gaps.sel(width=[first, self.widths[-1]])
        density, points = data["density"], data["particles"]
        end = density.mass.isel(time=-1)
        means, norms = ((end * density[name]).sum(("m", "q")) for name in ("m", "q"))
        mass = float(np.abs(density.mass.sum(("m", "q")) - 1).max())
        cell = float(density.m[1] - density.m[0]) ** 2  # the error is of second order
        note = f"from p = {first} to {self.widths[-1]}"
        exponents = [
            checks.exact(f"exponent in p of {told}", value, -1.0, SLACK, note=note)
            for told, value in (
                ("sup|Q − MP⁻¹Mᵀ − diag Q⊥|", checks.exponent(last.Q, "width")),
                ("sup|M − mean field|", checks.exponent(last.M, "width")),
            )
        ]
        printed = [
            checks.holds(f"printed {told} stays away", float(last[name].min()) > 0.5)
            for told, name in (("Q = MP⁻¹Mᵀ − diag Q⊥", "minus"), ("Q = MPMᵀ + diag Q⊥", "gram"))
        ]
        off = checks.exponent(data["dims"].R, "dim")
        return [
            *exponents,
            *printed,
            checks.mean("exponent in d of max|R_ij|, random weights", off, -0.5, bias=0.1),
            checks.exact("mass of the density", mass, 0.0, 1e-12),
            checks.mean(
                "mean of m, particles against density", points.M[-1, :, 0], means, bias=cell
            ),
            checks.mean("mean of q, particles against density", points.q[-1], norms, bias=cell),
        ]

    def draw(self, data: Data) -> Figure:
        """Density and particles at three times, and distances over the width."""
        figure, (panels,) = sl.plot.panels(1, 4, width=3.7, height=3.5)
        for panel, time in zip(panels, (0, 1, 3), strict=False):
            self.draw_density(panel, data, time)
            panel.set_ylabel("orthogonal norm $q$" if time == 0 else "")
        panel, gaps = panels[-1], data["widths"]
        looks = {"Q": "$Q - MP^{-1}M^T - $diag$\\,q$", "M": "$M$", "minus": "printed sign of $q$"}
        looks["gram"] = "printed $MPM^T$"
        for (name, label), marker, colour in zip(
            looks.items(), "os^v", picture.COLOURS, strict=False
        ):
            panel.plot(gaps.width, gaps[name], marker, color=colour, label=label)
        p = np.array(self.widths, float)
        panel.plot(p, float(gaps.Q[-1]) * p[-1] / p, "k-", lw=1, label="$p^{-1}$")
        panel.plot(p, float(gaps.Q[0]) * (p / p[0]) ** -0.5, "k:", lw=1, label="$p^{-1/2}$ (bound)")
        panel.set(xscale="log", yscale="log", xlabel="width $p$", title="distance to the full ODE")
        panel.set(xticks=self.widths, xticklabels=[str(width) for width in self.widths])
        panel.xaxis.minorticks_off()
        return sl.plot.legend_below(figure, 7)

    def draw_density(self, panel: Axes, data: Data, time: int) -> None:
        """Contours of the density, and some particles."""
        density, points = data["density"].isel(time=time), data["particles"].isel(time=time)
        shade: Any = {"cmap": "Greys", "shading": "auto", "vmax": float(density.mass.max())}
        panel.pcolormesh(density.m, density.q, density.mass.T, rasterized=True, **shade)
        few = points.isel(particle=slice(150))
        panel.plot(few.M[:, 0], few.q, ".", color=picture.COLOURS[0], ms=4, label="particles")
        panel.set(xlim=(-0.8, 1.5), ylim=(0, 2), xlabel="overlap $m$")
        panel.set_title(f"density at $t/p = {float(density.time):g}$")
        panel.grid(visible=False)
