"""Is a set of summary statistics closed? How much of their drift is not a function of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, Number, WholeNumber
from sgdlimits.triples.averages import BATCHES
from sgdlimits.triples.generator import generator_parts
from sgdlimits.triples.levels import same_levels
from sgdlimits.triples.scaling import exponent
from sgdlimits.triples.triple import Triple

FEWEST = 4  # states that must reach a level set
SIGNIFICANT = 4.0  # standard errors above zero at which a remainder counts as seen
NEGLIGIBLE = 1e-3  # remainders below this part of the mean square of the drift do not count
DECAY = -0.5  # exponents below this, by two standard errors, count as decay


class Closability(NamedTuple):
    """How much of h = −𝒜u + δ𝓛u is not a function of u, for each statistic at each dim."""

    names: tuple[str, ...]
    dims: tuple[int, ...]
    unexplained: Estimate  # variance of h over parameters with the same u: (dims, statistics)
    mean_square: np.ndarray  # of h over the same parameters, to compare with
    exponent: Estimate  # of the unexplained variance in dim, for each statistic
    states: np.ndarray  # how many parameters were compared at each dim
    open_statistics: tuple[str, ...]  # those whose remainder is seen and does not decay

    @property
    def closed(self) -> bool:
        """Whether no remainder is seen, or all that are seen decay with the dimension."""
        return not self.open_statistics

    @property
    def report(self) -> str:
        """The verdict in words, one line for each statistic."""
        verdict = "closed" if self.closed else f"not closed: {', '.join(self.open_statistics)}"
        lines = [f"the set ({', '.join(self.names)}) is {verdict}"]
        for i, name in enumerate(self.names):
            value, error = self.unexplained.value[-1, i], self.unexplained.error[-1, i]
            slope, slope_error = (float(part[i]) for part in self.exponent)
            known = np.isfinite(slope) and value > 2 * error
            trend = f", exponent in dim {slope:.2f} ± {slope_error:.2g}" if known else ""
            lines.append(
                f"  {name}: unexplained variance {value:.3g} ± {error:.2g} of "
                f"{self.mean_square[-1, i]:.3g} at dim={self.dims[-1]}{trend}"
            )
        return "\n".join(lines)


@double_precision
def closability(
    triple: Triple,
    dims: Sequence[int],
    step: Number,
    *,
    time: Number = 2.0,
    states: WholeNumber = 24,
    levels: WholeNumber = 3,
    samples: WholeNumber = 2000,
    seed: WholeNumber = 0,
) -> Closability:
    r"""Compare the drifts of u at many parameters with the same u, at each dim.

    The set u is closed if −𝒜u + δ𝓛u → h(u) (BGJ22, (2.2); BGHJ23, Definition 5.4). Here:

    1. ``states`` different parameters: rescaled mixtures of runs of SGD, see ``visited``;
    2. the values of u at the first ``levels`` of them, at the smallest dim, are the targets u*;
    3. all states are moved to u(x) = u* by Newton steps along the gradients of the statistics,
       x ← x − Jᵀ(JJᵀ)⁻¹(u(x) − u*), which leaves all other directions alone;
    4. the drift is estimated at each of them with common samples, and its variance over the
       states of a level is the *unexplained variance*. Products of independent batches of samples
       make it unbiased: it scatters around zero if the drift is a function of u.

    A statistic is open if at the largest dim its unexplained variance is more than 4 standard
    errors above zero and 1e-3 of the mean square of its drift, and does not decay: its exponent
    in dim is not below −1/2 by two standard errors. A verdict 'closed' is as good as the samples:
    compare ``unexplained.error`` with ``mean_square``. It speaks of the region that SGD visits
    within ``time``: a direction that no run ever finds is not tested.

    Args:
        triple: the problem.
        dims: two or more dimensions.
        step: c in δ = c/dim.
        time: how long SGD runs to find different parameters, in units of dim/step samples.
        states: parameters compared at each level.
        levels: number of targets u*.
        samples: for the drifts, rounded up to a multiple of 20.
        seed: of everything random.
    """
    if not isinstance(triple, Triple):
        raise _checks.InputError(
            f"triple={triple!r} is not allowed: triple must be an sgdlimits.Triple"
        )
    step = _checks.positive("step", step)
    time = _checks.nonnegative("time", time)
    states = _checks.integer("states", states, least=FEWEST)
    levels = _checks.integer("levels", levels, least=1)
    samples = _checks.integer("samples", samples, least=2 * BATCHES)
    seed = _checks.integer("seed", seed, least=0)
    dims, names = triple.check_dims(dims, least=2)
    rows = []
    for level in same_levels(triple, dims, step, time, states, seed, targets=levels):
        dim, reached = level.dim, level.arrived
        kept = reached.sum(axis=1)
        if np.max(kept) < FEWEST:
            raise _checks.InputError(
                f"states={states} is not allowed: only {int(np.max(kept))} of them could be moved "
                f"to the same statistics at dim={dim}; take more, or another time or init"
            )
        parts = generator_parts(triple, dim, level.states, samples, seed + 1)
        drift = np.asarray(-parts.first + step / dim / 2 * parts.second)
        if not np.all(np.isfinite(drift[:, reached.ravel()])):
            raise _checks.InputError(
                f"loss is not allowed: its gradients are not finite at dim={dim}"
            )
        drift = drift.reshape(BATCHES, *reached.shape, len(names))
        rows.append((*_remainders(drift, reached), int(np.sum(kept))))
    values, errors, scatter, squares = (np.stack([row[i] for row in rows]) for i in range(4))
    sizes, both = np.array(dims), np.hypot(errors, scatter)
    fits = [exponent(sizes, values[:, i], both[:, i]) for i in range(len(names))]
    slopes = Estimate(*(np.array([fit[j] for fit in fits]) for j in range(2)))
    seen = values[-1] > np.maximum(SIGNIFICANT * errors[-1], NEGLIGIBLE * squares[-1])
    decays = slopes.value + 2 * slopes.error < DECAY
    return Closability(
        names=names,
        dims=dims,
        unexplained=Estimate(values, errors),
        mean_square=squares,
        exponent=slopes,
        states=np.array([row[4] for row in rows]),
        open_statistics=tuple(n for n, bad in zip(names, seen & ~decays, strict=True) if bad),
    )


def _remainders(
    drift: Float[np.ndarray, "batches levels states k"], reached: Bool[np.ndarray, "levels s"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Unexplained variance, its two standard errors and the mean square, over all levels.

    The first error is that of the drifts, by a jackknife over batches: is there a remainder at
    all? The second one, of how it scatters over states, counts too when dims are compared.
    """
    centred, freedom = [], 0
    for level, mask in enumerate(reached):
        if mask.sum() >= FEWEST:
            some = drift[:, level, mask]
            centred.append(some - some.mean(axis=1, keepdims=True))
            freedom += int(mask.sum()) - 1
    spread = np.concatenate(centred, axis=1)

    def squares(parts: np.ndarray) -> np.ndarray:  # products of different batches: unbiased
        return (parts.sum(axis=0) ** 2 - (parts**2).sum(axis=0)) / (len(parts) * (len(parts) - 1))

    each = squares(spread)
    value = each.sum(axis=0) / freedom
    without = np.stack([squares(np.delete(spread, b, axis=0)).sum(0) for b in range(BATCHES)])
    noise = np.sqrt((BATCHES - 1) * without.var(axis=0)) / freedom
    scatter = each.std(axis=0) * np.sqrt(each.shape[0]) / freedom
    mean_square = np.mean(drift.mean(axis=0)[reached] ** 2, axis=0)
    return value, noise, scatter, mean_square
