"""Localizability: do the sizes that the limit theorem asks for scale as they should?"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, Number, WholeNumber, Word
from sgdlimits.triples.averages import BATCHES, averages
from sgdlimits.triples.levels import same_levels
from sgdlimits.triples.scaling import exponent
from sgdlimits.triples.triple import Params, Triple, derivatives

POWER_STEPS = 30  # of the power iterations for operator norms
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
    exponent: Estimate  # e in size ~ δ^(−e); −inf if the size is zero
    bound: float
    holds: bool


class Localizability(NamedTuple):
    """All conditions of the definition, each at every dim."""

    dims: tuple[int, ...]
    conditions: tuple[Condition, ...]

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return all(condition.holds for condition in self.conditions)

    @property
    def report(self) -> str:
        """One line for each condition."""
        return "\n".join(
            f"{'holds' if c.holds else 'FAILS'}  {c.statement}: exponent "
            f"{float(c.exponent.value):.2f} ± {float(c.exponent.error):.2f}, bound {c.bound:g}"
            for c in self.conditions
        )

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
    Operator norms are by power iteration, lower bounds that are sharp in practice. A condition
    holds if the fitted exponent e in δ^(−e) is at most the bound + 0.15 (for 'o': at most the
    bound − 0.15): evidence from finite dims, no proof.

    Args:
        triple: the problem.
        dims: two or more dimensions.
        step: c in δ = c/dim.
        time: how long SGD runs to find the region, in units of dim/step samples.
        states: parameters in the region.
        samples: for expectations, rounded up to a multiple of 20.
        seed: of everything random.
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
    rows: list[dict[str, float]] = []
    for dim, pool, arrived in same_levels(triple, dims, step, time, states, seed):
        if not np.any(arrived):
            raise _checks.InputError(
                f"states={states} is not allowed: none of them could be moved to the same "
                f"statistics at dim={dim}; take more, or another time or init"
            )
        some = arrived.ravel()
        pool = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[some]), pool)
        row = _sizes(triple, dim, pool, samples, seed + 1)
        if not np.all(np.isfinite(list(row.values()))):
            raise _checks.InputError(
                f"triple is not allowed: derivatives of its loss or statistics are not finite at "
                f"dim={dim}"
            )
        rows.append(row)
    inverse = np.array(dims) / step  # 1/δ
    conditions = []
    for name, (statement, bound, strict) in BOUNDS.items():
        sizes = np.array([row[name] for row in rows])
        fit = exponent(inverse, sizes)
        holds = bool(fit.value <= bound + (-SLACK if strict else SLACK))
        conditions.append(Condition(name, statement, sizes, fit, bound, holds))
    return Localizability(dims, tuple(conditions))


def _sizes(triple: Triple, dim: int, pool: Params, samples: int, seed: int) -> dict[str, float]:
    hessian, third = _operator_norms(triple, dim, pool, jax.random.key(seed))
    means = averages(_gradients, triple, dim, pool, samples, seed)
    means = jax.tree.map(np.asarray, means)
    leaves = [leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(means)]
    flat = np.concatenate(leaves, axis=-1)  # batches, states, parameters
    total = flat.sum(axis=0)  # products of different batches: the noise of the mean drops out
    square = (np.sum(total**2, -1) - np.sum(flat**2, (0, -1))) / (BATCHES * (BATCHES - 1))
    centre = jax.tree.map(lambda x: jnp.asarray(x.mean(axis=0)), means)
    moments = averages(_noise, triple, dim, (pool, centre), samples, seed + 1)
    eighth, fourth, second, first = (np.asarray(m).mean(axis=0) for m in moments)
    return {
        "hessian": float(np.max(hessian)),
        "third_derivative": float(np.max(third)),
        "population_gradient": float(np.sqrt(np.maximum(np.max(square), 0.0))),
        "gradient_noise": float(np.max(eighth)) ** (1 / 8),
        "noise_along_gradients": float(np.max(fourth)) ** (1 / 4),
        "noise_of_second_order": float(np.sqrt(np.maximum(np.max(second - first**2), 0.0))),
    }


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


@eqx.filter_jit
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


def _power(apply: Any, x: Float[Array, " p"], key: Any) -> Float[Array, ""]:
    start = jax.random.normal(key, x.shape)

    def unit(w: Array) -> Array:
        return w / jnp.maximum(jnp.linalg.norm(w), 1e-300)

    def improve(w: Array, _: None) -> tuple[Array, Array]:
        image = apply(w)
        size = jnp.linalg.norm(image)
        return jnp.where(size > 0, unit(image), w), size

    _, sizes = jax.lax.scan(improve, unit(start), None, length=POWER_STEPS)
    return jnp.max(sizes)
