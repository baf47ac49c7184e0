"""The critical scaling of the step size: where the corrector becomes of order one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, WholeNumber
from sgdlimits.triples.averages import BATCHES, derived
from sgdlimits.triples.evidence import evidence
from sgdlimits.triples.generator import generator_parts
from sgdlimits.triples.levels import same_levels
from sgdlimits.triples.scaling import Trend, exponent
from sgdlimits.triples.triple import Triple

FEWEST = 3  # states for a standard error
LEVEL = 0.01  # probability that a corrector is seen in any statistic where there is none


class CriticalStep(NamedTuple):
    """β in δ = dim^(−β), and what it rests on.

    Which number to trust: ``exponent``, and ``exponents`` of single statistics, whose errors cover
    how the slope changes with dim. ``plain`` is the slope over these dims, often off by more than
    its scatter shows. With two dims no trend is seen: take three, far apart.
    """

    names: tuple[str, ...]
    dims: tuple[int, ...]
    exponent: Estimate  # β in the limit of large dims: the largest over the statistics
    statistic: str | None  # whose corrector is the first to count; None if none is seen
    exponents: Estimate  # of each statistic; −inf where no corrector is seen, nan where unknown
    sizes: Estimate  # root mean square of ½⟨V, ∇²u⟩ over the states: (dims, statistics)
    resolution: np.ndarray  # the least size that would be seen with probability 0.99
    plain: np.ndarray  # exponents over these dims, without correction for their size
    undecided_statistics: tuple[str, ...]  # with a corrector that is seen at one dim only
    statement: str

    def __repr__(self) -> str:
        lines = [self.statement]
        for i, name in enumerate(self.names):
            value, error = (float(part[i]) for part in self.exponents)
            if np.isfinite(value):
                words = f"exponent {value:.2f} ± {error:.2f}, over these dims {self.plain[i]:.2f}"
            elif name in self.undecided_statistics:
                words = "undecided, its corrector is seen at one dim only: take more samples"
            else:
                words = f"no corrector above {self.resolution[-1, i]:.2g} at dim={self.dims[-1]}"
            lines.append(f"  {name}: {words}")
        if np.any(np.isfinite(self.exponents.value)):
            lines.append(
                "  to trust: exponents with their errors, which cover the trend in dim; slopes "
                "over these dims do not"
            )
        return "\n".join(lines)


@double_precision
def critical_step(
    triple: Triple,
    dims: Sequence[int],
    *,
    states: WholeNumber = 12,
    samples: WholeNumber = 400,
    seed: WholeNumber = 0,
) -> CriticalStep:
    r"""The exponent β for which δ = dim^(−β) makes the corrector δ𝓛u = ½δ⟨V, ∇²u⟩ of order one.

    If ½⟨V, ∇²u⟩ grows like dim^β at parameters of order one, steps δ ≪ dim^(−β) are sub-critical:
    the corrector vanishes and SGD follows gradient flow on the population loss, du = −f(u) dt. At
    δ ~ dim^(−β) the corrector counts. There is no super-critical regime (BGJ22, section 2.1).

    The size is the root mean square over draws of the initial law, each array of the parameters
    rescaled by a factor uniform in [½, 3/2], and moved to the same values of u at every dim. A
    corrector is seen at a dim if random signs of independent batches of samples give as large a
    one with probability at most 0.01, over all dims and statistics together.

    At finite dims the size is A·dim^β·(1 + b·dim^(−p) + …). The correction is fitted too: β is that
    for p = ½, and its error, one standard error, covers how it changes with p = ¼ and p = 1, what
    the dims cannot tell about b, and the scatter over states and samples. Two dims tell nothing
    about b, three or more do. Of several statistics the one is named whose exponent less its error
    is the largest.

    Args:
        triple: the problem.
        dims: two or more dimensions; three or more, far apart, give a small error.
        states: parameters at which the corrector is measured.
        samples: at each of them, rounded up to a multiple of 20.
        seed: of everything random.

    >>> from jax import numpy as jnp, random
    >>> def normal(key, dim):
    ...     return random.normal(key, (dim,))
    >>> triple = Triple(
    ...     loss=lambda x, y: jnp.sum((x - y) ** 2) / 2,
    ...     sample=normal,
    ...     statistics=lambda x, dim: jnp.stack([x[0], x @ x + 3 * x[1] ** 2]),
    ...     init=lambda key, dim: normal(key, dim) / jnp.sqrt(dim),
    ...     names=["first", "norm"],
    ... )
    >>> critical_step(triple, (30, 100, 300), samples=4000).statistic
    'norm'
    """
    if not isinstance(triple, Triple):
        raise _checks.InputError(
            f"triple={triple!r} is not allowed: triple must be an sgdlimits.Triple"
        )
    states = _checks.integer("states", states, least=FEWEST)
    samples = _checks.integer("samples", samples, least=2 * BATCHES)
    seed = _checks.integer("seed", seed, least=0)
    dims, names = triple.check_dims(dims, least=2)
    measured, kept = [], np.ones(states, dtype=bool)
    for dim, pool, arrived in same_levels(triple, dims, 1.0, 0.0, states, seed):
        kept &= arrived.ravel()
        parts = generator_parts(triple, dim, pool, samples, derived(seed, "corrector"))
        measured.append(np.asarray(parts.second) / 2)
        if not np.all(np.isfinite(measured[-1])):
            raise _checks.InputError(
                f"loss is not allowed: its gradients are not finite at dim={dim}"
            )
    count = int(np.sum(kept))
    if count < FEWEST:
        raise _checks.InputError(
            f"states={states} is not allowed: only {count} of them could be moved to the same "
            f"statistics at all of dims={dims}; take more, or another init"
        )
    level = LEVEL / len(names) / len(dims)
    signs = derived(seed, "signs")
    halves = [half[:, kept] for half in measured]
    tests = [evidence(h, level=level, miss=0.01, seed=signs).scaled(1 / count) for h in halves]
    squares = np.stack([np.where(test.seen, np.maximum(test.value, 0.0), 0.0) for test in tests])
    sizes = np.sqrt(squares)
    safe = 2 * np.where(sizes > 0, sizes, np.inf)
    errors = np.stack([test.error for test in tests]) / safe
    without = np.sqrt(np.stack([_without_each_state(half) for half in halves], axis=1))
    fits = [
        exponent(
            np.array(dims, dtype=float), sizes[:, i], errors=errors[:, i], replicas=without[..., i]
        )
        for i in range(len(names))
    ]
    slope, error = np.array([fit.slope for fit in fits]), np.array([fit.error for fit in fits])
    best = int(np.argmax(np.where(np.isfinite(slope), slope - error, -np.inf)))
    seen = bool(np.isfinite(slope[best]))
    beta = Estimate(*np.array([slope[best], error[best]] if seen else [-np.inf, 0.0]))
    statistic = names[best] if seen else None
    unknown = tuple(name for name, fit in zip(names, fits, strict=True) if np.isnan(fit.slope))
    scatter = np.stack([_scatter(one) for one in np.moveaxis(without, 1, 0)])
    return CriticalStep(
        names=names,
        dims=dims,
        exponent=beta,
        statistic=statistic,
        exponents=Estimate(slope, error),
        sizes=Estimate(sizes, np.where(sizes > 0, np.hypot(errors, scatter), 0.0)),
        resolution=np.sqrt(np.stack([test.detectable for test in tests])),
        plain=np.array([fit.plain for fit in fits]),
        undecided_statistics=unknown,
        statement=_statement(beta, fits[best], statistic, dims, unknown),
    )


def _without_each_state(
    half: Float[np.ndarray, "batches states k"],
) -> Float[np.ndarray, "states k"]:
    """The mean square over all states but one: products of batches, so that noise drops out."""
    squares = (half.sum(axis=0) ** 2 - (half**2).sum(axis=0)) / (BATCHES * (BATCHES - 1))
    return np.maximum(squares.sum(axis=0) - squares, 0.0) / (len(squares) - 1)


def _scatter(without: Float[np.ndarray, "states k"]) -> Float[np.ndarray, " k"]:
    return np.sqrt((len(without) - 1) * without.var(axis=0))


def _statement(
    beta: Estimate,
    fit: Trend,
    statistic: str | None,
    dims: tuple[int, ...],
    unknown: tuple[str, ...],
) -> str:
    if statistic is None and unknown:
        return (
            f"undecided: the corrector of {', '.join(unknown)} is seen at one of dims={dims} only; "
            "take more samples"
        )
    if statistic is None:
        return (
            "no corrector is seen in any statistic: every step size at which the limit exists is "
            "sub-critical, and the statistics follow gradient flow on the population loss"
        )
    value = f"{float(beta.value):.2f}"
    basis = (
        "two dims, which show no trend: three or more would"
        if len(dims) == 2
        else f"a plain power law over these dims has {fit.plain:.2f}"
    )
    return (
        f"the corrector of {statistic} is of order one at steps ~ dim^(-{value} ± "
        f"{float(beta.error):.2f}), extrapolated from dims={dims} ({basis}); steps much smaller "
        f"than dim^(-{value}) are sub-critical: the statistics follow gradient flow on the "
        "population loss, without corrector"
    )
