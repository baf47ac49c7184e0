"""Blocks of the population Hessian and gradient matrix in summary statistics (001 sec. 3 and 4).

Softmax regression (data law of ``gaussian_mixture``, scores x^a . Y, classes a = 0 .. k-1): a block
is E[D Y Y'] with D a polynomial in the softmax pi = softmax(x . Y) and the class. Integration by
parts in the noise of variance 1/precision turns the average of Y Y' into a matrix on the span of
means and weights plus a multiple of the identity: outliers and bulk of the population spectrum. The
two-layer network of ``xor`` has the same blocks to leading order in large precision, where they
live on mu and nu.

All blocks are those of the loss without ridge, which adds ``ridge`` times the identity to the
diagonal blocks of the Hessian.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr, softmax

from sgdlimits import _checks, gaussian
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory._inputs import vector

NODES = 2**14
"""Quadrature nodes per class: Gauss-Hermite up to four classes, Sobol beyond."""


class PopulationBlock(NamedTuple):
    """A d x d block, low_rank on the span of means and weights plus identity times I_d.

    ``low_rank`` is symmetric, 2k x 2k, in orthonormal coordinates: k of the span of the means, in
    which mean a is row a of the Cholesky factor L of ``means_gram``, then k of the orthogonal parts
    x_perp of the weights, in which x_perp^a is row a of the symmetric root of ``orthogonal`` = R.
    For means A and weights W in rows the block is therefore

        B low_rank B' + identity I_d,   B = [A' L^(-T), W_perp' R^(-1/2)],

    with a pseudoinverse where R is singular.
    """

    low_rank: np.ndarray
    identity: float


def softmax_hessian(
    overlaps: Any,
    orthogonal: Any,
    *,
    weights: Any,
    precision: Number,
    block: Any,
    means_gram: Any = None,
    nodes: WholeNumber = NODES,
) -> PopulationBlock:
    """Block bc of the population Hessian of softmax regression, ``block`` = (b, c), exactly.

        H_bc = -E[pi_b pi_c ((mu + (x^b + x^c - 2 <x>) / precision)^{(x)2} - 2 S)]
               - I_d E[pi_b pi_c] / precision,   b != c
        H_bb = E[pi_b ((mu + (x^b - <x>) / precision)^{(x)2} - S)]
               - E[pi_b^2 ((mu + 2 (x^b - <x>) / precision)^{(x)2} - 2 S)]
               + I_d E[pi_b (1 - pi_b)] / precision

    with mu the mean of the class of Y, u^{(x)2} = u u', <x> = sum_a pi_a x^a and
    S = (sum_a pi_a x^a x^a' - <x> <x>') / precision^2. Holds for any precision > 0 (``math.inf``
    allowed) and linearly independent means (orthonormal by default); class l has scores
    N(M_l, Q / precision) with Q = M G^(-1) M' + R. The rank of the first part is at most 2k. The
    averages over scores are quadratures with ``nodes`` nodes.

    Source: 001 Lemmas 3.1 and 3.2; the sign for b != c and the brackets corrected.

    >>> start = softmax_hessian(
    ...     np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], precision=2.0, block=(0, 1)
    ... )
    >>> (start.low_rank.diagonal() + 0).round(6).tolist(), round(start.identity, 6)  # pi = 1/2
    ([-0.125, -0.125, 0.0, 0.0], -0.125)
    """
    law = _law(overlaps, orthogonal, weights, means_gram, precision, nodes)
    b, c = _classes("block", block, len(law.weights))
    terms = [(-p, _tilted(law, own, b, c)) for own, p in enumerate(law.weights)]
    if b == c:
        terms += [(p, _tilted(law, own, b)) for own, p in enumerate(law.weights)]
    return _sum(terms)


def softmax_gradient(
    overlaps: Any,
    orthogonal: Any,
    *,
    weights: Any,
    precision: Number,
    block: Any,
    means_gram: Any = None,
    nodes: WholeNumber = NODES,
) -> PopulationBlock:
    """Block bc of E[grad L grad L'] of softmax regression, ``block`` = (b, c), exactly.

        G_bc = delta_bc p_b T_b - p_c T_c(b) - p_b T_b(c) + sum_l p_l T_l(b, c)

        T_l       = mu_l^{(x)2} + I_d / precision
        T_l(b)    = E_l[pi_b ((mu_l + (x^b - <x>) / precision)^{(x)2} - S + I_d / precision)]
        T_l(b, c) = E_l[pi_b pi_c ((mu_l + (x^b + x^c - 2 <x>) / precision)^{(x)2}
                                   - 2 S + I_d / precision)]

    with E_l the average over class l; notation and assumptions of ``softmax_hessian``.

    Source: 001 Lemma 3.3; the sign next to mu_l in the sum over l and those of the first two terms
    of C corrected.

    >>> start = softmax_gradient(
    ...     np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], precision=2.0, block=(0, 0)
    ... )
    >>> start.low_rank.diagonal().round(6).tolist(), round(start.identity, 6)  # (y - pi)^2 = 1/4
    ([0.125, 0.125, 0.0, 0.0], 0.125)
    """
    law = _law(overlaps, orthogonal, weights, means_gram, precision, nodes)
    p = law.weights
    b, c = _classes("block", block, len(p))
    terms = [(-p[c], _tilted(law, c, b)), (-p[b], _tilted(law, b, c))]
    terms += [(weight, _tilted(law, own, b, c)) for own, weight in enumerate(p)]
    if b == c:
        terms.append((p[b], _tilted(law, b)))
    return _sum(terms)


def xor_hessian(
    readout: Any,
    mu_overlaps: Any,
    nu_overlaps: Any,
    orthogonal: Any,
    *,
    precision: Number,
    neuron: WholeNumber,
) -> np.ndarray:
    """Block W_i W_i of the population Hessian on (mu, nu), for large precision and i = ``neuron``.

        (v_i^2 / 4) sum over theta = +-mu, +-nu of
            sigmoid'(v . relu(m^theta)) F(sqrt(precision / |W_i|^2) m_i^theta) theta theta'

    with F the normal distribution function, m^(-theta) = -m^theta and
    |W_i|^2 = (m_i^mu)^2 + (m_i^nu)^2 + R_ii, which must not be 0. A 2 x 2 diagonal matrix;
    the d x d block has no other entries to this order.

    The error in operator norm is O(1/precision) where no overlap of *any* neuron is as small as
    |W_j| precision^(-1/2), and O(precision^(-1/2)) otherwise. The paper's bound only asks for the
    overlaps of neuron i; but relu(W_j . Y) of another neuron at m_j^theta = 0 has the mean
    |W_j| / sqrt(2 pi precision), which the sigmoid sees.

    Source: 001 Lemma 4.4, (4.11).

    >>> h = xor_hessian([1.0], [0.0], [0.0], [[1.0]], precision=100.0, neuron=0)
    >>> h.diagonal().tolist()  # sigmoid' = 1/4, F = 1/2
    [0.0625, 0.0625]
    """
    v, fields = _xor_state(readout, mu_overlaps, nu_overlaps)
    score = np.maximum(fields, 0) @ v
    curvature = expit(score) * expit(-score)
    return _first_layer(v, fields, orthogonal, precision, neuron, curvature)


def xor_gradient(
    readout: Any,
    mu_overlaps: Any,
    nu_overlaps: Any,
    orthogonal: Any,
    *,
    precision: Number,
    neuron: WholeNumber,
) -> np.ndarray:
    """Block W_i W_i of E[grad L grad L'] on (mu, nu), for large precision and i = ``neuron``.

        (v_i^2 / 4) sum over theta = +-mu, +-nu of
            (y_theta - sigmoid(v . relu(m^theta)))^2 F(sqrt(precision / |W_i|^2) m_i^theta)
            theta theta'

    with y = 1 at +-mu and 0 at +-nu; notation, assumptions and error of ``xor_hessian``.

    Source: 001 Lemma 4.5, (4.17) and (4.18).

    >>> g = xor_gradient([1.0], [0.0], [0.0], [[1.0]], precision=100.0, neuron=0)
    >>> g.diagonal().tolist()  # (y - 1/2)^2 = 1/4, F = 1/2
    [0.0625, 0.0625]
    """
    v, fields = _xor_state(readout, mu_overlaps, nu_overlaps)
    return _first_layer(v, fields, orthogonal, precision, neuron, _residual(v, fields) ** 2)


def xor_readout_hessian(readout: Any, mu_overlaps: Any, nu_overlaps: Any) -> np.ndarray:
    """Block vv of the population Hessian of the two-layer network, K x K, for large precision.

        (1/4) sum over theta = +-mu, +-nu of sigmoid'(v . relu(m^theta)) relu(m^theta)^{(x)2}

    The error in operator norm is O(1/precision) where no overlap is as small as
    |W_i| precision^(-1/2), and O(precision^(-1/2)) otherwise.

    Source: 001 Lemma 4.4, (4.10).

    >>> xor_readout_hessian([0.0], [2.0], [0.0]).tolist()  # (1/4) (1/4) 2^2
    [[0.25]]
    """
    v, fields = _xor_state(readout, mu_overlaps, nu_overlaps)
    active = np.maximum(fields, 0)
    score = active @ v
    return (active.T * (expit(score) * expit(-score))) @ active / 4


def xor_readout_gradient(readout: Any, mu_overlaps: Any, nu_overlaps: Any) -> np.ndarray:
    """Block vv of E[grad L grad L'] of the two-layer network, K x K, for large precision.

        (1/4) sum over theta = +-mu, +-nu of
            (y_theta - sigmoid(v . relu(m^theta)))^2 relu(m^theta)^{(x)2}

    with y = 1 at +-mu and 0 at +-nu; the error is that of ``xor_readout_hessian``.

    Source: 001 Lemma 4.5, (4.16).

    >>> xor_readout_gradient([0.0], [2.0], [0.0]).tolist()  # (1/4) (1/4) 2^2
    [[0.25]]
    """
    v, fields = _xor_state(readout, mu_overlaps, nu_overlaps)
    active = np.maximum(fields, 0)
    return (active.T * _residual(v, fields) ** 2) @ active / 4


class _Law(NamedTuple):
    """The softmax at quadrature nodes of each class, and vectors in coordinates of the span."""

    softmax: np.ndarray  # (k classes of the data, q, k)
    nodes: np.ndarray  # (q,): weights of the rule
    weights: np.ndarray  # (k,): probability of each class
    means: np.ndarray  # (k, 2k)
    directions: np.ndarray  # (k, 2k): x^a up to a vector common to all, which no formula sees
    variance: float  # of the noise, 1/precision


def _law(
    overlaps: Any, orthogonal: Any, weights: Any, means_gram: Any, precision: Number, nodes: Any
) -> _Law:
    m = _checks.array("overlaps", overlaps, None)
    k = len(m) if m.ndim else 0
    if k < 2 or m.shape != (k, k):
        raise _checks.InputError(
            f"overlaps has shape {m.shape}, which is not allowed: "
            "overlaps must have shape (k, k) with k >= 2"
        )
    r = _checks.covariance("orthogonal", orthogonal, k)
    p = _checks.probabilities("weights", weights, k)
    g = np.eye(k) if means_gram is None else _checks.gram("means_gram", means_gram, k)
    variance = 1 / _checks.positive("precision", precision, allow_infinite=True)
    count = _checks.integer("nodes", nodes, least=2)

    factor = np.linalg.cholesky(g)
    values, vectors = np.linalg.eigh(r)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    x = np.hstack([np.linalg.solve(factor, m.T).T, root])
    x -= x.mean(axis=0)  # one Gaussian variable less: the softmax sees differences of scores only
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    dim = k - 1
    rule = (
        gaussian.gauss_hermite(dim, gaussian.hermite_order(dim, count))
        if dim <= 3
        else gaussian.sobol(dim, count)
    )
    noise = np.sqrt(variance) * rule.nodes @ (left * sizes)[:, :dim].T
    means = np.hstack([factor, np.zeros((k, k))])
    return _Law(softmax(m.T[:, None] + noise, axis=-1), rule.weights, p, means, x, variance)


def _tilted(law: _Law, own: int, *labels: int) -> PopulationBlock:
    """E[f Y Y'] in the class ``own``, for f the product of pi over J labels: by parts, twice.

    grad f = f t with t = sum of x over labels - J <x>, and grad t = -J (<x x'> - <x> <x>').
    """
    pi, x, count = law.softmax[own], law.directions, len(labels)
    chosen = list(labels)
    f = law.nodes * np.prod(pi[:, chosen], axis=1)
    shift = (np.eye(len(x))[chosen].sum(axis=0) - count * pi) @ x
    y = law.means[own] + law.variance * shift
    spread = x.T @ (np.diag(f @ pi) - (pi.T * f) @ pi) @ x
    return PopulationBlock(
        (y.T * f) @ y - count * law.variance**2 * spread, law.variance * float(f.sum())
    )


def _sum(terms: Iterable[tuple[float, PopulationBlock]]) -> PopulationBlock:
    listed = list(terms)
    total = np.sum([factor * block.low_rank for factor, block in listed], axis=0)
    identity = sum(float(factor) * block.identity for factor, block in listed)
    return PopulationBlock((total + total.T) / 2, identity)


def _classes(name: str, value: Any, k: int) -> tuple[int, int]:
    pair = list(value) if isinstance(value, Iterable) else []
    whole = all(isinstance(a, int | np.integer) and not isinstance(a, bool) for a in pair)
    if len(pair) != 2 or not whole or not all(0 <= a < k for a in pair):
        raise _checks.InputError(
            f"{name}={_checks.shown(value)} is not allowed: "
            f"{name} must be two classes (b, c) in 0..{k - 1}"
        )
    return int(pair[0]), int(pair[1])


def _xor_state(readout: Any, mu_overlaps: Any, nu_overlaps: Any) -> tuple[np.ndarray, np.ndarray]:
    """The readout, and the overlaps (4, K) with mu, -mu, nu, -nu."""
    v = vector("readout", readout)
    mu = _checks.array("mu_overlaps", mu_overlaps, v.shape)
    nu = _checks.array("nu_overlaps", nu_overlaps, v.shape)
    return v, np.array([mu, -mu, nu, -nu])


def _residual(v: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Label minus prediction at mu, -mu, nu, -nu: without cancellation at confident predictions."""
    score = np.maximum(fields, 0) @ v
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    return signs * expit(-signs * score)


def _first_layer(
    v: np.ndarray,
    fields: np.ndarray,
    orthogonal: Any,
    precision: Number,
    neuron: WholeNumber,
    factor: np.ndarray,
) -> np.ndarray:
    r = _checks.covariance("orthogonal", orthogonal, len(v))
    scale = np.sqrt(_checks.positive("precision", precision, allow_infinite=True))
    i = _checks.integer("neuron", neuron, least=0)
    squares = fields[0] ** 2 + fields[2] ** 2 + np.diag(r)
    if i >= len(v) or not squares[i] > 0:
        raise _checks.InputError(
            f"neuron={neuron!r} is not allowed: "
            f"neuron must be an index in 0..{len(v) - 1} of weights other than 0"
        )
    m = fields[:, i]
    # an overlap of exactly 0 is half on, at infinite precision too
    argument = np.multiply(scale / np.sqrt(squares[i]), m, out=np.zeros(4), where=m != 0)
    on = v[i] ** 2 / 4 * factor * ndtr(argument)
    return np.diag([on[0] + on[1], on[2] + on[3]])
