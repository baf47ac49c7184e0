"""The binary mixture at infinite precision: the data are the two means themselves."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric
from sgdlimits.theory._inputs import numbers, symmetric, vector


class NoiselessVelocity(NamedTuple):
    """Time derivatives of the readout and of the overlaps."""

    readout: np.ndarray
    overlaps: np.ndarray


def noiseless_drift(readout: Numeric, overlaps: Numeric, *, ridge: Number) -> NoiselessVelocity:
    """Effective drift of (v, m) at infinite precision, for any width.

        dvᵢ/dt = mᵢsᵢ/2 − αvᵢ,   dmᵢ/dt = vᵢsᵢ/2 − αmᵢ,
        sᵢ = 1(mᵢ > 0) σ(−v·relu(m)) + 1(mᵢ < 0) σ(v·relu(−m)),

    and dR/dt = −2αR, with α = ``ridge``. For two neurons sᵢ is σ(−v·m) if m₁m₂ > 0 and σ(−vᵢmᵢ)
    otherwise. At mᵢ = 0 both indicators are ½, their limit as the precision grows; hence
    dmᵢ/dt = vᵢ/4 at m = 0, next to which random starts lie.

    Source: BGJ22 Prop. 4.2 and its proof (10.5).

    >>> velocity = noiseless_drift([1.0, -1.0], [0.0, 0.0], ridge=0.1)
    >>> velocity.overlaps.tolist()
    [0.25, -0.25]
    """
    v, m = _state(readout, overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    up, down = np.heaviside(m, 0.5), np.heaviside(-m, 0.5)
    s = up * expit(-v @ np.maximum(m, 0)) + down * expit(v @ np.maximum(-m, 0))
    return NoiselessVelocity(m * s / 2 - alpha * v, v * s / 2 - alpha * m)


def noiseless_diffusion(readout: Numeric, overlaps: Numeric, *, step: Number = 1.0) -> np.ndarray:
    """Diffusion matrix c·JVJᵀ in (v₁ … v_K, m₁ … m_K) at infinite precision, c = ``step``.

        V = ¼(a − b)(a − b)ᵀ,   a, b the gradients of the loss at the two means,

    a matrix of rank one. Where m₁m₂ < 0 its entry (v₁, v₂) is −¼ m₁m₂ σ(−v₁m₁) σ(−v₂m₂).

    Source: BGJ22 (8.9) and sec. 8.3; the sign for opposite m corrected.

    >>> bool(noiseless_diffusion([1.0, 1.0], [1.0, -1.0])[0, 1] > 0)  # −m₁m₂ > 0
    True
    """
    v, m = _state(readout, overlaps)
    c = _checks.positive("step", step)
    gradients = []
    for sign, label in ((1.0, 1.0), (-1.0, 0.0)):
        field = sign * m
        residual = expit(v @ np.maximum(field, 0)) - label
        active = np.heaviside(field, 0.5)
        gradients.append(residual * np.concatenate([np.maximum(field, 0), sign * v * active]))
    gap = gradients[0] - gradients[1]
    return c * np.outer(gap, gap) / 4


def population_loss(
    readout: Numeric, overlaps: Numeric, orthogonal: Numeric = 0.0, *, ridge: Number
) -> float:
    """Population loss at infinite precision.

        Φ = ½(log(1 + e^(−v·relu(m))) + log(1 + e^(v·relu(−m)))) + (α/2)(‖v‖² + ‖m‖² + tr R)

    with α = ``ridge`` and R = ``orthogonal``, for which a number stands for its trace.

    Source: BGJ22 sec. 8.2.

    >>> round(population_loss([0.0, 0.0], [0.0, 0.0], ridge=0.1), 6)  # log 2
    0.693147
    """
    v, m = _state(readout, overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    r = numbers("orthogonal", orthogonal)
    trace = np.trace(symmetric("orthogonal", r, len(v))) if r.ndim else float(r)
    fit = np.logaddexp(0, -v @ np.maximum(m, 0)) + np.logaddexp(0, v @ np.maximum(-m, 0))
    return float(fit / 2 + alpha / 2 * (v @ v + m @ m + trace))


def _state(readout: Numeric, overlaps: Numeric) -> tuple[np.ndarray, np.ndarray]:
    v = vector("readout", readout)
    return v, _checks.array("overlaps", overlaps, v.shape)
