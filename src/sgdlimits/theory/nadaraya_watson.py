"""Kernel smoothing that interpolates its data and yet converges at the best rate.

    f_n(x) = Σ_i Y_i K((x − X_i)/h) / Σ_i K((x − X_i)/h),  K(u) = ‖u‖^(−a) for ‖u‖ ≤ 1, 0 < a < d/2

is Y_i at X_i, and 0 where there is no point within h. For Y = f(X) + ε with |f(x) − f(y)| ≤
L‖x − y‖^β, h = n^(−1/(2β + d)) gives E(f_n(x) − f(x))² = O(n^(−2β/(2β + d))).

Here the worst case at one point is exact at every n: X uniform in the unit ball of ℝᵈ around x,
f(y) = L‖y − x‖^β, noise of variance σ². As f(x) = 0, no point within h costs nothing: another level
c of f would add c²(1 − hᵈ)ⁿ. With k = K((x − X)/h), which is 0 with probability 1 − hᵈ,
1/(Σk)² = ∫ s e^(−sΣk) ds makes means over n points powers of means over one.

Source: J24 Thm 5.3, from Belkin, Rakhlin and Tsybakov; in its proof exp(−c n h^(2d)) is corrected
to exp(−c n hᵈ), see ``few_neighbours``.
"""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory._inputs import below

_STEP = 0.05  # of the trapezoidal rules: their error falls like exp(−const/step)


def rate(dim: WholeNumber, smoothness: Number) -> float:
    """Power of 1/n in the risk, 2β/(2β + d), for β in (0, 1].

    >>> rate(2, smoothness=1.0)
    0.5
    """
    beta = _smoothness(smoothness)
    return 2 * beta / (2 * beta + _checks.integer("dim", dim, least=1))


def best_bandwidth(samples: WholeNumber, dim: WholeNumber, smoothness: Number) -> float:
    """The bandwidth of the theorem, n^(−1/(2β + d)).

    >>> best_bandwidth(10_000, 2, smoothness=1.0)
    0.1
    """
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    return float(n ** (-1 / (2 * _smoothness(smoothness) + d)))


def variance(
    samples: WholeNumber, dim: WholeNumber, bandwidth: Number, exponent: Number, noise: Number
) -> float:
    """Exact σ² E[Σ k_i²/(Σ k_i)²]; (d − a)²/(d(d − 2a)) σ²/(n hᵈ) where many points are near.

    Args:
        samples: n.
        dim: d.
        bandwidth: h, at most 1.
        exponent: a, below d/2: otherwise the nearest point alone decides.
        noise: σ².

    >>> round(variance(100_000, 1, bandwidth=0.1, exponent=0.25, noise=1.0), 9)
    0.000112503
    """
    n, d, h, a = _setting(samples, dim, bandwidth, exponent)
    sigma2 = _checks.nonnegative("noise", noise)
    return sigma2 * _Means(n, d, h, a).of_squares(0.0)


def squared_bias(
    samples: WholeNumber,
    dim: WholeNumber,
    bandwidth: Number,
    exponent: Number,
    smoothness: Number,
    constant: Number = 1.0,
) -> float:
    """Exact E[(Σ k_i f(X_i)/Σ k_i)²], for f = L‖· − x‖^β; (L hᵝ (d − a)/(d − a + β))² if many.

    Args:
        samples: n.
        dim: d.
        bandwidth: h, at most 1.
        exponent: a, below d/2.
        smoothness: β, in (0, 1].
        constant: L.

    >>> round(squared_bias(100_000, 1, bandwidth=0.1, exponent=0.25, smoothness=1.0), 6)
    0.001837
    """
    n, d, h, a = _setting(samples, dim, bandwidth, exponent)
    beta, size = _smoothness(smoothness), _checks.nonnegative("constant", constant)
    means = _Means(n, d, h, a)
    return (size * h**beta) ** 2 * (means.of_squares(2 * beta) + means.of_pairs(beta))


def few_neighbours(samples: WholeNumber, dim: WholeNumber, bandwidth: Number) -> float:
    """Bound exp(−n hᵈ/8) for the probability of at most half of the n hᵈ points within h.

    That is Chernoff's. The proof in J24 has Hoeffding's, exp(−n h^(2d)/2), which does not vanish
    for the bandwidth of the theorem unless d < 2β.

    >>> round(few_neighbours(10_000, 2, bandwidth=0.1), 9)
    3.727e-06
    """
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    h = _bandwidth(bandwidth)
    return float(np.exp(-n * h**d / 8))


class _Means:
    """E of functions of k = u^(−a), with u the distance in units of h, by quadrature in log u.

    With y = −log u: ∫ d e^(−dy) g(e^(ay)) dy over y > 0, y = exp(π/2 sinh τ); over s likewise in
    log s. All integrands are analytic and vanish at both ends.
    """

    def __init__(self, samples: int, dim: int, bandwidth: float, exponent: float):
        nodes = np.arange(-4.0, 3.2, _STEP)
        self.y = np.exp(np.pi / 2 * np.sinh(nodes))
        weights = _STEP * np.pi / 2 * np.cosh(nodes) * self.y
        kept = self.y < 700 / max(exponent, dim - 2 * exponent)
        self.y, weights = self.y[kept], weights[kept]
        self.log_weights = np.log(dim * weights) - dim * self.y
        self.log_kernel = exponent * self.y
        self.s = np.exp(np.arange(-75.0, 6.6, _STEP))
        self.damped = -self.s[:, None] * np.exp(self.log_kernel)
        self.samples, self.inside = samples, bandwidth**dim
        # log E e^(−sk), points beyond h included
        lost = self.inside * (-np.expm1(self.damped) @ np.exp(self.log_weights))
        with np.errstate(divide="ignore"):
            self.log_mean = np.log1p(-np.minimum(lost, 1.0))

    def _one(self, kernels: int, power: float) -> np.ndarray:
        """E[k^kernels u^power e^(−sk)] for each s."""
        logs = self.log_weights + kernels * self.log_kernel - power * self.y
        return np.asarray(self.inside * (np.exp(self.damped + logs).sum(axis=1)))

    def _integral(self, others: int, values: np.ndarray) -> float:
        """∫ s (E e^(−sk))^others values ds."""
        logs = others * self.log_mean if others else np.zeros(len(self.s))
        return float(_STEP * np.sum(self.s**2 * np.exp(logs) * values))

    def of_squares(self, power: float) -> float:
        """E[Σ k_i² u_i^power/(Σ k_i)²]."""
        return self.samples * self._integral(self.samples - 1, self._one(2, power))

    def of_pairs(self, power: float) -> float:
        """E[Σ_{i≠j} k_i k_j (u_i u_j)^power/(Σ k_i)²]."""
        if self.samples == 1:
            return 0.0
        pairs = self.samples * (self.samples - 1)
        return pairs * self._integral(self.samples - 2, self._one(1, power) ** 2)


def _setting(
    samples: WholeNumber, dim: WholeNumber, bandwidth: Number, exponent: Number
) -> tuple[int, int, float, float]:
    d = _checks.integer("dim", dim, least=1)
    a = below("exponent", exponent, d / 2, "half of the dimension")
    return _checks.integer("samples", samples, least=1), d, _bandwidth(bandwidth), a


def _bandwidth(value: Number) -> float:
    return _at_most_one("bandwidth", value)


def _smoothness(value: Number) -> float:
    return _at_most_one("smoothness", value)


def _at_most_one(name: str, value: Number) -> float:
    number = _checks.positive(name, value)
    if number > 1:
        raise _checks.InputError(f"{name}={value!r} is not allowed: {name} must lie in (0, 1]")
    return number
