"""Two classes: the fluctuations of SGD about a point of the quarter ring have rank one."""

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """A point of the ring, with little noise in the data and with none."""

    precision: float = setting(100.0, "precision λ of the data", least=10)
    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    angle: float = setting(30.0, "angle of the point on the ring, in degrees", above=0, most=89)
    dim: int = setting(250, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=64)
    time: float = setting(20.0, "duration, in units of dim samples", least=2)


def compute(p: Parameters, seed: int) -> Data:
    """√N (u - u*) of runs that start at the point u* of the ring, and its SDE without noise."""
    places = {"noisy": noisy_point(p), "noiseless": (*(2 * [point(p)]), np.zeros((2, 2)))}
    data = {}
    for number, (kind, (v, m, orthogonal)) in enumerate(places.items()):
        precision = p.precision if kind == "noisy" else math.inf
        task = sl.tasks.BinaryMixture(precision=precision, ridge=p.ridge)
        start = {"v": v, "M": m[:, None], "R": orthogonal}
        runs = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, init=start, points=41, seed=seed + number
        )
        root = math.sqrt(p.dim)
        data[kind] = xr.Dataset({"v": root * (runs.v - v), "m": root * (runs.M[..., 0] - m)})
    sde: Any = sl.effective_dynamics(task).rescaled(start)  # the last: without noise
    covariance = sde.covariance(p.time)[:4, :4]  # of v and M
    data["sde"] = xr.Dataset({"covariance": (("statistic", "statistic_"), covariance)})
    return data


def point(p: Parameters) -> np.ndarray:
    """The point (a₁, a₂) of the ring without noise."""
    size = math.sqrt(sl.theory.binary_mixture.ring_radius_squared(p.ridge))
    return size * direction(p)


def direction(p: Parameters) -> np.ndarray:
    """The unit vector towards the point."""
    angle = math.radians(p.angle)
    return np.array([math.cos(angle), math.sin(angle)])


def noisy_point(p: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Readout, overlaps and R at the point of the ring with noise, by Prop. 4.1."""
    e = direction(p)

    def velocity(x: np.ndarray) -> list[float]:
        found = sl.theory.binary_mixture.drift(
            x[0] * e, x[1] * e, x[2] * np.outer(e, e), precision=p.precision, ridge=p.ridge
        )
        return [e @ found.readout, e @ found.overlaps, e @ found.orthogonal @ e]

    square = sl.theory.binary_mixture.ring_radius_squared(p.ridge)
    guess = [math.sqrt(square), math.sqrt(square), square / p.precision]
    v, m, r = optimize.root(velocity, guess).x
    return v * e, m * e, r * np.outer(e, e)


def variance(p: Parameters, time: np.ndarray | float, sign: float = -1.0) -> np.ndarray:
    """Of √N (m₁ - a₁): noise α² a₁² and drift -ρ along the radius.

    (a, a) is an eigenvector of both matrices of Prop. 4.3, ρ = 2 C (α - 2 α²); as printed, +ρ.
    """
    rate = sign * 2 * (point(p) @ point(p)) * (p.ridge - 2 * p.ridge**2)
    return np.asarray((p.ridge * point(p)[0]) ** 2 * np.expm1(2 * rate * time) / (2 * rate))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Variance with the sign that restores, covariance along the radius, and rank one."""
    a, expected = point(p), float(variance(p, p.time))
    ends = {kind: data[kind].isel(time=-1) for kind in ("noisy", "noiseless")}
    m = ends["noiseless"].m.values
    both = np.concatenate([ends["noiseless"].v.values, m], axis=1)
    spectrum = np.linalg.eigvalsh(np.cov(both.T))
    twice = np.concatenate([a, a])
    closed = np.outer(twice, twice) * expected / a[0] ** 2
    return [
        checks.variance(
            "variance of √N(m₁ - a₁), λ = ∞",
            m[:, 0],
            expected,
            printed=float(variance(p, p.time, sign=1.0)),
            note="drift across the ring in Prop. 4.3",
        ),
        checks.mean("covariance of √N m₁ and √N m₂, λ = ∞", m[:, 0] * m[:, 1], closed[0, 1]),
        checks.variance(
            f"variance of √N(m₁ - a₁), λ = {p.precision:g}", ends["noisy"].m.values[:, 0], expected
        ),
        checks.exact(
            "second eigenvalue of the covariance / first", spectrum[-2] / spectrum[-1], 0.0, 1e-9
        ),
        checks.exact(
            "largest gap, covariance of engine and closed form",
            np.max(np.abs(data["sde"].covariance.values - closed)),
            0.0,
            1e-9,
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """√N(m₁ - a₁) over time, and the planes of overlaps and of readouts."""
    figure, panels = picture.panels(1, 3, width=3.6, height=3.3)
    (left, *planes), runs = panels[0], data["noisy"]
    blue = sl.plot.style.SIMULATION
    left.plot(runs.time, runs.m[:25, :, 0].T, color=blue, alpha=0.4, lw=0.8)
    spread = 2 * np.sqrt(variance(p, runs.time.values))
    left.plot(runs.time, spread, "k", runs.time, -spread, "k", lw=1.6)
    left.set(xlabel=sl.plot.style.TIME_LABEL, ylabel=r"$\sqrt{N}\,(m_1-a_1)$")
    radius = np.outer(direction(p) / direction(p)[0], [-spread[-1], spread[-1]])
    for panel, name in zip(planes, ("m", "v"), strict=True):
        ends = runs[name].isel(time=-1).values.T
        panel.plot(*ends, ".", color=blue, alpha=0.4, label=f"SGD, λ = {p.precision:g}")
        panel.plot(*radius, "k", lw=1.6, label="± 2 s.d. of the SDE at λ = ∞")
        panel.set(aspect="equal", title=f"$t$ = {p.time:g}")
        panel.set_xlabel(rf"$\sqrt{{N}}\,({name}_1-a_1)$")
        panel.set_ylabel(rf"$\sqrt{{N}}\,({name}_2-a_2)$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 8",
    claim="Binary mixture: near a quarter ring √N(v - a, m - a) is a stable diffusion of rank one.",
    parameters=Parameters,
    tiny={"runs": 128, "time": 10.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)
