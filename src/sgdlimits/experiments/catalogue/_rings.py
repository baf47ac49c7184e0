"""What the experiments on rings of rest points share.

Fluctuations about a point a of the rings are those of √N(v − a, m − a), in runs that start there.
Noise Σ acts along the radii, each an eigenvector of the drift, with the same eigenvalue −ρ:

    covariance(t) = Σ (1 − exp(−2ρt)) / 2ρ,   ρ = 2C(α − kα²)

where k is the number of classes. As printed, the rate is +ρ.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Figure
from sgdlimits.experiments.catalogue._binary import Binary
from sgdlimits.experiments.catalogue._xor import Xor
from sgdlimits.experiments.scalar_sde import linear_variance

ORDINALS = ("first", "second", "third")


def draw_end_points(
    ends: xr.Dataset, draw: Callable[[Axes, xr.Dataset], None], labels: tuple[str, str], **size: Any
) -> Figure:
    """A plane of two overlaps for each precision, side by side.

    Args:
        ends: over ``precision``.
        draw: end points and rest points of one precision.
        labels: of both axes.
        size: options of ``sgdlimits.plot.facets``.
    """

    def one(panel: Axes, part: xr.Dataset) -> None:
        draw(panel, part)
        panel.set(xlabel=labels[0], ylabel=labels[1], aspect="equal")
        panel.margins(0.1)

    row: Any = {"columns": ends.sizes["precision"], "width": 2.6, "title": "λ = {:g}"}
    return sl.plot.facets(ends, "precision", one, **row, **size)


def draw_rings(panel: Axes, radius: float, label: str, look: str = "k--", **options: Any) -> None:
    """Both quarter rings in the plane of two neurons, ± radius · (cos φ, sin φ)."""
    arc = radius * np.exp(1j * np.linspace(0, np.pi / 2, 60))
    for sign in (1, -1):
        panel.plot(sign * arc.real, sign * arc.imag, look, label=label, **options)


def radial_variance(rings: Binary | Xor, time: Any, classes: int, sign: float = -1.0) -> np.ndarray:
    """What multiplies Σ at some time or times; with ``sign=1.0`` as printed."""
    rate = sign * 2 * rings.radius_squared * (rings.ridge - classes * rings.ridge**2)
    return linear_variance(time, rate)


def engine_covariance(task: Any, start: State, time: float) -> xr.Dataset:
    """The covariance at some time of all v and of each neuron's overlap, by the engine."""
    own = [task.anchors[ring] for ring in np.abs(start["M"]).argmax(axis=1)]
    names = [f"v[{i}]" for i in range(len(own))] + [f"M[{i},{x}]" for i, x in enumerate(own)]
    sde = sl.effective_dynamics(task).rescaled(start)
    chosen = [sde.coordinates.index(name) for name in names]
    covariance = sde.covariance(time)[np.ix_(chosen, chosen)]
    return xr.Dataset({"covariance": (("statistic", "statistic_"), covariance)})


def deviations(runs: xr.Dataset, start: State, dim: int) -> xr.Dataset:
    """√N(v − a, m − a) of runs from a point a; each neuron overlaps with the mean of its ring."""
    v, m = (xr.DataArray(x, dims="neuron") for x in (start["v"], start["M"].sum(axis=1)))
    return math.sqrt(dim) * xr.Dataset({"v": runs.v - v, "m": runs.M.sum("anchor") - m})


def common_checks(
    ends: xr.Dataset,
    engine: xr.Dataset,
    closed: np.ndarray,
    printed: np.ndarray,
    rank: int,
    words: tuple[str, str],
) -> list[Check]:
    """The variance of m₁ and the rank of the covariance over runs; the engine's covariance.

    Args:
        ends: deviations of v and m at the end, without noise in the data.
        engine: a result of :func:`engine_covariance`.
        closed: covariance of all v and all m.
        printed: the same with the sign that is printed.
        rank: the number of rings.
        words: for m₁ − a₁, and for where the sign is printed.
    """
    size, first = len(closed) // 2, ends.m.isel(neuron=0)
    samples = [ends[name].transpose("neuron", "run").values for name in ("v", "m")]
    spectrum = np.linalg.eigvalsh(np.cov(np.concatenate(samples)))[::-1]
    name = f"{ORDINALS[rank]} eigenvalue of the covariance / {ORDINALS[rank - 1]}"
    gap = np.max(np.abs(engine.covariance.values - closed))
    return [
        checks.variance(
            f"variance of √N({words[0]}), λ = ∞",
            first,
            closed[size, size],
            printed=float(printed[size, size]),
            note=f"drift across the {words[1]}",
        ),
        checks.exact(name, spectrum[rank] / spectrum[rank - 1], 0.0, 1e-9),
        checks.exact("largest gap, covariance of engine and closed form", gap, 0.0, 1e-9),
    ]
