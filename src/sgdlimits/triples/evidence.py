"""Is a variance seen, and how small a one could have been seen? Tests on independent batches."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

MOST_FLIPS = 2**18  # signs of 20 batches have 2**19 patterns, up to a common one
SMALLEST = 2.0**-15  # level of a single test, below which so many patterns say too little
ROUNDING = 1e-10  # parts of the scale below this are rounding, not a remainder


class Evidence(NamedTuple):
    """A mean square μᵀμ, measured through independent batches μ + noise; one entry per column."""

    value: np.ndarray  # unbiased, so that it scatters around zero if μ = 0
    error: np.ndarray  # standard error, by a jackknife over the batches
    critical: np.ndarray  # the value that noise alone exceeds with the probability allowed
    detectable: np.ndarray  # the least μᵀμ that would be seen with the wanted probability
    upper: np.ndarray  # μᵀμ at or above this would give so small a value with probability β
    seen: np.ndarray  # whether μ = 0 is rejected

    def scaled(self, factor: float) -> "Evidence":
        """The same in another unit."""
        value, error, critical, detectable, upper = (part * factor for part in self[:5])
        return Evidence(value, error, critical, detectable, upper, self.seen)


def evidence(
    batches: Float[np.ndarray, "batches points columns"],
    *,
    level: float,
    miss: float,
    seed: int,
) -> Evidence:
    r"""Test μ = 0 for each column, where batch b shows D_b = μ + noise_b at so many points.

    The estimate is the mean of D_b·D_b′ over pairs of different batches. If μ = 0 and the noise is
    symmetric, flipping the sign of whole batches changes nothing in law, so that the quantiles of
    the estimate under random signs are those under the null hypothesis: whatever the correlations
    between points, and however heavy the tails.

    With noise of covariance C in the mean of all batches, an estimate of μᵀμ has variance
    s² + 4μᵀCμ: s is its standard deviation under random signs, and μᵀCμ ≤ λμᵀμ with λ the largest
    eigenvalue of C, which is reached if μ points where the noise is largest. The critical value is
    t + fμᵀμ: t that of the noise alone, f that of batches without noise under random signs. So μ is
    seen with probability 1 − β if, z the normal quantile, μᵀμ − z·(s² + 4λμᵀμ)^½ ≥ t + fμᵀμ: the
    least such μᵀμ is what is *detectable*, whatever the direction of μ. Given the estimate v, the
    *upper* bound is the U with U − z·(s² + 4λU)^½ = max(v, 0): if μᵀμ ≥ U, so small an estimate has
    probability at most β. Both hold as far as means of batches are normal, and s, t and λ, which
    come from the same batches, are accurate.

    Args:
        batches: of which the noise has mean zero, and is independent between batches.
        level: probability of a rejection if μ = 0, for each column.
        miss: β, probability of no rejection if μᵀμ is what is detectable, and of an estimate as
            small as v if μᵀμ is the upper bound.
        seed: of the signs.

    >>> noise = np.random.default_rng(0).normal(size=(20, 5, 1))
    >>> none, some = (evidence(noise + μ, level=1e-3, miss=0.01, seed=0) for μ in (0.0, 1.0))
    >>> bool(none.seen[0]), bool(some.seen[0])
    (False, True)
    >>> value, error = some.value[0], some.error[0]
    >>> print(f"{value:.1f} ± {error:.1f}, surely seen from {none.detectable[0]:.0f} on")
    5.8 ± 1.3, surely seen from 10 on
    """
    count = len(batches)
    pairs = count * (count - 1)
    gram = np.einsum("apk,bpk->kab", batches, batches)
    trace = np.trace(gram, axis1=1, axis2=2)
    value = (gram.sum(axis=(1, 2)) - trace) / pairs
    level = max(level, SMALLEST)
    flips = min(MOST_FLIPS, int(2**14 + 50 / level))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(flips, count))
    centred = gram - gram.mean(axis=1, keepdims=True)
    centred = (centred - centred.mean(axis=2, keepdims=True)) * count / (count - 1)

    def under_signs(matrix: np.ndarray) -> np.ndarray:
        return (np.einsum("fa,fa->f", signs @ matrix, signs) - np.trace(matrix)) / pairs

    critical, spread, chance = (np.empty_like(value) for _ in range(3))
    for k, matrix in enumerate(gram):
        noise = under_signs(centred[k])
        critical[k], spread[k] = np.quantile(noise, 1 - level), np.std(noise)
        chance[k] = (1 + np.sum(under_signs(matrix) >= value[k] * (1 - 1e-12))) / (1 + flips)
    own = 1 - np.quantile((signs.sum(axis=1) ** 2 - count) / pairs, 1 - level)
    # not the mean eigenvalue: a remainder may lie where common samples have most of their noise
    worst = np.linalg.eigvalsh(centred)[:, -1] / count**2
    z = stats.norm.ppf(1 - miss)
    half = own * critical + 2 * z**2 * worst
    inside = half**2 - own**2 * (critical**2 - (z * spread) ** 2)
    detectable = (half + np.sqrt(np.maximum(inside, 0.0))) / own**2
    positive, shift = np.maximum(value, 0.0), 2 * z**2 * worst
    upper = positive + shift + np.sqrt(shift**2 + 2 * shift * positive + (z * spread) ** 2)
    without = [np.delete(np.delete(gram, b, 1), b, 2) for b in range(count)]
    shorter = (count - 1) * (count - 2)
    jackknife = np.stack(
        [(g.sum(axis=(1, 2)) - np.trace(g, axis1=1, axis2=2)) / shorter for g in without]
    )
    error = np.sqrt((count - 1) * jackknife.var(axis=0))
    return Evidence(value, error, critical, detectable, upper, chance <= level)
