"""Where a JAX function may have kinks or jumps: read off its own program.

Between switches a function made of smooth primitives is analytic. Switches are read from the
function's jaxpr: ``max(a, b)`` and ``a < b`` switch where a − b changes sign, ``abs(a)`` and
``sign(a)`` where a does. Saturating primitives (tanh, logistic, erf, and exp, which is in many that
people write) have a *bend* there: smooth, but as good as a jump when their argument is large.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core
import jax.numpy as jnp
from jaxtyping import Array, Float

COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne", "max", "min"}
SIGNS = {"abs", "sign"}
BENDS = {"tanh", "logistic", "erf", "erfc", "exp", "atan"}
EXTREMES = {"reduce_max", "reduce_min", "argmax", "argmin"}
MOST_COMPARED = 16  # entries of which an extreme is taken
STEPS = {  # jumps at places that are not zeros of a few functions, or that a loop hides
    *("floor", "ceil", "round", "rem", "sort", "top_k", "scan", "while"),
    *("cond", "cummax", "cummin", "pure_callback"),
}


class Switches(NamedTuple):
    """Values of all switches and bends at a point; a sign change is where one is crossed."""

    hard: Float[Array, " h"]  # the function may have a kink or a jump at their zeros
    soft: Float[Array, " b"]  # it bends there


class UnreadableError(ValueError):
    """A function that switches in a way that is not seen from outside."""


def switches(
    function: Callable[..., Any], moving: Sequence[Any], still: Sequence[Any] = ()
) -> Switches:
    """All switches of ``function(*moving, *still)`` that depend on the arguments in ``moving``.

    Under a trace this is as good as any JAX function: jit it, vmap it, differentiate it.

    >>> import jax
    >>> hinge = lambda s, v: jax.nn.relu(1 - v * s)
    >>> with jax.enable_x64(True):
    ...     found = switches(hinge, [jnp.asarray(3.0)], [jnp.asarray(2.0)])
    >>> found.hard.tolist(), found.soft.tolist()
    ([-5.0], [])
    """
    closed = jax.make_jaxpr(function)(*moving, *still)
    leaves = jax.tree.leaves((*moving, *still))
    depends = [True] * len(jax.tree.leaves(tuple(moving)))
    depends += [False] * (len(leaves) - len(depends))
    hard: list[Array] = []
    soft: list[Array] = []
    _run(closed.jaxpr, closed.consts, leaves, depends, hard, soft)
    return Switches(_joined(hard), _joined(soft))


def _joined(parts: Sequence[Array]) -> Array:
    flat = [jnp.ravel(part).astype(float) for part in parts]
    return jnp.concatenate(flat) if flat else jnp.zeros(0)


def _run(
    jaxpr: Any,
    consts: Sequence[Any],
    values: Sequence[Any],
    depends: Sequence[bool],
    hard: list[Array],
    soft: list[Array],
) -> tuple[list[Any], list[bool]]:
    """Evaluate a program, noting what it compares; which outputs depend on what moves."""
    memory: dict[Any, tuple[Any, bool]] = {}

    def read(atom: Any) -> tuple[Any, bool]:
        literal = isinstance(atom, jax.extend.core.Literal)
        return (atom.val, False) if literal else memory[atom]

    memory.update(
        (name, (value, False)) for name, value in zip(jaxpr.constvars, consts, strict=True)
    )
    memory.update(
        (name, pair)
        for name, pair in zip(jaxpr.invars, zip(values, depends, strict=True), strict=True)
    )
    for equation in jaxpr.eqns:
        pairs = [read(atom) for atom in equation.invars]
        operands, moves = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        inner = _inner(equation)
        if inner is not None:
            outputs, moved = _run(inner.jaxpr, inner.consts, operands, moves, hard, soft)
        else:
            name = equation.primitive.name
            if any(moves):
                if name in STEPS or _truncates(equation):
                    raise UnreadableError(f"it uses {name}, whose jumps cannot be located")
                hard.extend(_compared(name, equation, operands))
                if name in BENDS:
                    soft.append(operands[0])
            result = equation.primitive.bind(*operands, **equation.params)
            outputs = list(result) if equation.primitive.multiple_results else [result]
            moved = [any(moves)] * len(outputs)
        memory.update(
            (name, pair)
            for name, pair in zip(equation.outvars, zip(outputs, moved, strict=True), strict=True)
        )
    results = [read(atom) for atom in jaxpr.outvars]
    return [value for value, _ in results], [moves for _, moves in results]


def _inner(equation: Any) -> Any:
    """The program that an equation calls as it is, if it does."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = equation.params.get(key)
        if inner is not None and equation.primitive.name not in STEPS:
            if hasattr(inner, "consts"):
                return inner
            return jax.extend.core.ClosedJaxpr(inner, ())
    return None


def _truncates(equation: Any) -> bool:
    """Whether a real number that moves is made whole."""
    if equation.primitive.name != "convert_element_type":
        return False
    before, after = equation.invars[0].aval.dtype, equation.params["new_dtype"]
    return jnp.issubdtype(before, jnp.floating) and jnp.issubdtype(after, jnp.integer)


def _compared(name: str, equation: Any, operands: Sequence[Any]) -> Iterator[Array]:
    if not all(jnp.issubdtype(jnp.result_type(x), jnp.floating) for x in operands):
        return
    if name in SIGNS:
        yield operands[0]
    elif name in COMPARISONS and equation.invars[0] is not equation.invars[1]:
        yield operands[0] - operands[1]
    elif name == "clamp":
        low, value, high = operands
        yield value - low
        yield value - high
    elif name in EXTREMES:
        sign = 1 if name in ("reduce_max", "argmax") else -1
        axes = equation.params["axes"]
        count = 1
        for axis in axes:
            count *= operands[0].shape[axis]
        if count == 1:
            return
        if count > MOST_COMPARED:
            raise UnreadableError(f"it takes the extreme of {count} numbers")
        entries = jnp.moveaxis(sign * operands[0], axes, range(-len(axes), 0))
        entries = entries.reshape(*entries.shape[: entries.ndim - len(axes)], count)
        top = jnp.sort(entries, axis=-1)
        best, second = top[..., -1:], top[..., -2:-1]
        yield jnp.where(entries == best, entries - second, entries - best)
