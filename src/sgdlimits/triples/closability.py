"""Is a set of summary statistics closed? How much of their drift is not a function of them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, Number, WholeNumber
from sgdlimits.triples.averages import BATCHES, derived
from sgdlimits.triples.evidence import ROUNDING, Evidence, evidence
from sgdlimits.triples.generator import generator_parts
from sgdlimits.triples.levels import Level, same_levels
from sgdlimits.triples.scaling import Bounds, Trend, exponent, limit
from sgdlimits.triples.triple import Triple

FEWEST = 4  # states that must reach a level set
DECAY = -0.5  # exponents below this, by two standard errors, count as decay
GROWTH = 4  # by which the number of samples grows from one look at the data to the next
IDLE = 0.25  # share of noise in the bounds of a limit, below which more samples are in vain


class Closability(NamedTuple):
    """How much of h = −𝒜u + δ𝓛u is not a function of u, for each statistic at each dim.

    Which number to trust: the ``verdict``, and of single statistics whether they are among the
    ``open_statistics``. A share of ``unexplained`` over ``mean_square`` alone is one dim's: a small
    one may stay as dim → ∞, and a large one vanish; ``lower`` and ``upper`` say. Where none is seen
    trust no more than ``resolution``. Of a set that is not closed, the statistic with the largest
    share is the one that most needs another beside it.
    """

    names: tuple[str, ...]
    dims: tuple[int, ...]
    unexplained: Estimate  # variance of h over parameters with the same u: (dims, statistics)
    mean_square: np.ndarray  # of 𝒜u and of δ𝓛u over the same parameters, summed, to compare with
    exponent: Estimate  # of the unexplained variance over these dims, for each statistic
    lower: np.ndarray  # bounds of the unexplained variance as dim → ∞, for each statistic
    upper: np.ndarray
    states: np.ndarray  # how many parameters were compared at each dim
    open_statistics: tuple[str, ...]  # those whose remainder is seen and does not vanish
    undecided_statistics: tuple[str, ...]  # of which neither can be said
    threshold: float  # unexplained variance / mean square that 'closed' excludes
    resolution: np.ndarray  # upper bound of that part at the largest dim
    error_rate: float  # probability of a wrong verdict, as the docstring of closability says
    samples: int  # used at each state
    samples_needed: int | None  # to decide what lacks resolution; None if nothing does

    @property
    def verdict(self) -> str:
        """One of 'closed', 'not closed' and 'undecided'."""
        if self.open_statistics:
            return "not closed"
        return "undecided" if self.undecided_statistics else "closed"

    @property
    def closed(self) -> bool:
        """Whether the verdict is 'closed': neither 'not closed' nor 'undecided'."""
        return self.verdict == "closed"

    @property
    def report(self) -> str:
        """The verdict in words, one line for each statistic."""
        lines = [f"the set ({', '.join(self.names)}) is {self._summary}"]
        for i, name in enumerate(self.names):
            scale = self.mean_square[-1, i]
            value, error = (part[-1, i] for part in self.unexplained)
            slope, slope_error = (float(part[i]) for part in self.exponent)
            known = np.isfinite(slope) and value > 2 * error
            fall = ""
            if known:
                low, high = (100 * max(side[i], 0.0) / scale for side in (self.lower, self.upper))
                fall = (
                    f" (∝ dim^({slope:.2f} ± {slope_error:.2g}), {low:.2g} to {high:.2g} % as "
                    "dim → ∞)"
                )
            lines.append(
                f"  {name}: unexplained variance {value:.3g} ± {error:.2g} of {scale:.3g} at "
                f"dim={self.dims[-1]}{fall}; resolution {_percent(self.resolution[i])}: "
                f"{self._word(name)}"
            )
        lines.append(
            f"  threshold {_percent(self.threshold)} of the mean square, error rate "
            f"{_percent(self.error_rate)}, {self.samples} samples"
        )
        lines.append(f"  to trust: {self._advice}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.report

    @property
    def _summary(self) -> str:
        if self.open_statistics:
            return f"not closed: {', '.join(self.open_statistics)}"
        if not self.undecided_statistics:
            part = _percent(self.threshold)
            return f"closed: less than {part} of the drift's mean square is unexplained"
        advice = "a remainder is seen, its limit is not clear: take larger dims, further apart"
        if self.samples_needed is not None:
            advice = f"about {self.samples_needed} samples would decide, set budget"
        return f"undecided: {', '.join(self.undecided_statistics)} ({advice})"

    @property
    def _advice(self) -> str:
        if not self.open_statistics:
            return "verdicts, for the parameters compared; shares at one dim may vanish or stay"
        shares = self.unexplained.value[-1] / self.mean_square[-1]
        worst = max(self.open_statistics, key=lambda name: shares[self.names.index(name)])
        return (
            f"'not closed', whatever the others are; {worst} has the largest share of what is "
            "open, and most needs a statistic beside it"
        )

    def _word(self, name: str) -> str:
        if name in self.open_statistics:
            return "open"
        return "undecided" if name in self.undecided_statistics else "closed"


@double_precision
def closability(
    triple: Triple,
    dims: Sequence[int],
    step: Number,
    *,
    time: Number = 2.0,
    states: WholeNumber = 32,
    levels: WholeNumber = 2,
    samples: WholeNumber = 2000,
    budget: WholeNumber = 32_000,
    threshold: Number = 5e-3,
    error_rate: Number = 0.01,
    seed: WholeNumber = 0,
) -> Closability:
    r"""Compare the drifts of u at many parameters with the same u, at each dim.

    The set u is closed if −𝒜u + δ𝓛u → h(u) (BGJ22, (2.2); BGHJ23, Definition 5.4). Here:

    1. ``states`` different parameters for each target: rescaled mixtures of runs of SGD (see
       ``visited``), with mass moved between blocks of each array (see ``enriched``);
    2. the values of u at the start of one run and later in others, ``levels`` in all and at the
       smallest dim, are the targets u*;
    3. the states are moved to u(x) = u* by Newton steps along the gradients of the statistics,
       x ← x − Jᵀ(JJᵀ)⁻¹(u(x) − u*), which leaves all other directions alone;
    4. the drift is estimated at each of them with common samples, and its variance over the
       states of a level is the *unexplained variance*. Products of independent batches of samples
       make it unbiased: it scatters around zero if the drift is a function of u;
    5. samples are added, four times as many at each look, until all statistics are closed, one is
       open, or ``budget`` is spent.

    At the largest dim a remainder is *seen* if random signs of the batches, which is what a closed
    set is invariant under, give as large a one with probability at most ``error_rate``, divided by
    the number of statistics and looks. The *resolution* is an upper bound of the unexplained
    variance there, as a part of the mean square of the drift: so large a part would have shown as
    more than it did with probability 1 − ``error_rate``, wherever it points, also if it differs
    between states just as the noise does. (The mean square is that of 𝒜u plus that of δ𝓛u: it does
    not vanish where the two are in balance.)

    What is seen is followed to the limit: V = V∞ + b·dim^(−p), with bounds on V∞ that hold for
    p = ½ and for p = 1, see ``scaling.limit``. A statistic is

    - *open* if a remainder is seen, however small, and its lower bound in the limit is positive;
    - *closed* if none is seen and the resolution is below ``threshold``; or if one is seen, it
      decays (its exponent in dim is below −½ by two standard errors) and its upper bound in the
      limit is below ``threshold``;
    - *undecided* otherwise: if none is seen, ``samples_needed`` says how many samples the
      resolution asks for; if one is seen and its limit is unclear, larger dims decide.

    The set is closed if all statistics are, and not closed if one is open.

    What is not promised: all of this speaks of the parameters compared, those that SGD visits
    within ``time`` and their variations by blocks, and a drift that differs elsewhere, as along
    directions that are no coordinates, goes unseen. A remainder that is not seen and is below
    ``threshold`` counts as closed. One that decays more slowly than dim^(−½) may be called open,
    and one that falls much faster than 1/dim onto a constant below ``threshold``, closed.

    Args:
        triple: the problem.
        dims: two or more dimensions.
        step: c in δ = c/dim.
        time: how long SGD runs to find different parameters, in units of dim/step samples.
        states: parameters compared at each level; many show the trend in dim, which single ones
            hide: with a dozen, sets that are not closed stay undecided.
        levels: number of targets u*.
        samples: for the drifts at the first look, rounded up to a multiple of 80.
        budget: most samples for the drifts.
        threshold: unexplained variance / mean square of the drift that must be excluded before a
            set is called closed; samples needed are proportional to its inverse.
        error_rate: bounds two probabilities, both given the parameters compared: that of 'not
            closed' if the drift is a function of u at the largest dim (noise symmetric); and that
            the resolution of a statistic is below ``threshold`` if its unexplained variance there
            is above (means of batches normal). Bounds in the limit have as many standard errors as
            this asks of a normal law, and assume a trend of the kind fitted.
        seed: of everything random.

    >>> from jax import numpy as jnp, random
    >>> def triple(statistics):  # coordinates of two kinds, with curvatures 1 and 3
    ...     def loss(x, y):
    ...         return jnp.sum(jnp.where(jnp.arange(len(x)) % 2, 1.0, 3.0) * (x - y) ** 2) / 2
    ...     def normal(key, dim):
    ...         return random.normal(key, (dim,)) / jnp.sqrt(dim)
    ...     return Triple(loss, normal, statistics, normal)
    >>> norm = triple(lambda x, dim: jnp.stack([x @ x]))
    >>> closability(norm, (20, 160), step=0.5, samples=400).verdict
    'not closed'
    >>> norms = triple(lambda x, dim: jnp.stack([x[::2] @ x[::2], x[1::2] @ x[1::2]]))
    >>> closability(norms, (20, 160), step=0.5, samples=400).verdict
    'closed'
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
    budget = _checks.integer("budget", budget, least=samples)
    threshold = _checks.fraction("threshold", threshold)
    error_rate = _checks.fraction("error_rate", error_rate)
    seed = _checks.integer("seed", seed, least=0)
    dims, names = triple.check_dims(dims, least=2)
    looks = _looks(samples, budget)
    rates = (error_rate / len(names) / len(looks), error_rate / len(looks))
    width = float(stats.norm.ppf(1 - rates[0]))
    found = []
    for level in same_levels(
        triple, dims, step, time, states, seed, targets=levels, enrich=samples
    ):
        kept = level.arrived.sum(axis=1)
        if np.max(kept) < FEWEST:
            raise _checks.InputError(
                f"states={states} is not allowed: only {int(np.max(kept))} of them could be moved "
                f"to the same statistics at dim={level.dim}; take more, or another time or init"
            )
        found.append(_Remainder(triple, level, step, rates, seed))
    last = found[-1]
    for look in looks:
        for one in found:
            one.sample(look)
        seen = last.seen
        falls = [_fall(found, i) for i in range(len(names))]
        slopes = np.array([fall.slope for fall in falls]), np.array([fall.error for fall in falls])
        bounds = [_limit(found, i, width) for i in range(len(names))]
        lower, upper, noise = (np.array(side) for side in zip(*bounds, strict=True))
        opened = seen & (lower > ROUNDING * last.scale)
        vanishes = (slopes[0] + 2 * slopes[1] < DECAY) & (upper < threshold * last.scale)
        closed = np.where(seen, vanishes & ~opened, last.resolution < threshold)
        blunt = ~seen & ~closed
        idle = seen & (2 * noise < IDLE * (upper - lower))
        if np.any(opened) or np.all(closed | idle):
            break
    vague = seen & ~closed & ~opened
    needed = math.ceil(look * np.max(last.resolution[blunt]) / threshold) if blunt.any() else None
    return Closability(
        names=names,
        dims=dims,
        unexplained=Estimate(
            np.stack([one.evidence.value for one in found]),
            np.stack([one.evidence.error for one in found]),
        ),
        mean_square=np.stack([one.scale for one in found]),
        exponent=Estimate(*slopes),
        lower=lower,
        upper=upper,
        states=np.array([int(one.reached.sum()) for one in found]),
        open_statistics=_chosen(names, opened),
        undecided_statistics=_chosen(names, blunt | vague),
        threshold=threshold,
        resolution=last.resolution,
        error_rate=error_rate,
        samples=look,
        samples_needed=needed,
    )


class _Remainder:
    """What is known of the unexplained variance at one dim, as samples come in."""

    def __init__(
        self, triple: Triple, level: Level, step: float, rates: tuple[float, float], seed: int
    ):
        self.triple, self.level, self.step, self.rates, self.seed = triple, level, step, rates, seed
        self.reached = level.arrived & (level.arrived.sum(axis=1, keepdims=True) >= FEWEST)
        self.samples, self.looks = 0, 0
        self.parts: np.ndarray | float = 0.0

    def sample(self, samples: int) -> None:
        """Add samples until there are so many at each state."""
        dim, new = self.level.dim, samples - self.samples
        seed = derived(self.seed, "drift", self.looks)
        parts = generator_parts(self.triple, dim, self.level.states, new, seed)
        both = np.stack([-np.asarray(parts.first), self.step / dim / 2 * np.asarray(parts.second)])
        both = both.reshape(2, BATCHES, *self.reached.shape, -1)
        if not np.all(np.isfinite(both[:, :, self.reached])):
            raise _checks.InputError(
                f"loss is not allowed: its gradients are not finite at dim={dim}"
            )
        self.parts = (self.samples * self.parts + new * both) / samples
        self.samples, self.looks = samples, self.looks + 1
        self._weigh(self.parts)

    def _weigh(self, parts: Float[np.ndarray, "2 batches levels states k"]) -> None:
        drift = parts.sum(axis=0)
        mask = self.reached[..., None]
        count = self.reached.sum(axis=1)[:, None, None]
        mean = np.where(mask, drift, 0.0).sum(axis=2, keepdims=True) / np.maximum(count, 1)
        self.centred = np.where(mask, drift - mean, 0.0)
        self.freedom = int(np.sum(np.maximum(count - 1, 0)))
        flat = self.centred.reshape(BATCHES, -1, drift.shape[-1])
        level, miss = self.rates
        seed = derived(self.seed, "signs", self.looks)
        test = evidence(flat, level=level, miss=miss, seed=seed)
        self.evidence: Evidence = test.scaled(1 / self.freedom)
        # of both parts, not of their sum, which vanishes where they are in balance
        used = np.concatenate([part[:, self.reached] for part in parts], axis=1)
        size = evidence(used, level=level, miss=miss, seed=seed).scaled(2 / used.shape[1])
        self.scale = np.maximum(size.value, 0.0)
        # the mean square as small as it may be, so that noise in it does not feign resolution
        least = np.maximum(size.value - 2 * size.error, size.error / 10)
        most = self.evidence.upper
        self.resolution = np.where(most > 0, most / np.where(least > 0, least, np.nan), 0.0)
        self.seen: Bool[np.ndarray, " k"] = self.evidence.seen & (
            self.evidence.value > ROUNDING * self.scale
        )

    def of_each_state(self, statistic: int) -> Float[np.ndarray, " states"]:
        """What each of the states adds to the unexplained variance of one statistic."""
        parts = self.centred[..., statistic].reshape(BATCHES, -1)
        squares = parts.sum(axis=0) ** 2 - (parts**2).sum(axis=0)
        return squares / (BATCHES * (BATCHES - 1)) / self.freedom


def _fall(remainders: Sequence[_Remainder], statistic: int) -> Trend:
    """How one remainder changes with dim, over the dims at which it is seen."""
    dims, values, errors, shares = _over_dims(remainders, statistic)
    replicas = shares.sum(axis=0) - shares
    shown = np.where(values > 2 * errors, values, 0.0)
    return exponent(dims, shown, errors=errors, replicas=replicas, limit=False)


def _limit(remainders: Sequence[_Remainder], statistic: int, width: float) -> Bounds:
    """Between what one remainder lies as dim → ∞."""
    dims, values, errors, shares = _over_dims(remainders, statistic)
    return limit(dims, values, errors=errors, shares=shares, width=width)


def _over_dims(
    remainders: Sequence[_Remainder], statistic: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Dims, unexplained variances, their errors, and what each of the states adds to them."""
    return (
        np.array([one.level.dim for one in remainders], dtype=float),
        np.array([one.evidence.value[statistic] for one in remainders]),
        np.array([one.evidence.error[statistic] for one in remainders]),
        np.stack([one.of_each_state(statistic) for one in remainders], axis=1),
    )


def _looks(samples: int, budget: int) -> list[int]:
    looks = [samples]
    while looks[-1] < budget:
        looks.append(min(GROWTH * looks[-1], budget))
    return looks


def _chosen(names: tuple[str, ...], which: np.ndarray) -> tuple[str, ...]:
    return tuple(name for name, chosen in zip(names, which, strict=True) if chosen)


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %"
