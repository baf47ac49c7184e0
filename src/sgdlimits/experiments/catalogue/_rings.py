"""What the experiments on rings of rest points share.

Fluctuations about a point a of the rings are those of √N(v − a, m − a), in runs that start there.
Noise Σ acts along the radii, each an eigenvector of the drift, with the same eigenvalue −ρ:

    covariance(t) = Σ (1 − exp(−2ρt)) / 2ρ,   ρ = 2C(α − kα²)

where k is the number of classes. As printed, the rate is +ρ.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
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


def radial_variance(rings: Binary | Xor, time: Any, classes: int, sign: float = -1.0) -> np.ndarray:
    """What multiplies Σ at some time or times; with ``sign=1.0`` as printed."""
    rate = sign * 2 * rings.radius_squared * (rings.ridge - classes * rings.ridge**2)
    return linear_variance(time, rate)


def engine_covariance(task: Any, start: Any, time: float, names: list[str]) -> xr.Dataset:
    """The covariance of statistics at some time, by the engine."""
    sde = sl.effective_dynamics(task).rescaled(start)
    chosen = [sde.coordinates.index(name) for name in names]
    covariance = sde.covariance(time)[np.ix_(chosen, chosen)]
    return xr.Dataset({"covariance": (("statistic", "statistic_"), covariance)})


def common_checks(ends: xr.Dataset, rank: int, engine: xr.Dataset, closed: Any) -> list[Check]:
    """Whether the covariance of v and m over runs has this rank; the engine's, its closed form."""
    samples = [ends[name].transpose("neuron", "run").values for name in ("v", "m")]
    spectrum = np.linalg.eigvalsh(np.cov(np.concatenate(samples)))[::-1]
    name = f"{ORDINALS[rank]} eigenvalue of the covariance / {ORDINALS[rank - 1]}"
    gap = np.max(np.abs(engine.covariance.values - closed))
    return [
        checks.exact(name, spectrum[rank] / spectrum[rank - 1], 0.0, 1e-9),
        checks.exact("largest gap, covariance of engine and closed form", gap, 0.0, 1e-9),
    ]
