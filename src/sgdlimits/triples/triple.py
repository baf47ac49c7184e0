"""A triple: any loss, any data law and any summary statistics, as JAX functions."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import double_precision
from sgdlimits._types import WholeNumber

PAIRS = 8  # segments between draws of the initial law along which smoothness is tested
NODES = (32, 64)  # quadrature nodes on each segment
KEYS = 8  # draws whose shapes are compared when a sampler cannot be traced

Params = Any  # a pytree of float arrays


class Triple(eqx.Module):
    r"""(u, L, P): summary statistics, loss and data law in growing dimension (BGJ22, sec. 2).

    SGD is X_ℓ = X_{ℓ−1} − δ∇L(X_{ℓ−1}, Y_ℓ) with Y_ℓ ~ P fresh at every step and δ = step/dim.

    Everything is a function that JAX can trace; parameters and data are arrays or any pytree of
    them, of shapes that depend on ``dim`` only. The statistics are twice differentiable. The loss
    needs a gradient almost everywhere: kinks such as those of ReLU are fine.

    Args:
        loss: ``loss(params, datum)``, a scalar.
        sample: ``sample(key, dim)``, one datum.
        statistics: ``statistics(params, dim)``, a 1-D array of the same length at every dim.
        init: ``init(key, dim)``, the parameters at which SGD starts.
        names: one name per statistic; u[0], u[1], … if left out.

    >>> import jax.numpy as jnp
    >>> from jax import random
    >>> regression = Triple(
    ...     loss=lambda w, datum: (datum["y"] - w @ datum["x"]) ** 2 / 2,
    ...     sample=lambda key, dim: {"x": random.normal(key, (dim,)), "y": 1.0},
    ...     statistics=lambda w, dim: jnp.stack([w @ w]),
    ...     init=lambda key, dim: random.normal(key, (dim,)) / jnp.sqrt(dim),
    ...     names=["norm"],
    ... )
    >>> regression.statistic_names(dim=10)
    ('norm',)
    """

    loss: Callable[..., Any]
    sample: Callable[..., Any]
    statistics: Callable[..., Any]
    init: Callable[..., Any]
    names: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        loss: Callable[..., Any],
        sample: Callable[..., Any],
        statistics: Callable[..., Any],
        init: Callable[..., Any],
        names: Sequence[str] | None = None,
    ):
        self.loss = _callable("loss", loss)
        self.sample = _callable("sample", sample)
        self.statistics = _callable("statistics", statistics)
        self.init = _callable("init", init)
        self.names = None if names is None else _names(names)

    @double_precision
    def statistic_names(self, dim: WholeNumber) -> tuple[str, ...]:
        """The names of the statistics, after all checks of the four functions at this dim."""
        size = _checks.integer("dim", dim, least=1)
        names = self._names_at(size)
        _check_smooth(self, size)
        return names

    def _names_at(self, dim: int) -> tuple[str, ...]:
        _check_sampler(self, dim)
        key = jax.random.key(0)
        params = _trace("init", lambda: self.init(key, dim))
        _check_params("init(key, dim)", params)
        datum = jax.eval_shape(lambda: self.sample(key, dim))
        loss = _trace("loss", self.loss, params, datum)
        if getattr(loss, "shape", None) != () or not _is_float(loss):
            raise _checks.InputError(
                f"loss returns {_described(loss)}, which is not allowed: "
                "loss(params, datum) must be a real scalar"
            )
        values = _trace("statistics", lambda p: self.statistics(p, dim), params)
        if getattr(values, "ndim", None) != 1 or values.shape[0] == 0 or not _is_float(values):
            raise _checks.InputError(
                f"statistics returns {_described(values)}, which is not allowed: "
                "statistics(params, dim) must be a 1-D array of real numbers"
            )
        count = values.shape[0]
        if self.names is None:
            return tuple(f"u[{i}]" for i in range(count))
        if len(self.names) != count:
            raise _checks.InputError(
                f"names={self.names!r} is not allowed: there must be one for each of the {count} "
                f"statistics at dim={dim}"
            )
        return self.names

    @double_precision
    def check_dims(
        self, dims: Iterable[int], *, least: int
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The dims in increasing order and the names of the statistics, the same at all of them."""
        values = list(dims) if isinstance(dims, Iterable) and not isinstance(dims, str) else []
        checked = sorted({_checks.integer("dims", dim, least=1) for dim in values})
        if len(checked) < least:
            raise _checks.InputError(
                f"dims={dims!r} is not allowed: dims must be at least {least} different integers"
            )
        names_at = {dim: self._names_at(dim) for dim in checked}
        _check_smooth(self, checked[0])
        if len({len(names) for names in names_at.values()}) > 1:
            lengths = ", ".join(f"{len(names)} at dim={dim}" for dim, names in names_at.items())
            raise _checks.InputError(
                f"statistics returns arrays of different lengths, which is not allowed: {lengths}"
            )
        return tuple(checked), names_at[checked[0]]

    @double_precision
    def check_params(self, params: Any, dim: int) -> Params:
        """The parameters as float64 arrays, if they look like those of ``init`` at this dim."""
        given = jax.tree.map(lambda x: jnp.asarray(np.asarray(x, dtype=np.float64)), params)
        wanted = jax.eval_shape(lambda: self.init(jax.random.key(0), dim))
        if _shapes(given) != _shapes(wanted):
            raise _checks.InputError(
                f"params is {_shapes(given)}, which is not allowed: at dim={dim} "
                f"init(key, dim) gives {_shapes(wanted)}"
            )
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(given)):
            raise _checks.InputError("params is not allowed: all its numbers must be finite")
        return given


def draw_params(init: Callable[..., Any], dim: int, keys: Any) -> Params:
    """One draw of the initial law per key, in double precision, along a leading axis."""
    drawn = jax.vmap(lambda key: init(key, dim))(keys)
    return jax.tree.map(lambda x: x.astype(jnp.float64), drawn)


@compiled
def statistics_at(triple: Triple, dim: int, states: Params) -> Float[Array, "states k"]:
    """The statistics of many parameters, along a leading axis."""
    return jax.vmap(lambda params: triple.statistics(params, dim))(states)


def derivatives(
    triple: Triple, dim: int, params: Params, direction: Params
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """(J·g, gᵀ∇²u g): the first two derivatives of u along a direction, forward over forward.

    Of s ↦ u(x + s·g), a function of one number: JAX then knows that g does not change with x, which
    is three times as fast as nested derivatives in x.
    """

    def along(s: Float[Array, ""]) -> Float[Array, " k"]:
        return triple.statistics(jax.tree.map(lambda x, g: x + s * g, params, direction), dim)

    def first(s: Float[Array, ""]) -> Float[Array, " k"]:
        return jax.jvp(along, (s,), (jnp.ones(()),))[1]

    return jax.jvp(first, (jnp.zeros(()),), (jnp.ones(()),))


# --- checks -------------------------------------------------------------------------------------


def _check_sampler(triple: Triple, dim: int) -> None:
    keys = [jax.random.key(i) for i in range(KEYS)]
    try:  # again and again: a sampler with a state of its own may change between calls
        shapes = [
            _shapes(jax.eval_shape(lambda key: triple.sample(key, dim), key)) for key in keys[:3]
        ]
        failure = None
    except Exception as error:  # the user's function may raise anything
        shapes, failure = _eager_shapes(triple, dim, keys), error
    if len(set(shapes)) > 1:
        raise _checks.InputError(
            f"sample returns data of different shapes at dim={dim}, which is not allowed: "
            + " and ".join(sorted(set(shapes)))
        )
    if failure is not None:
        raise _checks.InputError(
            f"sample is not allowed: JAX cannot trace sample(key, {dim}): {_line(failure)}"
        ) from failure
    _trace("sample", lambda: triple.sample(keys[0], dim))


def _eager_shapes(triple: Triple, dim: int, keys: list[Any]) -> list[str]:
    try:
        return [_shapes(jax.tree.map(jnp.asarray, triple.sample(key, dim))) for key in keys]
    except Exception:  # reported by the caller, who has the first failure
        return []


@compiled
def _along_segments(triple: Triple, dim: int) -> tuple[Array, Array, Array]:
    """Changes of u and J·w between draws less the integrals of J·w and wᵀ∇²u w, and their sizes.

    The first axis is for the segments, the last two for (u, J·w) and the statistics.
    """
    rules = [np.polynomial.legendre.leggauss(count) for count in NODES]
    nodes_along = jnp.concatenate([jnp.array([0.0, 1.0]), *((nodes + 1) / 2 for nodes, _ in rules)])

    def segment(keys: Array) -> tuple[Array, Array, Array]:
        draws = draw_params(triple.init, dim, keys)
        start = jax.tree.map(lambda x: x[0], draws)
        line = jax.tree.map(lambda x: x[1] - x[0], draws)

        def along(s: Array) -> Array:
            point = jax.tree.map(lambda x, w: x + s * w, start, line)
            return jnp.stack(
                [triple.statistics(point, dim), *derivatives(triple, dim, point, line)]
            )

        values = jax.lax.map(along, nodes_along)
        change = values[1, :2] - values[0, :2]
        inside = jnp.split(values[2:, 1:], [NODES[0]])
        gaps = [
            change - jnp.tensordot(weights / 2, part, axes=1)
            for (_, weights), part in zip(rules, inside, strict=True)
        ]
        return *jnp.abs(jnp.stack(gaps)), jnp.max(jnp.abs(values[:, :2]), axis=0)

    keys = jax.random.split(jax.random.key(0), 2 * PAIRS)
    return jax.lax.map(segment, keys.reshape(PAIRS, 2))


def _check_smooth(triple: Triple, dim: int) -> None:
    """The fundamental theorem of calculus along segments: it finds jumps and kinks they cross.

    Between two draws u changes by ∫J·w and J·w by ∫wᵀ∇²u w. Quadrature of a smooth function
    converges quickly; the derivative of a jump is never seen, however many the nodes.
    """
    try:
        coarse, fine, sizes = map(np.asarray, _along_segments(triple, dim))
    except Exception as error:  # the user's function may raise anything
        raise _checks.InputError(
            "statistics is not allowed: it must be twice differentiable, and its derivatives "
            f"along a line cannot be computed: {_line(error)}"
        ) from error
    if not (np.all(np.isfinite(fine)) and np.all(np.isfinite(sizes))):
        raise _checks.InputError(
            "statistics is not allowed: it must be twice differentiable, and its values or "
            f"derivatives at draws of init are not finite at dim={dim}"
        )
    rough = (fine > 1e-6 * (sizes + 1e-9)) & (fine > coarse / 2)
    if np.any(rough):
        which = int(np.flatnonzero(np.any(rough, axis=(0, 1)))[0])
        raise _checks.InputError(
            f"statistics is not allowed: it must be twice differentiable, and statistic {which} "
            f"jumps or has a kink between draws of init at dim={dim}"
        )


def _check_params(source: str, params: Params) -> None:
    leaves = jax.tree.leaves(params)
    if not leaves or not all(_is_float(leaf) for leaf in leaves):
        raise _checks.InputError(
            f"{source} is {_shapes(params)}, which is not allowed: "
            "parameters must be arrays of real numbers"
        )


def _trace(name: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return jax.eval_shape(function, *args)
    except Exception as error:  # the user's function may raise anything
        raise _checks.InputError(
            f"{name} is not allowed: JAX cannot trace it: {_line(error)}"
        ) from error


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _is_float(value: Any) -> bool:
    return hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.floating)


def _described(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"a {type(value).__name__}"


def _shapes(tree: Any) -> str:
    return str(jax.tree.map(lambda x: f"shape {tuple(jnp.shape(x))}", tree)).replace("'", "")


def _callable(name: str, value: Any) -> Callable[..., Any]:
    if not callable(value):
        raise _checks.InputError(f"{name}={value!r} is not allowed: {name} must be a function")
    return value


def _names(value: Any) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise _checks.InputError(
            f"names={value!r} is not allowed: names must be a list of distinct names"
        )
    return names
