"""Gaussian expectations over the fields of a teacher and a student, in the plane."""

import math
from collections.abc import Callable

import numpy as np

from sgdlimits.theory.hermite.line import Integral, Line, density, integral, nodes_of, root_density

Integrand = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

STEP = 0.5  # width of a panel of the noise between both fields


def on_the_diagonal(first: Line, second: Line, sign: float) -> Integral:
    """E[f(z) g(±z)]."""
    x, kronrod, gauss = nodes_of(np.unique(np.concatenate([first.edges, sign * second.edges])))
    root = root_density(x)
    values = first.function(x) * root * second.function(sign * x) * root
    return integral(values, kronrod, gauss)


def over_the_plane(first: Line, second: Line, m: float, integrand: Integrand) -> Integral:
    """E integrand(s₀, f(s₀), ξ, g(s)) for fields s₀ and s = m s₀ + σξ with correlation m.

    Panels of s₀ are those of f and follow the breaks of g where the noise between both fields is
    small; panels of the noise are cut where s is at a break of g, for every s₀.
    """
    sigma = math.sqrt((1 - m) * (1 + m))
    outer, kronrod, gauss = nodes_of(_outer_edges(first, second, m, sigma))
    reach = max(9.0, second.reach)
    step = min(STEP, _finest(second) / max(sigma, 0.05))
    grid = np.linspace(-reach, reach, 1 + math.ceil(2 * reach / step))
    cuts = np.clip((second.breaks - m * outer[:, None]) / sigma, -reach, reach)
    edges = np.broadcast_to(grid, (len(outer), len(grid)))
    noise, inner, check = nodes_of(np.sort(np.concatenate([edges, cuts], axis=1), axis=1))
    column = outer[:, None]
    fields = second.function(m * column + sigma * noise)
    values = integrand(column, first.function(column), noise, fields) * density(noise)
    over_noise = integral(values, inner, check, 1)
    whole = integral(over_noise.value * density(outer), kronrod, gauss)
    return Integral(whole.value, whole.error + over_noise.error * density(outer) @ kronrod)


def _outer_edges(first: Line, second: Line, m: float, sigma: float) -> np.ndarray:
    inside = first.coarse[np.abs(first.coarse) < first.reach]
    widths = np.array([0.0, 0.5, 1, 2, 4, 8]) * sigma
    offsets = np.concatenate([-widths, widths])
    images = (second.breaks[:, None] + offsets).ravel() / (m if abs(m) > 0.1 else math.inf)
    reach = first.reach
    edges = np.concatenate([[-reach, reach], inside, np.clip(images, -reach, reach)])
    return np.unique(edges)


def _finest(line: Line) -> float:
    return float(np.diff(line.coarse).min(initial=STEP)) if not len(line.breaks) else STEP
