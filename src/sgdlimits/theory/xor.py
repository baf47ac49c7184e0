"""Two-layer ReLU network on the XOR mixture at infinite precision (BGJ22 sec. 5 and 9).

Data: label 1 at ±μ, label 0 at ±ν, each with probability ¼; μ and ν are orthonormal. Network
σ(v·relu(WX)) with σ the sigmoid and K = ``width`` neurons, cross-entropy loss with ridge
α = ``ridge``. States are the readout v and the overlaps m^μ, m^ν with the two directions; the Gram
matrix R of the rest of W obeys dR/dt = −2αR.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, WholeNumber
from sgdlimits.theory._inputs import below, xor_state
from sgdlimits.theory._rings import fluctuation_matrix

THRESHOLD = 0.125
"""Ridge at and above which the origin is the only fixed point."""


class Velocity(NamedTuple):
    """Time derivatives of the readout and of the overlaps with μ and ν."""

    readout: np.ndarray
    mu_overlaps: np.ndarray
    nu_overlaps: np.ndarray


class FixedPointSet(NamedTuple):
    """Which neurons rest at 0, and which are aligned with μ, −μ (v > 0), ν and −ν (v < 0).

    On each non-empty set of aligned neurons Σvᵢ² = C, with C of ``ring_radius_squared``. The labels
    are the paper's: neurons of ``mu_plus`` have m^μ = v, of ``mu_minus`` m^μ = −v, of ``nu_plus``
    m^ν = v < 0, of ``nu_minus`` m^ν = −v > 0.
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


def noiseless_drift(
    readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric, *, ridge: Number
) -> Velocity:
    """Effective drift of (v, m^μ, m^ν) at infinite precision, for any width.

        dvᵢ/dt    = (m^μ_i s^μ_i − m^ν_i s^ν_i)/4 − αvᵢ
        dm^μ_i/dt =  vᵢ s^μ_i/4 − αm^μ_i
        dm^ν_i/dt = −vᵢ s^ν_i/4 − αm^ν_i

        s^μ_i = 1(m^μ_i > 0) σ(−v·relu(m^μ)) − 1(m^μ_i < 0) σ(−v·relu(−m^μ))
        s^ν_i = 1(m^ν_i > 0) σ(v·relu(m^ν)) − 1(m^ν_i < 0) σ(v·relu(−m^ν))

    At an overlap of exactly 0 both indicators are 0.

    Source: BGJ22 Prop. 9.2; the signs inside s^ν of the third line corrected.

    >>> velocity = noiseless_drift([1.0, -1.0], [0.5, 0.0], [0.0, 0.5], ridge=0.0)
    >>> round(float(velocity.mu_overlaps[0]), 6), round(float(velocity.nu_overlaps[1]), 6)
    (0.094385, 0.094385)
    """
    v, mu, nu = xor_state(readout, mu_overlaps, nu_overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    s_mu = _pull(mu, -v)
    s_nu = _pull(nu, v)
    return Velocity(
        (mu * s_mu - nu * s_nu) / 4 - alpha * v,
        v * s_mu / 4 - alpha * mu,
        -v * s_nu / 4 - alpha * nu,
    )


def noiseless_diffusion(
    readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric, *, step: Number = 1.0
) -> np.ndarray:
    """Diffusion matrix c·JVJᵀ in (v, m^μ, m^ν), c = ``step``.

    V is the covariance of the gradient over the four means ±μ, ±ν, without their noise. At the
    fixed points of ``rings_diffusion`` it is the matrix given there.

    Source: BGJ22 (8.9), Prop. 5.1.

    >>> noiseless_diffusion([1.0], [1.0], [0.0]).shape
    (3, 3)
    """
    v, mu, nu = xor_state(readout, mu_overlaps, nu_overlaps)
    c = _checks.positive("step", step)
    gradients = []
    for sign, (field, label) in itertools.product((1.0, -1.0), ((mu, 1.0), (nu, 0.0))):
        active = sign * field > 0
        residual = expit(v @ np.maximum(sign * field, 0)) - label
        weights = sign * residual * v * active
        along = (weights, 0 * v) if label else (0 * v, weights)
        gradients.append(np.concatenate([residual * np.maximum(sign * field, 0), *along]))
    return c * np.cov(np.array(gradients).T, bias=True)


def population_loss(
    readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric, *, ridge: Number
) -> float:
    """Population loss at infinite precision, for R = 0.

        Φ = ¼ Σ_± [log(1 + e^(−v·relu(±m^μ))) + log(1 + e^(v·relu(±m^ν)))]
            + (α/2)(‖v‖² + ‖m^μ‖² + ‖m^ν‖²)

    Source: BGJ22 sec. 9.3; the sign in the exponents of ν corrected.

    >>> round(population_loss([0.0], [0.0], [0.0], ridge=0.1), 6)  # log 2
    0.693147
    """
    v, mu, nu = xor_state(readout, mu_overlaps, nu_overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    fields = [-v @ np.maximum(sign * mu, 0) for sign in (1, -1)]
    fields += [v @ np.maximum(sign * nu, 0) for sign in (1, -1)]
    return float(np.logaddexp(0, fields).mean() + alpha / 2 * (v @ v + mu @ mu + nu @ nu))


def ring_radius_squared(ridge: Number) -> float:
    """Sum of vᵢ² over each non-empty set of aligned neurons at a fixed point.

        C = −logit(4α) = log(1 − 4α) − log(4α),   0 < α < 1/8

    Source: BGJ22 sec. 5, Prop. 9.3; corrected from logit(−4α) in Prop. 9.3.

    >>> round(ring_radius_squared(0.05), 6)
    1.386294
    """
    alpha = below("ridge", ridge, THRESHOLD, "where fixed points other than 0 exist")
    return math.log1p(-4 * alpha) - math.log(4 * alpha)


def rings_jacobian(point: Numeric, *, ridge: Number) -> np.ndarray:
    """Drift matrix of the fluctuations about a point on two rings of two neurons each.

    The point is v = a = ``point`` with m^μ_i = aᵢ > 0 for i = 1, 2 and m^ν_i = aᵢ < 0 for i = 3, 4.
    Write ṽᵢ and m̃ᵢ for √dim times the deviations of vᵢ and of that overlap of neuron i which is not
    zero. In the order (ṽ₁ … ṽ₄, m̃₁ … m̃₄),

        dṽᵢ = [α(m̃ᵢ − ṽᵢ) − aᵢ(α − 4α²) Σₖ aₖ(ṽₖ + m̃ₖ)] dt + noise,

    where k runs over the ring of i, and the same with ṽ and m̃ swapped.

    Source: BGJ22 Prop. 5.1; the sign of the sum corrected.

    >>> radius = math.sqrt(ring_radius_squared(0.05) / 2)
    >>> matrix = rings_jacobian([radius, radius, -radius, -radius], ridge=0.05)
    >>> bool(np.max(np.linalg.eigvals(matrix).real) < 1e-12)
    True
    """
    a = _on_rings(point, ridge)
    within = np.kron(np.eye(2), np.ones((2, 2)))
    return fluctuation_matrix((ridge - 4 * ridge**2) * np.outer(a, a) * within, ridge)


def rings_diffusion(point: Numeric, *, ridge: Number, step: Number = 1.0) -> np.ndarray:
    """Diffusion matrix of the same fluctuations: of rank two, with anticorrelated rings.

        Σ_ij = cα²w_ij aᵢaⱼ,   w_ij = 3 within a ring and −1 across,   c = ``step``

    for the pairs (ṽ, ṽ), (ṽ, m̃) and (m̃, m̃) alike.

    Source: BGJ22 Prop. 5.1.

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
    """All partitions of the neurons 0 … K − 1 that carry fixed points, 5ᴷ of them.

    For ridge ≥ 1/8 only the origin is left.

    Source: BGJ22 Prop. 9.3.

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

    Along a path of fixed points a neuron can shrink to 0 if its set of aligned neurons keeps
    another one, and can then grow into any set that is not empty. So it never changes which of the
    four sets are non-empty, say s of them. If there are more neurons than that (s < K), they can
    change places one by one, and one component holds all assignments of neurons to these sets; if
    not (s = K), each of the K! assignments is a component of its own:

        total = Σ over s ≤ min(4, K) of binomial(4, s) · (K! if s = K else 1)

    A component is stable when no further set can be filled, s = min(4, K): there are
    K! binomial(4, K) of them for K ≤ 4, a single one for K > 4.

    Source: BGJ22 Prop. 9.3 and Remark 5.

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

        2⁻ᴷ Σ over 2 ≤ k ≤ K−2 of binomial(K, k)(1 − 2¹⁻ᵏ)(1 − 2¹⁺ᵏ⁻ᴷ),

    the chance that the signs of v and m at the start put a neuron into each of the four sets;
    0 for K < 4.

    Source: BGJ22 (5.2).

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


def _on_rings(point: Numeric, ridge: Number) -> np.ndarray:
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
    """s^μ for the overlaps m^μ and weights −v, s^ν for m^ν and v."""
    up, down = np.maximum(overlaps, 0), np.maximum(-overlaps, 0)
    return (overlaps > 0) * expit(weights @ up) - (overlaps < 0) * expit(weights @ down)
