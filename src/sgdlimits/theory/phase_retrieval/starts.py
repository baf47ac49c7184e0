"""How much random neurons overlap with the teacher: the exact law of Σⱼ mⱼ² in dimension d."""

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln, gammainc, gammaln

from sgdlimits import _checks

# of the trapezoidal rule in log-odds or logarithms of S: the error for means of logarithms is
# e^(−π²/spacing), and means of S^(iξ) are right for ξ < π/spacing
SPACING = 0.125
TERMS = 80
ROOM = 20  # dimensions for each neuron
LEAST_DIM = 60


class Starts(NamedTuple):
    """Nodes S and weights w, Σ w f(S) = E f(S), and the distribution function.

    The rule is exact to rounding for functions that are analytic in log S.
    """

    nodes: np.ndarray
    weights: np.ndarray
    dim: int
    width: int

    def mean(self, values: np.ndarray) -> float:
        """Mean of a function, of which these are the values at the nodes."""
        return float(self.weights @ values)

    def cdf(self, squared_overlaps: np.ndarray) -> np.ndarray:
        """P(S ≤ s)."""
        s = np.clip(squared_overlaps, 0.0, 1.0)
        if self.width == 1:
            return np.asarray(betainc(0.5, (self.dim - 1) / 2, s))
        mixture, rate = _mixture(self.dim, self.width)
        shapes = np.arange(len(mixture)) + self.width / 2
        return np.asarray(np.clip(gammainc(shapes, rate * s[..., None]) @ mixture, 0.0, 1.0))


@functools.lru_cache(maxsize=64)
def random_starts(dim: int, width: int) -> Starts:
    """Law of S = Σⱼ mⱼ² of p independent neurons that are uniform on the unit sphere.

    The mⱼ² are independent with law Beta(½, (d − 1)/2), whatever the teacher. For one neuron the
    nodes are equidistant in the log-odds of S. For several, with κ = (d − 3)/2, each density is
    x^(−½) e^(−κx) times the power series of (1 − x)^κ e^(κx), so that S has on (0, 1) the density
    of a mixture of Γ laws with rate κ and shapes p/2 + n, whose weights may be negative and
    come from the p-th power of one power series. S > 1 must be improbable: it has a probability
    below 1e-9 for the dimensions that are let in, and errors of means are below 1e-9 too.
    """
    if width == 1:
        # The density decays exponentially on both sides; the log singularity at S = 0 is at −∞.
        x = np.arange(-90.0 - np.log(dim), 90.0, SPACING)
        density = np.exp(-(np.logaddexp(0, -x) + (dim - 1) * np.logaddexp(0, x)) / 2)
        nodes = np.exp(-np.logaddexp(0, -x))
    else:
        least = max(LEAST_DIM, ROOM * width)
        if dim < least:
            raise _checks.InputError(
                f"dim={dim} is not allowed: dim must be at least {least} for {width} neurons on "
                "average over random starts, whose overlaps are taken to be small"
            )
        mixture, rate = _mixture(dim, width)
        spacing = min(SPACING, 0.35 / width**0.5)  # log S has the standard deviation √(2/p)
        y = np.exp(np.arange(-80.0 / width - 5, np.log(rate), spacing))
        shapes = np.arange(len(mixture)) + width / 2
        logs = shapes * np.log(y[:, None]) - y[:, None] - gammaln(shapes)
        density, nodes = np.exp(logs) @ mixture, y / rate
    kept = density > 1e-18 * density.max()
    weights = density[kept] / density[kept].sum()
    return Starts(nodes[kept], weights, dim, width)


@functools.lru_cache(maxsize=64)
def _mixture(dim: int, width: int) -> tuple[np.ndarray, float]:
    """Weights of the Γ laws of shape width/2 + n, and their common rate κ."""
    rate = (dim - 3) / 2
    series = np.zeros(TERMS)  # (1 − y/κ)^κ e^y: its derivative is −(y/κ)/(1 − y/κ) times itself
    series[0] = 1.0
    for k in range(1, TERMS - 1):
        series[k + 1] = (k * series[k] - series[k - 1]) / (rate * (k + 1))
    n = np.arange(TERMS)
    single = series * np.exp(gammaln(n + 0.5) - gammaln(0.5))
    power = np.zeros(TERMS)
    power[0] = 1.0
    for m in range(1, TERMS):
        j = n[1 : m + 1]
        power[m] = np.sum((j * width - m + j) * single[j] * power[m - j]) / m
    log_constant = gammaln(0.5) - betaln(0.5, rate + 1) - np.log(rate) / 2
    return power * np.exp(width * log_constant), rate
