"""Expectations over Gaussians: quadrature with error estimates, and closed forms.

Keys such as CS09 are those of ``docs/references.bib``.
"""

from sgdlimits.gaussian.arccosine import relu_gradient, relu_product, step_product, step_relu
from sgdlimits.gaussian.erf import erf_curvature, erf_gradient, erf_product, erf_slopes
from sgdlimits.gaussian.lines import crossings, legendre, padded, piecewise
from sgdlimits.gaussian.orthants import (
    Block,
    OrthantRule,
    Pair,
    Split,
    Whole,
    orthant_nodes,
    orthant_rule,
)
from sgdlimits.gaussian.quadrature import (
    Estimate,
    Rule,
    expectation,
    gauss_hermite,
    hermite_line,
    hermite_order,
    mixture_expectation,
    product,
    sobol,
)
from sgdlimits.gaussian.sparse import sparse_count, sparse_grid
from sgdlimits.gaussian.tilted import Tilted, tilted, tilted_fourth, tilted_second
from sgdlimits.gaussian.truncated import truncated, truncated_table, truncated_tables
from sgdlimits.gaussian.wick import (
    moment,
    quadratic_mean,
    quadratic_second,
    quadratic_square_mean,
    quadratic_square_second,
)

__all__ = [
    "Block",
    "Estimate",
    "OrthantRule",
    "Pair",
    "Rule",
    "Split",
    "Tilted",
    "Whole",
    "crossings",
    "erf_curvature",
    "erf_gradient",
    "erf_product",
    "erf_slopes",
    "expectation",
    "gauss_hermite",
    "hermite_line",
    "hermite_order",
    "legendre",
    "mixture_expectation",
    "moment",
    "orthant_nodes",
    "orthant_rule",
    "padded",
    "piecewise",
    "product",
    "quadratic_mean",
    "quadratic_second",
    "quadratic_square_mean",
    "quadratic_square_second",
    "relu_gradient",
    "relu_product",
    "sobol",
    "sparse_count",
    "sparse_grid",
    "step_product",
    "step_relu",
    "tilted",
    "tilted_fourth",
    "tilted_second",
    "truncated",
    "truncated_table",
    "truncated_tables",
]
