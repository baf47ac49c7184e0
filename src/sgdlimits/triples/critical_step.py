"""The critical scaling of the step size: where the corrector becomes of order one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, WholeNumber
from sgdlimits.triples.averages import BATCHES
from sgdlimits.triples.generator import estimate, generator_parts
from sgdlimits.triples.levels import same_levels
from sgdlimits.triples.scaling import exponent
from sgdlimits.triples.triple import Triple

FEWEST = 3  # states for a standard error


class CriticalStep(NamedTuple):
    """β in δ = dim^(−β), and what it rests on."""

    names: tuple[str, ...]
    dims: tuple[int, ...]
    exponent: Estimate  # β: the largest over the statistics
    statistic: str | None  # whose corrector is the first to count; None if all vanish
    exponents: Estimate  # of each statistic; −inf where the corrector vanishes
    sizes: Estimate  # root mean square of ½⟨V, ∇²u⟩ over the states: (dims, statistics)
    statement: str


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
    rescaled by a factor uniform in [½, 3/2], and moved to the same values of u at every dim. The
    standard error is a jackknife over the states.

    Args:
        triple: the problem.
        dims: two or more dimensions; far apart gives a small error.
        states: parameters at which the corrector is measured.
        samples: at each of them, rounded up to a multiple of 20.
        seed: of everything random.
    """
    if not isinstance(triple, Triple):
        raise _checks.InputError(
            f"triple={triple!r} is not allowed: triple must be an sgdlimits.Triple"
        )
    states = _checks.integer("states", states, least=FEWEST)
    samples = _checks.integer("samples", samples, least=2 * BATCHES)
    seed = _checks.integer("seed", seed, least=0)
    dims, names = triple.check_dims(dims, least=2)
    squares, kept_everywhere = [], np.ones(states, dtype=bool)
    for dim, pool, arrived in same_levels(triple, dims, 1.0, 0.0, states, seed):
        kept_everywhere &= arrived.ravel()
        half = np.asarray(generator_parts(triple, dim, pool, samples, seed + 1).second) / 2
        if not np.all(np.isfinite(half)):
            raise _checks.InputError(
                f"loss is not allowed: its gradients are not finite at dim={dim}"
            )
        mean = estimate(half)
        squares.append(np.where(np.abs(mean.value) > 3 * mean.error, mean.value**2, 0.0))
    states = int(np.sum(kept_everywhere))
    if states < FEWEST:
        raise _checks.InputError(
            f"states is not allowed: only {states} of them could be moved to the same statistics "
            f"at all of dims={dims}; take more, or another init"
        )
    # over dims, states and statistics; zero where it is within its error
    square = np.stack(squares)[:, kept_everywhere]
    sizes = np.sqrt(square.mean(axis=1))
    # a corrector counts only if it is seen at every dim: else its exponent is that of noise
    sizes = np.where(np.all(sizes > 0, axis=0), sizes, 0.0)
    full = _exponents(dims, sizes)
    kept = [np.delete(square, s, axis=1).mean(axis=1) for s in range(states)]
    without = np.stack([_exponents(dims, np.sqrt(np.where(sizes > 0, k, 0.0))) for k in kept])
    seen = np.isfinite(full)
    spread = np.where(seen, without - np.where(seen, full, 0.0), 0.0)
    error = np.sqrt((states - 1) / states * np.sum(spread**2, axis=0))
    best = int(np.argmax(full))
    beta = Estimate(full[best], error[best])
    statistic = names[best] if seen[best] else None
    deviation = np.sqrt(np.maximum((square**2).mean(axis=1) - sizes**4, 0) / states)
    return CriticalStep(
        names=names,
        dims=dims,
        exponent=beta,
        statistic=statistic,
        exponents=Estimate(full, error),
        sizes=Estimate(sizes, deviation / (2 * np.maximum(sizes, 1e-300))),
        statement=_statement(beta, statistic),
    )


def _exponents(dims: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
    return np.array([float(exponent(np.array(dims), column).value) for column in sizes.T])


def _statement(beta: Estimate, statistic: str | None) -> str:
    if statistic is None:
        return (
            "no corrector is seen in any statistic: every step size at which the limit exists is "
            "sub-critical, and the statistics follow gradient flow on the population loss"
        )
    value = f"{float(beta.value):.2f}"
    return (
        f"the corrector of {statistic} is of order one at steps ~ dim^(-{value} ± "
        f"{float(beta.error):.2f}); steps much smaller than dim^(-{value}) are sub-critical: "
        "the statistics follow gradient flow on the population loss, without corrector"
    )
