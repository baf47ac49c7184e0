"""One run of SGD with all coordinates, kept at hand: its weights at chosen times, and its data.

``simulate`` gives the summary statistics of many runs; matrices such as the Hessian need the weight
vectors themselves, and samples to average over. The anchors are the rows of :func:`anchors`: the
noise is the same in all directions, so nothing depends on where they lie.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import _checks
from sgdlimits._moves import moves
from sgdlimits._precision import double_precision, staged
from sgdlimits._segments import seed_words, segment_of
from sgdlimits._types import Number, Numbers, StateLike, WholeNumber
from sgdlimits.simulate.base import Moving
from sgdlimits.simulate.multi_index_direct import MultiIndexDirect, make_direct
from sgdlimits.tasks import MultiIndexFamily

_UNSEEN = 2**30  # a run number that training never uses: its samples are independent of training
_MOST_STEPS = 2**53


class DataSet(NamedTuple):
    """Samples as the rows of ``x``, and their labels."""

    x: np.ndarray
    labels: np.ndarray


class Weights(NamedTuple):
    """Weights W (width × dim) and the readout v, None where it is fixed."""

    W: np.ndarray
    v: np.ndarray | None


class Training:
    """One run of direct SGD: (W, v) ← (W, v) − (step/dim) ∇loss, a fresh sample at every step.

    It is run 0 of ``simulate(task, dim, step=step, seed=seed, init=init, method="direct")``, step
    by step. Nothing is computed before weights or data are asked for.

    Args:
        task: a multi-index task.
        dim: the dimension d of the data.
        step: c in the learning rate δ = c/dim; one unit of time is dim/step samples.
        seed: of the random start and of all data.
        init: the state from which it starts; by default the random one of ``task.random_state``.

    >>> import sgdlimits as sl
    >>> training = Training(sl.tasks.GaussianMixture(classes=2), dim=50)
    >>> start, end = training.weights_at([0.0, 1.0])
    >>> end.W.shape, end.v, training.seen(10).x.shape
    ((2, 50), None, (10, 50))
    """

    @double_precision
    def __init__(
        self,
        task: MultiIndexFamily,
        dim: WholeNumber,
        step: Number = 1.0,
        seed: WholeNumber = 0,
        init: StateLike | None = None,
    ):
        checked = _multi_index(task)
        self.dim = checked.check_dim(dim)
        self.step = _checks.positive("step", step)
        self.seed = _checks.integer("seed", seed, least=0)
        start = (
            checked.random_state(self.dim, self.seed) if init is None else checked.check_state(init)
        )
        self._process: MultiIndexDirect = make_direct(checked, self.dim, moves(step=self.step), 0)
        self._words = staged(seed_words(self.seed, segment_of(init, self.seed)))
        self._start = {name: value[None] for name, value in start.items()}  # an axis of one run

    def weights_at(self, times: Numbers) -> Iterator[Weights]:
        """Train, and give the weights at each of the times.

        Args:
            times: increasing, in units of dim/step samples; each is rounded to a whole number of
                steps.

        Returns:
            An iterator: training goes on as far as it is consumed. Called again, it starts anew,
            and gives the same weights.
        """
        grid = increasing_times(times)
        steps = np.round(grid * self.dim / self.step)
        if steps[-1] >= _MOST_STEPS:
            raise _checks.InputError(
                f"times={_checks.shown(times)} is not allowed: with dim={self.dim} and "
                f"step={self.step} the last takes {steps[-1]:.3g} steps"
            )
        return self._train(grid, steps.astype(int))

    def _train(self, times: np.ndarray, steps: np.ndarray) -> Iterator[Weights]:
        moving, done = None, 0
        for time, until in zip(times, steps.tolist(), strict=True):
            moving = self._advance(moving, done, until)
            done = until
            carry: Any = moving.carry
            v, W = carry.weights
            weights = Weights(np.asarray(W[0]), None if v is None else np.asarray(v[0]))
            if not all(np.all(np.isfinite(part)) for part in weights if part is not None):
                raise _checks.InputError(
                    f"step={self.step} is not allowed: training has diverged, weights are not "
                    f"finite at time {time:g}"
                )
            yield weights

    @double_precision
    def _advance(self, moving: Moving | None, first: int, last: int) -> Moving:
        if moving is None:
            moving = self._process.begin(self._start)
        return _advance(self._process, moving, self._words, jnp.asarray(first), jnp.asarray(last))

    def seen(self, samples: WholeNumber) -> DataSet:
        """The samples of the first steps, in order: what SGD trains on."""
        return self._draw(0, samples)

    def unseen(self, samples: WholeNumber) -> DataSet:
        """Samples that are independent of training: test data, the same at every call."""
        return self._draw(_UNSEEN, samples)

    @double_precision
    def _draw(self, run: int, samples: WholeNumber) -> DataSet:
        numbers = jnp.arange(_checks.integer("samples", samples, least=1))
        key = jax.random.wrap_key_data(self._words, impl="threefry2x32")
        x, labels = _data(self._process, jax.random.fold_in(key, run), numbers)
        return DataSet(np.asarray(x), np.asarray(labels, dtype=float))


def anchors(task: MultiIndexFamily, dim: WholeNumber) -> np.ndarray:
    """The anchors of a task as rows in ℝᵈ: the Cholesky factor of their Gram matrix, then zeros.

    >>> import sgdlimits as sl
    >>> anchors(sl.tasks.XorMixture(), dim=7)[:, :3].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    checked = _multi_index(task)
    size, r = checked.check_dim(dim), len(checked.anchors)
    rows = np.zeros((r, size))
    rows[:, :r] = np.linalg.cholesky(checked.gram)
    return rows


def increasing_times(times: Numbers) -> np.ndarray:
    """Times as an array, if there is one at least, none is negative and they increase strictly."""
    grid = _checks.array("times", times, None)
    if grid.ndim != 1 or len(grid) == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(times)} is not allowed: times must be increasing and >= 0, "
            "at least one"
        )
    return grid


def _multi_index(task: MultiIndexFamily) -> MultiIndexFamily:
    if not isinstance(task, MultiIndexFamily):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be a multi-index task, with weight vectors "
            "and data in dim coordinates"
        )
    return task


_advance = eqx.filter_jit(MultiIndexDirect.advance)


@eqx.filter_jit
def _data(
    process: MultiIndexDirect, key: Array, numbers: Int[Array, " n"]
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    return jax.vmap(lambda i: process.datum(jax.random.fold_in(key, i)))(numbers)
