"""Which tokens meet, and when: phases of self-attention with random matrices."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY, FLOW, TOKENS = sl.theory.attention, sl.lectures.attention, sl.lectures.tokens
CLOSE = 1e-3  # pairs with 1 − ⟨x_i, x_j⟩ below it have met
COLD = 60.0  # the largest β
PANELS = dict(zip(TOKENS.ENSEMBLES, ("", "(A) ", "(B) ", "(C) ", "(D) "), strict=True))


@experiment(
    paper="J24",
    figure="Fig. 2.2",
    claim="Tokens meet in one point below a sharp temperature; above, they wait or stay apart.",
    tiny={"particles": 6, "dim": 24, "grid": 8, "horizon": 30.0},
    quick={"grid": 16},
    cost=2.0,
)
class AttentionPhases(Settings):
    """Particles, dimension, grid of inverse temperatures and times."""

    particles: int = setting(32, "particles n", least=3)
    dim: int = setting(128, "dimension d, at least n", least=3)
    grid: int = setting(64, "values of β, and as many times", least=6)
    horizon: float = setting(100.0, "the last time", least=20.0)

    def compute(self, seed: int) -> Data:
        """Shares of pairs that have met, for each law of matrices; from orthonormal particles."""
        times, betas = self.axes()
        points = TOKENS.uniform(self.particles, self.dim, seed=seed)[0]

        def one(ensemble: str) -> xr.Dataset:
            Q, K, V = TOKENS.matrices(ensemble, self.dim, seed=seed)
            return FLOW.phases(
                points, times, inverse_temperature=betas, query=Q, key=K, value=V, close=CLOSE
            )

        aligned = np.eye(self.particles, self.dim)
        orthonormal = FLOW.phases(aligned, times, inverse_temperature=betas, close=CLOSE)
        theory = [
            np.maximum(1 - THEORY.equal_products(times, self.particles, beta), 1e-16)
            for beta in betas
        ]
        orthonormal["gap"] = (orthonormal.together.dims, np.array(theory))
        return {
            "phases": sl.results.over("ensemble", list(TOKENS.ENSEMBLES), one),
            "orthonormal": orthonormal,
        }

    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and inverse temperatures, even in the logarithm."""
        return np.geomspace(1.0, self.horizon, self.grid), np.geomspace(0.5, COLD, self.grid)

    def check(self, data: Data) -> list[Check]:
        """The line of orthonormal particles in closed form; who has met at the ends of the grid."""
        known, share = data["orthonormal"], data["phases"].together
        wrong = (known.together > 0.5) != (known.gap <= CLOSE)
        clear = abs(np.log(known.gap / CLOSE)) > 1e-3  # of the line, which the solver may miss
        name = (
            "V = QᵀK = I, orthonormal particles: points of the grid on the wrong side of the line"
        )
        results = [checks.exact(name, int((wrong & clear).sum()), 0)]
        ends = share.isel(time=-1)
        for ensemble in TOKENS.ENSEMBLES:
            warm = ends.sel(ensemble=ensemble).isel(inverse_temperature=0)
            name = f"{ensemble}: share of pairs that have met at β = 0.5, t = {self.horizon:g}"
            results.append(checks.exact(name, warm, 1.0))
        cold = ends.sel(ensemble="identity").isel(inverse_temperature=-1)
        name = f"identity: share of pairs that have met at β = {COLD:g}, t = {self.horizon:g}"
        results.append(checks.exact(name, cold, 0.0))
        error = float(max(known.norm_error.max(), data["phases"].norm_error.max()))
        name = "largest distance of a norm from 1, before it is set to 1"
        return [*results, checks.exact(name, error, 0.0, 1e-3)]

    def draw(self, data: Data) -> Figure:
        """One map for each law, and the line of theory."""
        figure, panels = sl.plot.panels(1, 5, width=2.75, height=3.4)
        for panel, ensemble in zip(np.ravel(panels), TOKENS.ENSEMBLES, strict=True):
            share = data["phases"].together.sel(ensemble=ensemble)
            mesh = panel.pcolormesh(
                share.time, share.inverse_temperature, share, vmin=0, vmax=1, cmap="viridis",
                rasterized=True,
            )  # fmt: skip
            panel.grid(visible=False)
            panel.set(xscale="log", yscale="log", xlabel="time $t$")
            panel.set_title(PANELS[ensemble] + TOKENS.ENSEMBLES[ensemble], fontsize=11)
            if ensemble == "identity":
                self.line(panel, data["orthonormal"])
        np.ravel(panels)[0].set_ylabel(r"inverse temperature $\beta$")
        met = rf"pairs with $\langle x_i,x_j\rangle\geq {1 - CLOSE:g}$"
        figure.colorbar(mesh, ax=list(np.ravel(panels)), label=met, pad=0.015)
        return figure

    def line(self, panel: Axes, known: xr.Dataset) -> None:
        """Where orthonormal particles meet."""
        depths = -np.log(known.gap.values / CLOSE)  # increasing
        met = depths[:, -1] > 0
        reached = [np.interp(0.0, depth, np.log(known.time.values)) for depth in depths[met]]
        panel.plot(np.exp(reached), known.inverse_temperature.values[met], "w--", lw=1.6)
        panel.text(
            0.06, 0.9, "dashed: theory,\northonormal start", color="white", fontsize=9,
            transform=panel.transAxes, va="top",
        )  # fmt: skip
