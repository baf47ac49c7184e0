"""Localizability: do the sizes that the limit theorem asks for scale as they should?"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, Number, WholeNumber, Word
from sgdlimits.triples.averages import BATCHES, averages, derived
from sgdlimits.triples.generator import estimate
from sgdlimits.triples.levels import same_levels
from sgdlimits.triples.scaling import exponent
from sgdlimits.triples.triple import Params, Triple, derivatives

POWER_STEPS = 30  # of the power iterations for operator norms
SEEN = 2.0  # standard errors above zero at which a size is more than noise
SLACK = 0.15  # by which a fitted exponent may exceed its bound: dims are finite

# What is bounded, as a norm, and the exponent b in the bound C·δ^(−b); strict for o(δ^(−b)).
BOUNDS = {
    "hessian": ("‖∇²u‖ ≤ C δ^(−1/2)", 0.5, False),
    "third_derivative": ("‖∇³u‖ ≤ C", 0.0, False),
    "population_gradient": ("‖∇Φ‖ ≤ C", 0.0, False),
    "gradient_noise": ("E[‖∇H‖⁸]^(1/8) ≤ C δ^(−1/2)", 0.5, False),
    "noise_along_gradients": ("E[⟨∇H, ∇u⟩⁴]^(1/4) ≤ C δ^(−1/2)", 0.5, False),
    "noise_of_second_order": ("E[⟨∇²u, ∇H⊗∇H − V⟩²]^(1/2) = o(δ^(−3/2))", 1.5, True),
}


class Condition(NamedTuple):
    """One condition of the definition, with its evidence."""

    name: str
    statement: str
    sizes: np.ndarray  # the largest over states and statistics, at each dim
    errors: np.ndarray  # of the sizes, from independent batches of samples
    exponent: Estimate  # e in size ~ δ^(−e) as δ → 0; −inf if the size is zero
    bound: float
    verdict: str  # 'holds', 'fails' or 'undecided'

    @property
    def holds(self) -> bool:
        """Whether the verdict is 'holds': neither 'fails' nor 'undecided'."""
        return self.verdict == "holds"

    def __repr__(self) -> str:
        word = {"holds": "holds", "fails": "FAILS", "undecided": "undecided"}[self.verdict]
        return (
            f"{word}  {self.statement}: exponent {float(self.exponent.value):.2f} ± "
            f"{float(self.exponent.error):.2f}, bound {self.bound:g}"
        )


class Localizability(NamedTuple):
    """All conditions of the definition, each at every dim."""

    dims: tuple[int, ...]
    conditions: tuple[Condition, ...]

    @property
    def verdict(self) -> str:
        """'fails' if one condition fails, 'holds' if all hold, else 'undecided'."""
        verdicts = {condition.verdict for condition in self.conditions}
        if "fails" in verdicts:
            return "fails"
        return "undecided" if "undecided" in verdicts else "holds"

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return self.verdict == "holds"

    @property
    def report(self) -> str:
        """One line for each condition, and what would decide those that are undecided."""
        lines = [repr(condition) for condition in self.conditions]
        if any(condition.verdict == "undecided" for condition in self.conditions):
            more = "three or more dims" if len(self.dims) == 2 else "larger dims, further apart"
            lines.append(f"undecided conditions need {more}, or more samples and states")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"localizability {self.verdict}, dims={self.dims}\n{self.report}"

    def condition(self, name: Word) -> Condition:
        """The condition of this name, such as "hessian" or "gradient_noise"."""
        name = _checks.choice("name", name, list(BOUNDS))
        return next(condition for condition in self.conditions if condition.name == name)


@double_precision
def localizability(
    triple: Triple,
    dims: Sequence[int],
    step: Number,
    *,
    time: Number = 2.0,
    states: WholeNumber = 12,
    samples: WholeNumber = 400,
    seed: WholeNumber = 0,
) -> Localizability:
    r"""Estimate the quantities of the definition on a sampled region and fit their exponents in δ.

    The triple is δ-localizable if on u⁻¹(compact), with H = L − Φ and V = E[∇H⊗∇H] (BGHJ23,
    Definition 5.3, which corrects BGJ22, Definition 2.1),

    1. ‖∇²u_i‖ ≤ C δ^(−1/2) and ‖∇³u_i‖ ≤ C, in operator norm;
    2. ‖∇Φ‖ ≤ C and E‖∇H‖⁸ ≤ C δ⁻⁴;
    3. E⟨∇H, ∇u_i⟩⁴ ≤ C δ⁻² and E⟨∇²u_i, ∇H⊗∇H − V⟩² = o(δ⁻³).

    Moments are reported as norms, E[·ᵖ]^(1/p), so that all exponents have the same accuracy. The
    largest over sampled states and statistics stands for the supremum. The states are what SGD
    visits, see ``visited``, moved to the same values of u at every dim: the compact set is fixed.
    Operator norms are by power iteration; what the last third of it still adds is their error.

    The exponent e in δ^(−e) is that of the limit: a correction of the power law at finite dims is
    fitted with it, and its error covers the trend, see ``scaling.exponent``. A condition *holds* if
    e plus its error is at most the bound + 0.15, it *fails* if e less its error is above that, and
    is *undecided* otherwise; for 'o' the bound − 0.15 takes the place of the bound + 0.15.
    A population gradient that is not seen beside the noise holds if it is surely smaller than δ^½
    times the gradient noise. Evidence, no proof.

    Args:
        triple: the problem.
        dims: two or more dimensions.
        step: c in δ = c/dim.
        time: how long SGD runs to find the region, in units of dim/step samples.
        states: parameters in the region.
        samples: for expectations, rounded up to a multiple of 20.
        seed: of everything random.

    >>> from jax import numpy as jnp, random
    >>> def normal(key, dim):
    ...     return random.normal(key, (dim,))
    >>> triple = Triple(
    ...     loss=lambda x, y: jnp.sum((x - y) ** 2) / 2,
    ...     sample=normal,
    ...     statistics=lambda x, dim: jnp.stack([dim * (x @ x)]),
    ...     init=lambda key, dim: normal(key, dim) / jnp.sqrt(dim),
    ... )
    >>> localizability(triple, (30, 100, 300), step=1.0, time=0.0).condition("hessian")
    FAILS  ‖∇²u‖ ≤ C δ^(−1/2): exponent 1.00 ± 0.01, bound 0.5
    """
    if not isinstance(triple, Triple):
        raise _checks.InputError(
            f"triple={triple!r} is not allowed: triple must be an sgdlimits.Triple"
        )
    step = _checks.positive("step", step)
    time = _checks.nonnegative("time", time)
    states = _checks.integer("states", states, least=1)
    samples = _checks.integer("samples", samples, least=2 * BATCHES)
    seed = _checks.integer("seed", seed, least=0)
    dims, _ = triple.check_dims(dims, least=2)
    rows: list[dict[str, Estimate]] = []
    kept = np.ones(states, dtype=bool)
    for dim, pool, arrived in same_levels(triple, dims, step, time, states, seed):
        kept &= arrived.ravel()
        row = _sizes(triple, dim, pool, samples, seed)
        if not all(np.all(np.isfinite(size.value[kept])) for size in row.values()):
            raise _checks.InputError(
                f"triple is not allowed: derivatives of its loss or statistics are not finite at "
                f"dim={dim}"
            )
        rows.append(row)
    if not np.any(kept):
        raise _checks.InputError(
            f"states={states} is not allowed: none of them could be moved to the same statistics "
            f"at all of dims={dims}; take more, or another time or init"
        )
    inverse = np.array(dims) / step  # 1/δ
    unit = np.array([np.max(row["gradient_noise"].value[kept]) for row in rows]) / np.sqrt(inverse)
    conditions = []
    for name in BOUNDS:
        values, errors = (np.stack([row[name][i][kept] for row in rows]) for i in range(2))
        conditions.append(_condition(name, inverse, values, errors, unit))
    return Localizability(dims, tuple(conditions))


def _condition(
    name: str,
    inverse: Float[np.ndarray, " dims"],
    values: Float[np.ndarray, "dims states"],
    errors: Float[np.ndarray, "dims states"],
    unit: Float[np.ndarray, " dims"],
) -> Condition:
    statement, bound, strict = BOUNDS[name]
    largest = np.argmax(values, axis=1)[:, None]
    sizes = np.take_along_axis(values, largest, 1)[:, 0]
    noise = np.take_along_axis(errors, largest, 1)[:, 0]
    replicas = None
    if values.shape[1] > 1:
        replicas = np.stack(
            [np.delete(values, s, axis=1).max(axis=1) for s in range(values.shape[1])]
        )
    fit = exponent(inverse, sizes, errors=noise, replicas=replicas)
    slack = bound + (-SLACK if strict else SLACK)
    if np.any((sizes > 0) & (sizes < SEEN * noise)) or np.isnan(fit.slope):  # noise has no exponent
        small = name == "population_gradient" and np.all(sizes + SEEN * noise < unit)
        verdict = "holds" if small else "undecided"
    elif fit.slope + fit.error <= slack:
        verdict = "holds"
    else:
        verdict = "fails" if fit.slope - fit.error > slack else "undecided"
    slope = Estimate(np.asarray(fit.slope), np.asarray(fit.error))
    return Condition(name, statement, sizes, noise, slope, bound, verdict)


def _sizes(triple: Triple, dim: int, pool: Params, samples: int, seed: int) -> dict[str, Estimate]:
    """Every size at every state, the largest over the statistics, with its standard error."""
    norms = _operator_norms(triple, dim, pool, jax.random.key(derived(seed, "power")))
    hessian, third = (np.asarray(n).max(axis=1) for n in norms)  # states, (final, change)
    means = averages(_gradients, triple, dim, pool, samples, derived(seed, "mean"))
    means = jax.tree.map(np.asarray, means)
    leaves = [leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(means)]
    flat = np.concatenate(leaves, axis=-1)  # batches, states, parameters
    square = _cross_square(flat)
    leave = np.stack([_cross_square(np.delete(flat, b, axis=0)) for b in range(BATCHES)])
    spread = np.sqrt((BATCHES - 1) * leave.var(axis=0))
    centre = jax.tree.map(lambda x: jnp.asarray(x.mean(axis=0)), means)
    moments = averages(_noise, triple, dim, (pool, centre), samples, derived(seed, "noise"))
    eighth, fourth, second, first = (np.asarray(m) for m in moments)
    return {
        "hessian": Estimate(*hessian.T),
        "third_derivative": Estimate(*third.T),
        "population_gradient": _root(Estimate(square, spread), 2),
        "gradient_noise": _root(estimate(eighth), 8),
        "noise_along_gradients": _largest(_root(estimate(fourth), 4)),
        "noise_of_second_order": _largest(_root(estimate(second - first**2), 2)),
    }


def _cross_square(batches: np.ndarray) -> np.ndarray:
    """|mean|², by products of different batches: the noise of the mean drops out."""
    count = len(batches)
    total = np.sum(batches.sum(axis=0) ** 2, -1) - np.sum(batches**2, (0, -1))
    return total / (count * (count - 1))


def _root(moment: Estimate, power: int) -> Estimate:
    """value^(1/power) and its error; of a value within its error, the root of the error."""
    value, error = (np.asarray(part) for part in moment)
    root = np.maximum(value, 0.0) ** (1 / power)
    safe = np.where(value > error, value, 1.0)
    own = np.where(value > error, error / power * safe ** (1 / power - 1), error ** (1 / power))
    return Estimate(root, own)


def _largest(sizes: Estimate) -> Estimate:
    which = np.argmax(sizes.value, axis=1)[:, None]
    return Estimate(*(np.take_along_axis(np.asarray(part), which, 1)[:, 0] for part in sizes))


def _gradients(triple: Triple, dim: int, states: Params, datum: Any) -> Params:  # noqa: ARG001
    return jax.vmap(lambda params: jax.grad(triple.loss)(params, datum))(states)


def _noise(
    triple: Triple, dim: int, states: tuple[Params, Params], datum: Any
) -> tuple[Array, Array, Array, Array]:
    """‖∇H‖⁸, ⟨∇H, ∇u⟩⁴, and the square and value of ∇Hᵀ∇²u∇H, at every state."""

    def at(params: Params, centre: Params) -> tuple[Array, Array, Array, Array]:
        gradient = jax.grad(triple.loss)(params, datum)
        noise = jax.tree.map(jnp.subtract, gradient, centre)
        along, curved = derivatives(triple, dim, params, noise)
        norm = jnp.sum(ravel_pytree(noise)[0] ** 2)
        return norm**4, along**4, curved**2, curved

    return jax.vmap(at)(*states)


@compiled
def _operator_norms(triple: Triple, dim: int, pool: Params, key: Any) -> tuple[Array, Array]:
    """‖∇²u_i‖ and ‖∇³u_i‖ at every state: w ← ∇²u·w, and w ← ∇³u(w, w, ·), normalised."""
    unravel = ravel_pytree(jax.tree.map(lambda x: x[0], pool))[1]

    def norms(x: Float[Array, " p"]) -> tuple[Array, Array]:
        def one(i: Array) -> tuple[Array, Array]:
            def gradient(y: Array) -> Array:
                return jax.grad(lambda z: triple.statistics(unravel(z), dim)[i])(y)

            def second(w: Array) -> Array:
                return jax.jvp(gradient, (x,), (w,))[1]

            def third(w: Array) -> Array:
                return jax.jvp(lambda y: jax.jvp(gradient, (y,), (w,))[1], (x,), (w,))[1]

            return _power(second, x, key), _power(third, x, key)

        size = triple.statistics(unravel(x), dim).shape[0]
        return jax.lax.map(one, jnp.arange(size))

    return jax.vmap(norms)(jax.vmap(lambda p: ravel_pytree(p)[0])(pool))


def _power(apply: Any, x: Float[Array, " p"], key: Any) -> Float[Array, "2"]:
    """The norm, and by how much the last third of the steps has changed it."""
    start = jax.random.normal(key, x.shape)

    def unit(w: Array) -> Array:
        return w / jnp.maximum(jnp.linalg.norm(w), 1e-300)

    def improve(w: Array, _: None) -> tuple[Array, Array]:
        image = apply(w)
        size = jnp.linalg.norm(image)
        return jnp.where(size > 0, unit(image), w), size

    _, sizes = jax.lax.scan(improve, unit(start), None, length=POWER_STEPS)
    best = jnp.max(sizes)
    return jnp.stack([best, best - jnp.max(sizes[: 2 * POWER_STEPS // 3])])
