"""Which quadrature rule suits a task."""

import math
from typing import Any

import equinox as eqx
import numpy as np

from sgdlimits import gaussian
from sgdlimits.tasks.multi_index import MultiIndexFamily

AFFINE_NOISE_ORDER = 5  # exact up to the ninth power of the noise, as in every squared loss
SMOOTH_NOISE_ORDER = 20  # for labels that depend on noise in other ways
HERMITE_DIMS, ORTHANT_DIMS = 3, 4  # beyond these a tensor product has too few nodes per variable


class Quadrature(eqx.Module):
    """A rule for the fields of a task.

    - "none": there is no noise to average over.
    - "hermite": the loss is smooth; a Gauss–Hermite grid.
    - "orthant": the loss has kinks where a field is zero; ``line`` is a one-dimensional rule that
      is spread over every orthant of the fields.
    - "sobol": kinks elsewhere, or many fields; scrambled Sobol nodes, a set for every component, so
      that their errors do not add up.

    Labels that depend on the component alone leave an integral over K fields, others one over the
    r anchor fields and K fields and over the label noise: another grid of nodes in ``noise``, or
    the last variable of the Sobol nodes.
    """

    kind: str = eqx.field(static=True)
    nodes: Any = None  # (sets, q, variables)
    weights: Any = None  # (q,)
    line: Any = None  # nodes and weights, (2, order)
    noise: Any = None  # nodes and weights of the label noise, (2, order)


def choose_quadrature(
    task: MultiIndexFamily, nodes: int, seed: int = 0, *, coarse: bool = False
) -> Quadrature:
    """The rule for a task, with about ``nodes`` nodes for each component.

    A ``coarse`` grid has half the order in every variable: the change is an estimate of the error.
    """
    K, r = task.width, len(task.anchors)
    known = task.labels is not None
    dim = K if known else K + r
    if known and math.isinf(task.precision) and not task.spike.any():
        return Quadrature("none")
    half = 2 if coarse else 1
    noise_order = AFFINE_NOISE_ORDER if task.affine_label_noise else SMOOTH_NOISE_ORDER
    noise = _line(1 if known else -(-noise_order // half))
    if task.kinks == "none" and dim <= HERMITE_DIMS:
        grid = gaussian.gauss_hermite(dim, -(-gaussian.hermite_order(dim, nodes) // half))
        return Quadrature("hermite", grid.nodes[None], grid.weights, noise=noise)
    kinks_in_fields_only = known or task.affine_label_noise
    if task.kinks == "zero" and dim <= ORTHANT_DIMS and kinks_in_fields_only:
        order = -(-gaussian.hermite_order(dim, nodes // 2**dim) // half)
        return Quadrature("orthant", line=_line(order), noise=noise)
    k = len(task.weights)
    variables = dim if known else dim + 1
    mirrored = range(dim - K, dim) if task.kinks == "none" else ()
    rules = [gaussian.sobol(variables, nodes, seed * k + c, mirrored=mirrored) for c in range(k)]
    return Quadrature("sobol", np.stack([rule.nodes for rule in rules]), rules[0].weights)


def _line(order: int) -> np.ndarray:
    rule = gaussian.gauss_hermite(1, order)
    return np.stack([rule.nodes[:, 0], rule.weights])
