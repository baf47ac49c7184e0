"""How many samples the search takes: α_c(N, k), and the inequality behind it."""

import dataclasses
import math

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


@dataclasses.dataclass(frozen=True, repr=False)
class CriticalSamples:
    """The order of the number of samples that recovery takes, α_c(N, k)·N, without its constant.

    Attributes:
        dim: N.
        exponent: k.
        ratio: α_c(N, k), samples per dimension.
    """

    dim: int
    exponent: int
    ratio: float

    @property
    def samples(self) -> float:
        """α_c·N."""
        return self.ratio * self.dim

    @property
    def law(self) -> str:
        """How it grows, such as "N log N"."""
        return {1: "N", 2: "N log N"}.get(self.exponent, f"N{_power(self.exponent - 1)}")

    def __repr__(self) -> str:
        return f"of the order of {self.law} = {self.samples:.3g} samples in dimension {self.dim}"


def critical_samples(dim: WholeNumber, exponent: WholeNumber) -> CriticalSamples:
    r"""How many samples online SGD needs on the sphere, in order of magnitude.

        α_c(N, k) = 1 for k = 1,  log N for k = 2,  N^(k−2) for k ≥ 3,   samples α_c·N

    With fewer, α ≪ α_c, SGD stays at the equator; with more by logarithms it recovers the
    direction, at a step δ/N with 1/α ≪ δ ≪ 1/√α.

    Source: J24 Theorems 11.10 and 11.11.

    Args:
        dim: N.
        exponent: the information exponent k.

    >>> critical_samples(100, 3)
    of the order of N² = 1e+04 samples in dimension 100
    """
    n, k = _checks.integer("dim", dim, least=2), _checks.integer("exponent", exponent, least=1)
    ratio = {1: 1.0, 2: math.log(n)}.get(k)
    if ratio is None:
        logarithm = (k - 2) * math.log(n)
        ratio = math.exp(logarithm) if logarithm < 700 else math.inf
    return CriticalSamples(n, k, ratio)


def search_lower_bound(
    initial: Number, rate: Number, steps: object, exponent: WholeNumber, *, ceiling: Number = 1.0
) -> np.ndarray:
    r"""What a sequence has reached at least that is pushed by a power of itself.

    If m_t ≥ a + b Σ_{j<t} m_j^(k−1) for all t, then, as long as m stays below the ``ceiling`` C,

        m_t ≥ a + bt                                    for k = 1,
        m_t ≥ a (1 + b)^t                               for k = 2 (Grönwall),
        m_t ≥ a (1 − (k − 2) b' a^(k−2) t)^(−1/(k−2))   for k ≥ 3 (Bihari and LaSalle),

    with b' = b/(1 + (k − 2) b C^(k−2)). From where this passes the ceiling, it is the ceiling.

    Proof for k ≥ 3, p = k − 2: m is above u with u_{t+1} = u_t (1 + b u_t^p) and u₀ = a, and
    (1 + x)^p ≥ 1 + px gives u_t^(−p) − u_{t+1}^(−p) ≥ pb/(1 + pb u_t^p) ≥ pb'.

    Source: J24 section 11.5, corrected: it has b in place of (k − 2)b', which for k = 3 is no lower
    bound, and for k > 3 one that takes k − 2 times too long.

    Args:
        initial: a > 0.
        rate: b ≥ 0; of the directional push of SGD, a_k δ/N with −a_k m^(k−1) ≈ φ'(m).
        steps: t, whole numbers ≥ 0, in an array of any shape.
        exponent: the information exponent k.
        ceiling: C, 1 for an overlap.

    >>> search_lower_bound(0.1, 0.5, [0, 1, 10, 100], 3).round(4) + 0.0
    array([0.1   , 0.1034, 0.15  , 1.    ])
    """
    a, b = _checks.positive("initial", initial), _checks.nonnegative("rate", rate)
    top, k = _checks.positive("ceiling", ceiling), _checks.integer("exponent", exponent, least=1)
    t = _checks.array("steps", steps, None)
    if np.any(t < 0) or np.any(t != np.floor(t)):
        raise _checks.InputError(
            f"steps={_checks.shown(t)} is not allowed: steps must be whole numbers >= 0"
        )
    if k == 1:
        return np.asarray(np.minimum(a + b * t, top))
    if k == 2:
        return np.asarray(np.exp(np.minimum(math.log(a) + t * math.log1p(b), math.log(top))))
    p = k - 2
    push = b / (1 + p * b * top**p)
    left = np.maximum(1 - p * push * a**p * t, (a / top) ** p)
    return np.asarray(np.minimum(a * left ** (-1 / p), top))


def _power(number: int) -> str:
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))
