"""Population blocks of the two-layer network of ``theory.xor``, for large precision λ.

Each block is a sum over the four means θ = μ, −μ, ν, −ν with labels y = 1, 1, 0, 0; m^θ are the
overlaps of all neurons with θ, so that m^(−θ) = −m^θ, and σ is the sigmoid.

The errors, in operator norm, are O(1/λ) where |mⱼ^θ| ≫ ‖Wⱼ‖/√λ for *every* neuron j, and O(1/√λ)
otherwise. BGHJ23 asks this only of the neuron whose block it is; but relu(⟨Wⱼ, Y⟩) of another
neuron with mⱼ^θ = 0 has the mean ‖Wⱼ‖/√(2πλ), which the sigmoid sees.
"""

import numpy as np
from scipy.special import expit, ndtr

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, WholeNumber
from sgdlimits.theory._inputs import xor_state


def xor_hessian(
    readout: Numeric,
    mu_overlaps: Numeric,
    nu_overlaps: Numeric,
    orthogonal: Numeric,
    *,
    precision: Number,
    neuron: WholeNumber,
) -> np.ndarray:
    """Block WᵢWᵢ of the population Hessian in the coordinates (μ, ν), i = ``neuron``.

        (vᵢ²/4) Σ_θ σ'(v·relu(m^θ)) F(√λ mᵢ^θ/‖Wᵢ‖) θθᵀ

    with F the normal distribution function, λ = ``precision``, R = ``orthogonal`` and
    ‖Wᵢ‖² = (mᵢ^μ)² + (mᵢ^ν)² + R_ii, which must not be 0. The matrix is 2 × 2 and diagonal; to this
    order the d × d block has no other entries.

    Source: BGHJ23 Lemma 4.4, (4.11).

    >>> h = xor_hessian([1.0], [0.0], [0.0], [[1.0]], precision=100.0, neuron=0)
    >>> h.diagonal().tolist()  # σ' = ¼, F = ½
    [0.0625, 0.0625]
    """
    v, fields = _state(readout, mu_overlaps, nu_overlaps)
    return _first_layer(v, fields, orthogonal, precision, neuron, _curvature(v, fields))


def xor_gradient(
    readout: Numeric,
    mu_overlaps: Numeric,
    nu_overlaps: Numeric,
    orthogonal: Numeric,
    *,
    precision: Number,
    neuron: WholeNumber,
) -> np.ndarray:
    """Block WᵢWᵢ of E[∇L ∇Lᵀ] in the coordinates (μ, ν), i = ``neuron``.

        (vᵢ²/4) Σ_θ (y_θ − σ(v·relu(m^θ)))² F(√λ mᵢ^θ/‖Wᵢ‖) θθᵀ

    in the notation of ``xor_hessian``.

    Source: BGHJ23 Lemma 4.5, (4.17) and (4.18).

    >>> g = xor_gradient([1.0], [0.0], [0.0], [[1.0]], precision=100.0, neuron=0)
    >>> g.diagonal().tolist()  # (y − ½)² = ¼, F = ½
    [0.0625, 0.0625]
    """
    v, fields = _state(readout, mu_overlaps, nu_overlaps)
    return _first_layer(v, fields, orthogonal, precision, neuron, _residual(v, fields) ** 2)


def xor_readout_hessian(readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric) -> np.ndarray:
    """Block vv of the population Hessian, K × K for K neurons.

        ¼ Σ_θ σ'(v·relu(m^θ)) relu(m^θ) relu(m^θ)ᵀ

    Source: BGHJ23 Lemma 4.4, (4.10).

    >>> xor_readout_hessian([0.0], [2.0], [0.0]).tolist()  # ¼ · ¼ · 2²
    [[0.25]]
    """
    v, fields = _state(readout, mu_overlaps, nu_overlaps)
    return _readout(fields, _curvature(v, fields))


def xor_readout_gradient(
    readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric
) -> np.ndarray:
    """Block vv of E[∇L ∇Lᵀ], K × K for K neurons.

        ¼ Σ_θ (y_θ − σ(v·relu(m^θ)))² relu(m^θ) relu(m^θ)ᵀ

    Source: BGHJ23 Lemma 4.5, (4.16).

    >>> xor_readout_gradient([0.0], [2.0], [0.0]).tolist()  # ¼ · ¼ · 2²
    [[0.25]]
    """
    v, fields = _state(readout, mu_overlaps, nu_overlaps)
    return _readout(fields, _residual(v, fields) ** 2)


def _state(
    readout: Numeric, mu_overlaps: Numeric, nu_overlaps: Numeric
) -> tuple[np.ndarray, np.ndarray]:
    """The readout, and the overlaps (4, K) with μ, −μ, ν, −ν."""
    v, mu, nu = xor_state(readout, mu_overlaps, nu_overlaps)
    return v, np.array([mu, -mu, nu, -nu])


def _curvature(v: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """σ'(v·relu(m^θ)) at the four means."""
    score = np.maximum(fields, 0) @ v
    return expit(score) * expit(-score)


def _residual(v: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Label minus prediction at the four means: no cancellation where predictions are confident."""
    score = np.maximum(fields, 0) @ v
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    return signs * expit(-signs * score)


def _readout(fields: np.ndarray, factor: np.ndarray) -> np.ndarray:
    active = np.maximum(fields, 0)
    return (active.T * factor) @ active / 4


def _first_layer(
    v: np.ndarray,
    fields: np.ndarray,
    orthogonal: Numeric,
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
