"""XOR: the fluctuations of SGD about a point of two rings have rank two.

Noise moves the rings by O(1/√λ), so that runs at finite λ are shown about their mean. The caption
of Fig. 11 calls the rings independent; by Prop. 5.1 the correlation of their radii is -1/3.
"""

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """A point of two rings, with little noise in the data and with none."""

    precisions: tuple[float, ...] = setting((100.0, 1000.0), "precisions λ of the data", least=10)
    ridge: float = setting(0.1, "ridge α, below 1/8", above=0, most=0.11)
    angles: tuple[float, ...] = setting(
        (30.0, 45.0), "angles of the point on the rings of μ and of ν, in degrees", above=0, most=89
    )
    dim: int = setting(250, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=128)
    time: float = setting(20.0, "duration, in units of dim samples", least=2)


def compute(p: Parameters, seed: int) -> Data:
    """√N (u - u*) of runs that start at the point u* of the rings at λ = ∞, and its SDE."""
    a = point(p)
    start = {"v": a, "M": np.diag(a) @ np.repeat(np.eye(2), 2, axis=0), "R": np.zeros((4, 4))}
    v, m = [], []
    precisions = [*p.precisions, math.inf]
    for number, precision in enumerate(precisions):
        task = sl.tasks.XorMixture(width=4, precision=precision, ridge=p.ridge)
        runs = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, init=start, points=2, seed=seed + number
        )
        v.append(runs.v.values[:, -1] - a)
        m.append(runs.M.values[:, -1].sum(axis=2) - a)
    sde: Any = sl.effective_dynamics(task).rescaled(start)
    names = [f"v[{i}]" for i in range(4)] + ["M[0,mu]", "M[1,mu]", "M[2,nu]", "M[3,nu]"]
    chosen = [sde.coordinates.index(name) for name in names]
    covariance = sde.covariance(p.time)[np.ix_(chosen, chosen)]
    over = ("precision", "run", "neuron")
    ends = {
        "v": (over, math.sqrt(p.dim) * np.array(v)),
        "m": (over, math.sqrt(p.dim) * np.array(m)),
    }
    return {
        "ends": xr.Dataset(ends, {"precision": precisions}),
        "sde": xr.Dataset({"covariance": (("statistic", "statistic_"), covariance)}),
    }


def point(p: Parameters) -> np.ndarray:
    """The point (a₁, a₂) of the ring of μ and (a₃, a₄) of the ring of ν."""
    size = math.sqrt(sl.theory.xor.ring_radius_squared(p.ridge))
    mu, nu = math.radians(p.angles[0]), math.radians(p.angles[-1])
    return size * np.array([math.cos(mu), math.sin(mu), -math.cos(nu), -math.sin(nu)])


def covariance(p: Parameters, sign: float = -1.0) -> np.ndarray:
    """Of √N (v - a, m - a) at the end: noise Σ and drift -ρ along each radius.

    A radius is an eigenvector of the drift of Prop. 5.1, ρ = 2 C (α - 4 α²); as printed, +ρ.
    """
    square = sl.theory.xor.ring_radius_squared(p.ridge)
    rate = sign * 2 * square * (p.ridge - 4 * p.ridge**2)
    noise = sl.theory.xor.rings_diffusion(point(p), ridge=p.ridge)
    return noise * math.expm1(2 * rate * p.time) / (2 * rate)


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Variance with the sign that restores, rings that are anticorrelated, and rank two."""
    ends = data["ends"].sel(precision=math.inf)
    v, m = ends.v.values, ends.m.values
    expected = covariance(p)
    spectrum = np.linalg.eigvalsh(np.cov(np.concatenate([v, m], axis=1).T))
    return [
        checks.variance(
            "variance of √N(m₁^μ - a₁), λ = ∞",
            m[:, 0],
            expected[4, 4],
            printed=float(covariance(p, sign=1.0)[4, 4]),
            note="drift across the rings in Prop. 5.1",
        ),
        *(
            checks.mean(
                f"covariance of √N m₁^μ and √N m{'₁₂₃₄'[j]}^{'μμνν'[j]}, λ = ∞",
                m[:, 0] * m[:, j],
                expected[4, 4 + j],
            )
            for j in (1, 2)
        ),
        checks.exact(
            "third eigenvalue of the covariance / second", spectrum[-3] / spectrum[-2], 0.0, 1e-9
        ),
        checks.exact(
            "largest gap, covariance of engine and closed form",
            np.max(np.abs(data["sde"].covariance.values - expected)),
            0.0,
            1e-9,
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Two neurons of one ring above, of two rings below; columns for the precisions."""
    ends = data["ends"].m
    figure, panels = picture.panels(
        2, len(ends.precision), width=3.1, height=2.7, sharex=True, sharey="row"
    )
    around = np.linspace(0, 2 * np.pi, 100)
    for column, precision in zip(panels.T, ends.precision.values, strict=True):
        m = ends.sel(precision=precision).values
        m = m - m.mean(axis=0)
        for panel, other in zip(column, (1, 2), strict=True):
            panel.plot(
                *m[:, [0, other]].T, ".", color=sl.plot.style.SIMULATION, alpha=0.35, label="SGD"
            )
            pair = [4, 4 + other]
            values, axes = np.linalg.eigh(covariance(p)[np.ix_(pair, pair)])
            radii = 2 * np.sqrt(np.maximum(values, 0))[:, None]
            panel.plot(
                *axes @ (radii * [np.cos(around), np.sin(around)]),
                "k",
                lw=1.6,
                label="2 s.d. of the SDE at λ = ∞",
            )
        word = f"{precision:g}" if math.isfinite(precision) else "∞"
        column[0].set_title(f"λ = {word}")
        column[1].set_xlabel(r"$\sqrt{N}\,(m_1^\mu-\overline{m}_1^\mu)$")
    panels[0, 0].set_ylabel(r"$\sqrt{N}\,(m_2^\mu-\overline{m}_2^\mu)$")
    panels[1, 0].set_ylabel(r"$\sqrt{N}\,(m_3^\nu-\overline{m}_3^\nu)$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 11",
    claim="XOR: near two rings √N(v - a, m - a) is a stable diffusion of rank two.",
    parameters=Parameters,
    tiny={"precisions": (1000.0,), "runs": 128},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)
