"""Nodes of the teacher's fields, and the labels there."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.gaussian import Rule, gauss_hermite, hermite_order, legendre, product, sobol
from sgdlimits.theory.mean_field.units import Unit

REACH = 7.0  # of the teacher's fields, in standard deviations: the rest has weight 3e-12
LIGHT = 1e-13  # nodes of less weight are left out
MANY = 4  # fields from which on nodes are random


class Targets(NamedTuple):
    """Expectations over a ~ N(0, P) as sums over nodes."""

    fields: Float[Array | np.ndarray, "q r"]  # a
    solved: Float[Array | np.ndarray, "q r"]  # P⁻¹a
    weights: Float[Array | np.ndarray, " q"]
    labels: Float[Array | np.ndarray, " q"]  # f*(a)
    inverse: Float[Array | np.ndarray, "r r"]  # P⁻¹


def targets_of(
    own: Unit, teacher: Unit, gram: np.ndarray, readout: np.ndarray, nodes: int, finer: int
) -> Targets:
    """The teacher's labels at ``finer`` times as many nodes along each field as ``nodes`` gives.

    Gauss–Hermite where all is smooth; else Gauss–Legendre on either side of zero, where the
    teacher's kinks are if P is diagonal; from four fields on scrambled Sobol nodes.
    """
    r = len(gram)
    order = finer * hermite_order(r, nodes)
    if r >= MANY:
        rule = sobol(r, finer * nodes)
    elif own.smooth and teacher.smooth:
        rule = gauss_hermite(r, order)
    else:
        rule = functools.reduce(product, [_half_lines(order)] * r)
    kept = rule.weights > LIGHT
    fields = rule.nodes[kept] @ np.linalg.cholesky(gram).T
    labels = np.asarray(teacher.function(jnp.asarray(fields))) @ readout / r
    inverse = np.linalg.inv(gram)
    return Targets(fields, fields @ inverse, rule.weights[kept], labels, inverse)


def _half_lines(order: int) -> Rule:
    nodes, weights = legendre(max(order // 2, 2))
    x = REACH * nodes
    bell = weights * np.exp(-(x**2) / 2)
    mass = np.concatenate([bell[::-1], bell])
    return Rule(np.concatenate([-x[::-1], x])[:, None], mass / mass.sum())
