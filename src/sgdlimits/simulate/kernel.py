"""Loops of many short steps as one function of machine code.

XLA runs a program on a processor as a list of kernels, and looks after every one of them each time:
for a step of the chain, arithmetic on a few kilobytes, this takes longer than the arithmetic. A
call that is marked ``xla_cpu_small_call`` is compiled to one function, loops and all. XLA marks
loops over a kilobyte of data so by itself; where the mark means nothing, the loop is only slower.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun
from jaxlib.version import __version__ as jaxlib_version
from jaxtyping import Array, Float

F = TypeVar("F", bound=Callable[..., Any])

WRITTEN_OUT = 6  # rows of products of matrices that are written out as sums, at most

# XLA refuses options that it does not know, so only for the versions that have been tried.
TRIED = jaxlib_version.startswith("0.10.")

OPTIONS: dict[str, Any] = (
    {
        "xla_cpu_prefer_vector_width": 512,  # where there are such registers
        # what is split among threads or left to a library does not compile into one function
        "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
        "xla_cpu_experimental_ynn_fusion_type": "",
    }
    if TRIED
    else {}
)

# What is known to compile into one function. Sorting, scattering, products of matrices and calls
# of other libraries do not: loops that contain them, in a caller's loss say, run as usual.
_NAMES = (
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type "
    "broadcast_in_dim cbrt ceil clamp concatenate cond convert_element_type copy copy_p cos "
    "cosh custom_jvp_call custom_vjp_call digamma div dynamic_slice dynamic_update_slice eq erf "
    "erf_inv erfc exp exp2 expand_dims expm1 floor ge gt integer_pow iota is_finite jit "
    "layout_constraint le lgamma log log1p logistic lt max min mul ne neg nextafter not "
    "optimization_barrier or pad pjit pow reduce_and reduce_max reduce_min reduce_or "
    "reduce_prod reduce_sum rem reshape rev round rsqrt scan select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh slice sqrt square squeeze stack "
    "stop_gradient sub tan tanh transpose unstack while xla_metadata_value xor"
)
_KNOWN = frozenset(_NAMES.split())


def program_of_kernels(function: F) -> F:
    """``eqx.filter_jit`` with the options that :func:`as_one_kernel` needs."""
    options: dict[str, Any] = {"compiler_options": OPTIONS}
    result: Any = eqx.filter_jit(function, **options)
    return result


def as_one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, of arrays, in one function of machine code where XLA can make one.

    For use inside of :func:`program_of_kernels`.
    """

    def called(*args: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        flat = jaxpr_as_fun(traced)
        leaves = jax.tree.leaves(args)
        if TRIED and _all_known(traced.jaxpr):
            # what goes in comes out as well, since XLA does not survive arguments that nothing uses
            program = jax.jit(lambda *leaves: (flat(*leaves), leaves))
            marked = set_xla_metadata(
                program(*leaves), xla_cpu_small_call="true", inlineable="false"
            )
            results, _ = jax.lax.optimization_barrier(marked)
        else:
            results = flat(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return called


def computed_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, of arrays, whose results are kept for all of their uses.

    Without this XLA fuses what is computed into each of its uses, and computes it again for each.
    """

    def called(*args: Any) -> Any:
        program = jax.jit(lambda *args: function(*args))  # a method may hold what cannot be hashed
        return set_xla_metadata(program(*args), inlineable="false")

    return called


def in_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, of arrays, whose results lie in memory row by row, runs next to one another.

    Without this XLA keeps what ``vmap`` transposes as it was computed, and those that read it jump.
    """

    def called(*args: Any) -> Any:
        return jax.tree.map(_row_by_row, function(*args))

    return called


def _row_by_row(x: Array) -> Array:
    result: Array = with_layout_constraint(x, Layout(tuple(range(x.ndim))))
    return result


def only_needed(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, of arrays, without what does not enter its result.

    XLA leaves that out as well, but after it has been asked whether all is known.
    """

    def called(*args: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        needed = {v for v in traced.jaxpr.outvars if not isinstance(v, Literal)}
        kept = []
        for equation in reversed(traced.jaxpr.eqns):
            if needed & set(equation.outvars):
                kept.append(equation)
                needed |= {v for v in equation.invars if not isinstance(v, Literal)}
        pruned = ClosedJaxpr(traced.jaxpr.replace(eqns=kept[::-1]), traced.consts)
        results = jaxpr_as_fun(pruned)(*jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return called


def products_of_rows(
    first: Float[Array, "K m runs"], second: Float[Array, "K m runs"]
) -> Float[Array, "runs K K"]:
    """ABᵀ for every run; few rows are written out, since products of matrices are not known."""
    if len(first) <= WRITTEN_OUT:
        return jnp.moveaxis(jnp.sum(first[:, None] * second[None], axis=2), -1, 0)
    return jnp.einsum("ikn,jkn->nij", first, second)


def _all_known(jaxpr: Jaxpr) -> bool:
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _KNOWN:
            return False
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: isinstance(x, Jaxpr | ClosedJaxpr)
        ):
            inner = parameter.jaxpr if isinstance(parameter, ClosedJaxpr) else parameter
            if isinstance(inner, Jaxpr) and not _all_known(inner):
                return False
    return True
