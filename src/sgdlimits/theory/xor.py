"""Two-layer ReLU network on the XOR mixture at infinite precision (000 sec. 5 and 9).

Data: label 1 at +-mu, label 0 at +-nu, each with probability 1/4; mu, nu orthonormal. Network
sigmoid(v . relu(W X)) with K = ``width`` neurons, cross-entropy loss with ridge. States are the
readout v and the overlaps m^mu, m^nu; the orthogonal Gram matrix obeys dR = -2 ridge R.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory._inputs import below, vector

THRESHOLD = 0.125
"""Ridge at and above which the origin is the only fixed point."""


class Velocity(NamedTuple):
    """Time derivatives of the readout and of the overlaps with mu and nu."""

    readout: np.ndarray
    mu_overlaps: np.ndarray
    nu_overlaps: np.ndarray


class FixedPointSet(NamedTuple):
    """Neurons at rest at 0, and aligned with +mu, -mu (v > 0) and +nu, -nu (v < 0).

    On each non-empty set of aligned neurons |m_i| = |v_i| and sum v_i^2 = C; ``nu_plus`` has
    m^nu_i = v_i < 0, as the paper labels it.
    """

    rest: tuple[int, ...]
    mu_plus: tuple[int, ...]
    mu_minus: tuple[int, ...]
    nu_plus: tuple[int, ...]
    nu_minus: tuple[int, ...]


class Components(NamedTuple):
    """Number of connected components of the fixed points, and how many of them are stable."""

    total: int
    stable: int


def noiseless_drift(readout: Any, mu_overlaps: Any, nu_overlaps: Any, *, ridge: Number) -> Velocity:
    """Effective drift of (v, m^mu, m^nu) at infinite precision, for any width.

        dv_i    = (m^mu_i s^mu_i - m^nu_i s^nu_i) / 4 - ridge v_i
        dm^mu_i =  v_i s^mu_i / 4 - ridge m^mu_i
        dm^nu_i = -v_i s^nu_i / 4 - ridge m^nu_i
        s^mu_i = 1(m^mu_i > 0) sigmoid(-v . relu(m^mu)) - 1(m^mu_i < 0) sigmoid(-v . relu(-m^mu))
        s^nu_i = 1(m^nu_i > 0) sigmoid(v . relu(m^nu)) - 1(m^nu_i < 0) sigmoid(v . relu(-m^nu))

    with both indicators 0 at 0 (sign(0) = 0).

    Source: 000 Prop. 9.2; the signs inside s^nu of the third line corrected.

    >>> velocity = noiseless_drift([1.0, -1.0], [0.5, 0.0], [0.0, 0.5], ridge=0.0)
    >>> round(float(velocity.mu_overlaps[0]), 6), round(float(velocity.nu_overlaps[1]), 6)
    (0.094385, 0.094385)
    """
    v, mu, nu = _state(readout, mu_overlaps, nu_overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    s_mu = _pull(mu, -v)
    s_nu = _pull(nu, v)
    return Velocity(
        (mu * s_mu - nu * s_nu) / 4 - alpha * v,
        v * s_mu / 4 - alpha * mu,
        -v * s_nu / 4 - alpha * nu,
    )


def noiseless_diffusion(
    readout: Any, mu_overlaps: Any, nu_overlaps: Any, *, step: Number = 1.0
) -> np.ndarray:
    """Diffusion matrix step J V J' in (v, m^mu, m^nu): covariance of the gradient at four points.

    On two rings, 1, 2 aligned with mu and 3, 4 with nu, at fixed points a, its entries are

        3 ridge^2 a_i a_j within a ring,   -ridge^2 a_i a_j across.

    Source: 000 (8.9), Prop. 5.1.

    >>> noiseless_diffusion([1.0], [1.0], [0.0]).shape
    (3, 3)
    """
    v, mu, nu = _state(readout, mu_overlaps, nu_overlaps)
    c = _checks.positive("step", step)
    gradients = []
    for sign, (field, label) in itertools.product((1.0, -1.0), ((mu, 1.0), (nu, 0.0))):
        active = sign * field > 0
        residual = expit(v @ np.maximum(sign * field, 0)) - label
        weights = sign * residual * v * active
        along = (weights, 0 * v) if label else (0 * v, weights)
        gradients.append(np.concatenate([residual * np.maximum(sign * field, 0), *along]))
    return c * np.cov(np.array(gradients).T, bias=True)


def population_loss(readout: Any, mu_overlaps: Any, nu_overlaps: Any, *, ridge: Number) -> float:
    """Population loss at infinite precision, for R = 0.

        Phi = (1/4) sum over +- of (log(1 + e^(-v . relu(+-m^mu))) + log(1 + e^(v . relu(+-m^nu))))
              + (ridge / 2) (|v|^2 + |m^mu|^2 + |m^nu|^2)

    Source: 000 sec. 9.3; the sign in the exponents of nu corrected.

    >>> round(population_loss([0.0], [0.0], [0.0], ridge=0.1), 6)  # log 2
    0.693147
    """
    v, mu, nu = _state(readout, mu_overlaps, nu_overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    fields = [-v @ np.maximum(sign * mu, 0) for sign in (1, -1)]
    fields += [v @ np.maximum(sign * nu, 0) for sign in (1, -1)]
    return float(np.logaddexp(0, fields).mean() + alpha / 2 * (v @ v + mu @ mu + nu @ nu))


def ring_radius_squared(ridge: Number) -> float:
    """Sum of v_i^2 over each non-empty set of aligned neurons at a fixed point.

        C = -logit(4 ridge) = log(1 - 4 ridge) - log(4 ridge),   0 < ridge < 1/8

    Source: 000 sec. 5, Prop. 9.3; printed as logit(-4 ridge) in Prop. 9.3.

    >>> round(ring_radius_squared(0.05), 6)
    1.386294
    """
    alpha = below("ridge", ridge, THRESHOLD, "where fixed points other than 0 exist")
    return math.log1p(-4 * alpha) - math.log(4 * alpha)


def rings_jacobian(point: Any, *, ridge: Number) -> np.ndarray:
    """Drift matrix of the sqrt(dim) fluctuations about a point of two rings of two neurons each.

    At v = a with m^mu_i = a_i > 0 for i = 1, 2 and m^nu_i = a_i < 0 for i = 3, 4, in the order
    (v~_1 .. v~_4, m~_1 .. m~_4), m~ being that overlap of each neuron which is not zero:

        dv~_i = ridge (m~_i - v~_i) - a_i (ridge - 4 ridge^2) sum_k a_k (v~_k + m~_k),

    the sum over the ring of i, and the same with v~ and m~ swapped.

    Source: 000 Prop. 5.1; the sign of the sum corrected.

    >>> radius = math.sqrt(ring_radius_squared(0.05) / 2)
    >>> matrix = rings_jacobian([radius, radius, -radius, -radius], ridge=0.05)
    >>> bool(np.max(np.linalg.eigvals(matrix).real) < 1e-12)
    True
    """
    a = _on_rings(point, ridge)
    sums = (ridge - 4 * ridge**2) * np.outer(a, a) * np.kron(np.eye(2), np.ones((2, 2)))
    pull = ridge * np.eye(4)
    return np.block([[-pull - sums, pull - sums], [pull - sums, -pull - sums]])


def rings_diffusion(point: Any, *, ridge: Number, step: Number = 1.0) -> np.ndarray:
    """Diffusion matrix of the same fluctuations: of rank two, the rings being anticorrelated.

        Sigma = step ridge^2 w_ij a_i a_j,   w = 3 within a ring and -1 across

    for v~ and m~ alike.

    Source: 000 Prop. 5.1.

    >>> radius = math.sqrt(ring_radius_squared(0.05) / 2)
    >>> matrix = rings_diffusion([radius, radius, -radius, -radius], ridge=0.05)
    >>> int(np.linalg.matrix_rank(matrix))
    2
    """
    a = _on_rings(point, ridge)
    weights = np.kron([[3.0, -1.0], [-1.0, 3.0]], np.ones((2, 2)))
    block = _checks.positive("step", step) * ridge**2 * weights * np.outer(a, a)
    return np.tile(block, (2, 2))


def fixed_point_sets(width: WholeNumber, ridge: Number) -> Iterator[FixedPointSet]:
    """All partitions of the neurons 0..width-1 that carry fixed points, 5^width of them.

    For ridge >= 1/8 only the origin is left.

    Source: 000 Prop. 9.3.

    >>> sum(1 for _ in fixed_point_sets(4, 0.1))
    625
    """
    size, alpha = _checks.integer("width", width, least=1), _checks.positive("ridge", ridge)
    labels = range(5 if alpha < THRESHOLD else 1)
    return (
        FixedPointSet(*(tuple(np.flatnonzero(np.equal(word, k)).tolist()) for k in range(5)))
        for word in itertools.product(labels, repeat=size)
    )


def connected_components(width: WholeNumber) -> Components:
    """Connected components of the set of fixed points, for ridge < 1/8.

    A neuron leaves a set of aligned neurons through 0 if another stays behind, and joins any
    non-empty set from 0. So the non-empty sets, s of the four, are conserved. With a neuron to
    spare (s < K) their owners can be exchanged one by one and all is one component; without
    (s = K) each assignment is a component of its own:

        total = sum over s <= min(4, K) of binomial(4, s) (K! if s = K else 1)

    A component is stable when no more sets can be filled, s = min(4, K): K! binomial(4, K) of
    them for K <= 4, a single one for K > 4.

    Source: 000 Prop. 9.3 and Remark 5.

    >>> connected_components(4), connected_components(5)
    (Components(total=39, stable=24), Components(total=16, stable=1))
    """
    size = _checks.integer("width", width, least=1)
    counts = [
        math.comb(4, s) * (math.factorial(size) if s == size else 1)
        for s in range(min(4, size) + 1)
    ]
    return Components(sum(counts), counts[-1])


def success_probability(width: WholeNumber) -> float:
    """Probability that the ballistic limit leads a random start to an optimal classifier.

        2^(-K) sum over k = 2..K-2 of binomial(K, k) (1 - 2^(1-k)) (1 - 2^(1+k-K)),

    the chance that all four sets of aligned neurons are non-empty at the start; 0 for K < 4.

    Source: 000 (5.2).

    >>> success_probability(4)  # 3/32
    0.09375
    """
    size = _checks.integer("width", width, least=1)
    return (
        sum(
            math.comb(size, k) * (1 - 2.0 ** (1 - k)) * (1 - 2.0 ** (1 + k - size))
            for k in range(2, size - 1)
        )
        / 2.0**size
    )


def _on_rings(point: Any, ridge: Number) -> np.ndarray:
    square = ring_radius_squared(ridge)
    a = _checks.array("point", point, (4,))
    sizes = np.array([a[:2] @ a[:2], a[2:] @ a[2:]])
    if np.any(np.abs(sizes - square) > 1e-9 * square) or np.any(a[:2] < 0) or np.any(a[2:] > 0):
        raise _checks.InputError(
            f"point={a.tolist()} is not allowed: point must be two numbers >= 0 and two <= 0, each "
            f"pair of squared norm {square:.12g}"
        )
    return a


def _pull(overlaps: np.ndarray, weights: np.ndarray) -> np.ndarray:
    up, down = np.maximum(overlaps, 0), np.maximum(-overlaps, 0)
    return (overlaps > 0) * expit(weights @ up) - (overlaps < 0) * expit(weights @ down)


def _state(
    readout: Any, mu_overlaps: Any, nu_overlaps: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    v = vector("readout", readout)
    mu = _checks.array("mu_overlaps", mu_overlaps, v.shape)
    return v, mu, _checks.array("nu_overlaps", nu_overlaps, v.shape)
