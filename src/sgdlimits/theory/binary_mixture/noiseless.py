"""The binary mixture at infinite precision: the data are the two means themselves."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sgdlimits import _checks
from sgdlimits._types import Number
from sgdlimits.theory._inputs import numbers, symmetric, vector


class NoiselessVelocity(NamedTuple):
    """Time derivatives of the readout and of the overlaps."""

    readout: np.ndarray
    overlaps: np.ndarray


def noiseless_drift(readout: Any, overlaps: Any, *, ridge: Number) -> NoiselessVelocity:
    """Effective drift of (v, m) at infinite precision, for any width.

        dv_i = m_i s_i / 2 - ridge v_i,   dm_i = v_i s_i / 2 - ridge m_i,
        s_i = 1(m_i > 0) sigmoid(-v . relu(m)) + 1(m_i < 0) sigmoid(v . relu(-m)),

    and dR = -2 ridge R. For two neurons s_i is sigmoid(-v . m) if m_1 m_2 > 0 and
    sigmoid(-v_i m_i) otherwise. At m_i = 0 both indicators are 1/2, the limit of infinite
    precision at that point; hence dm_i = v_i / 4 at m = 0, where random starts live.

    Source: 000 Prop. 4.2 and its proof (10.5).

    >>> velocity = noiseless_drift([1.0, -1.0], [0.0, 0.0], ridge=0.1)
    >>> velocity.overlaps.tolist()
    [0.25, -0.25]
    """
    v, m = _state(readout, overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    up, down = np.heaviside(m, 0.5), np.heaviside(-m, 0.5)
    s = up * expit(-v @ np.maximum(m, 0)) + down * expit(v @ np.maximum(-m, 0))
    return NoiselessVelocity(m * s / 2 - alpha * v, v * s / 2 - alpha * m)


def noiseless_diffusion(readout: Any, overlaps: Any, *, step: Number = 1.0) -> np.ndarray:
    """Diffusion matrix step J V J' in the coordinates (v_1..v_K, m_1..m_K) at infinite precision.

        V = (1/4) (a - b)(a - b)',   a, b the gradients of the loss at the two means,

    a rank-one matrix. With signs m_1 m_2 < 0 its entry (v_1, v_2) is
    -(m_1 m_2 / 4) sigmoid(-v_1 m_1) sigmoid(-v_2 m_2).

    Source: 000 (8.9) and sec. 8.3; the sign for opposite m corrected.

    >>> bool(noiseless_diffusion([1.0, 1.0], [1.0, -1.0])[0, 1] > 0)  # -m_1 m_2 > 0
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


def population_loss(readout: Any, overlaps: Any, orthogonal: Any = 0.0, *, ridge: Number) -> float:
    """Population loss at infinite precision.

        Phi = (1/2) (log(1 + e^(-v . relu(m))) + log(1 + e^(v . relu(-m))))
              + (ridge / 2) (|v|^2 + |m|^2 + tr R)

    ``orthogonal`` is R, or 0 if it has decayed.

    Source: 000 sec. 8.2.

    >>> round(population_loss([0.0, 0.0], [0.0, 0.0], ridge=0.1), 6)  # log 2
    0.693147
    """
    v, m = _state(readout, overlaps)
    alpha = _checks.nonnegative("ridge", ridge)
    rest = numbers("orthogonal", orthogonal)
    trace = np.trace(symmetric("orthogonal", rest, len(v))) if rest.ndim else float(rest)
    fit = np.logaddexp(0, -v @ np.maximum(m, 0)) + np.logaddexp(0, v @ np.maximum(-m, 0))
    return float(fit / 2 + alpha / 2 * (v @ v + m @ m + trace))


def _state(readout: Any, overlaps: Any) -> tuple[np.ndarray, np.ndarray]:
    v = vector("readout", readout)
    return v, _checks.array("overlaps", overlaps, v.shape)
