"""First passage of an unstable Ornstein–Uhlenbeck process through a sphere: means and laws.

    dm = ωm dt + s dB in ℝᵖ,   y = ω‖m‖²/s²,   from y₀ to Y > y₀,   τ = 2ωt

The squared radius is a diffusion of its own, dτ-generator y∂² + (b + y)∂ with b = p/2, so that

    E τ      = ∫₀¹ (1 − v)^(b−1) (e^(−y₀v) − e^(−Yv)) dv/v
    E e^(−qτ) = N(y₀)/N(Y),   N(y) = e^(−y) ₁F₁(b + q; b; y)

Without noise between y₀ and Y the passage takes τ = log(Y/y₀).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, loggamma

SPACING = 0.25  # of the trapezoidal rule in log-odds of v: its error is e^(−π²/spacing)
DAMPING = 25.0  # the Fourier series of the law has an error of e^(−damping)
SERIES = 3000.0  # from here on N is its asymptotic series
TERMS = 12  # of that
SMALL = 1e-10  # transforms are followed until they have decayed to this
BLOCK, BLOCKS = 50, 60  # frequencies at a time, and how often at most
TAIL = 28.0  # the law is followed until e^(−28) of it is left


def mean_passage(half: float, starts: np.ndarray, levels: np.ndarray, weights: np.ndarray) -> float:
    """Mean of τ over starts y₀, each with its level Y and its weight; b = ``half``."""
    x = np.arange(-45.0 - math.log1p(float(np.max(levels))), 45.0 / min(half, 1.0), SPACING)
    v = np.exp(-np.logaddexp(0, -x))
    rule = SPACING * np.exp(-half * np.logaddexp(0, x))  # (1 − v)^b, of which dv/v takes one
    gaps = np.maximum(levels - starts, 0.0)
    values = np.exp(-np.outer(starts, v)) * -np.expm1(-np.outer(gaps, v))
    return float(weights @ values @ rule)


class PassageLaw(NamedTuple):
    """The law of τ by its Laplace transform at q = c + 2πik/W, k = 0, 1, …: a Fourier series."""

    frequencies: np.ndarray
    transform: np.ndarray
    window: float

    @property
    def longest(self) -> float:
        """A time by which it has happened, but for a probability of 1e-12."""
        return self.window / 2

    def cdf(self, times: np.ndarray) -> np.ndarray:
        """P(τ ≤ x)."""
        x = np.clip(times, 0.0, self.longest)
        factors = self.transform / self.frequencies * (2 / self.window)
        factors = np.concatenate([factors[:1] / 2, factors[1:]])
        # in pieces: as many rows as times
        flat = [
            np.real(np.exp(np.multiply.outer(part, self.frequencies)) @ factors)
            for part in np.array_split(x.ravel(), 1 + x.size // 1000)
        ]
        values = np.concatenate(flat).reshape(x.shape)
        return np.where(x > 0, np.clip(values, 0.0, 1.0), 0.0)


def passage_law(
    half: float, starts: np.ndarray, levels: np.ndarray, weights: np.ndarray
) -> PassageLaw:
    """Law of τ for starts y₀, each with its level Y and its weight; b = ``half``.

    Its distribution function has an error of about 1e-9. The smaller Y − y₀, the more terms the
    series has; where there would be too many, noise alone passes the level at once: ValueError.
    """
    high = float(np.max(levels))
    # the law decays at a rate of at least b, and of at least j²/(4Y) with the Bessel zero j > b + 1
    decay = max(half, 0.9 * (half + 1) ** 2 / (4 * high))
    longest = math.log1p(high) + TAIL / decay + 5 * min(1.0, high)
    window = 2 * longest
    some, which = np.unique(levels, return_inverse=True)
    below, above = _kummer(half, starts), _kummer(half, some)
    blocks: list[np.ndarray] = []
    while not blocks or np.max(np.abs(blocks[-1][-10:])) > SMALL:
        if len(blocks) == BLOCKS:
            raise ValueError("noise alone passes the level at once")
        q = _frequencies(window, len(blocks) * BLOCK, BLOCK)
        blocks.append((below(q) / above(q)[:, which]) @ weights)
    transform = np.concatenate(blocks)
    return PassageLaw(_frequencies(window, 0, len(transform)), transform, window)


def _frequencies(window: float, first: int, count: int) -> np.ndarray:
    return np.asarray(DAMPING / window + 2j * math.pi / window * (first + np.arange(count)))


def _kummer(half: float, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """N(y) for all y, as a function of q: a mean over Poisson numbers, or asymptotic series."""
    small = y <= SERIES
    largest = float(np.max(y[small], initial=0.0))
    n = np.arange(int(largest + 14 * math.sqrt(largest) + 60))
    logs = n * np.log(np.maximum(y[small], 1e-300))[:, None] - y[small][:, None] - gammaln(n + 1)
    poisson, far = np.exp(logs).T, y[~small]

    def of(q: np.ndarray) -> np.ndarray:
        factors = 1 + q[:, None] / (half + n[:-1])
        ratios = np.concatenate([np.ones((len(q), 1)), np.cumprod(factors, axis=1)], axis=1)
        term = np.exp(gammaln(half) - loggamma(half + q)[:, None] + q[:, None] * np.log(far))
        total = term.copy()
        for k in range(TERMS if len(far) else 0):
            term = term * ((k - q) * (k + 1 - half - q) / (k + 1))[:, None] / far
            total += term
        result = np.empty((len(q), len(y)), complex)
        result[:, small], result[:, ~small] = ratios @ poisson, total
        return result

    return of
