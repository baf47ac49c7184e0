"""Leading eigenpairs against a generic Hessian operator, and the time of an effective spectrum."""

import time
from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

import sgdlimits as sl
from benchmarks.row import Row

CLASSES, DIM, SAMPLES, RANK = 10, 1000, 10_000, 10
REPEATS = 3
TOLERANCE = 1e-8  # of residuals, relative to the largest eigenvalue, on both sides
STATE = {"M": 1.6 * np.eye(CLASSES) - 0.16, "R": 0.3 * np.eye(CLASSES)}


@jax.jit
def hessian_product(
    block: jax.Array, vector: jax.Array, number: int, rest: jax.Array, x: jax.Array, y: jax.Array
) -> jax.Array:
    """The Hessian of the mean loss in one class block times a vector, by automatic derivatives."""

    def loss(block: jax.Array) -> jax.Array:
        fields = x @ rest.at[number].set(block).T
        return -jnp.mean(jax.nn.log_softmax(fields)[jnp.arange(len(y)), y])

    return jax.jvp(jax.grad(loss), (block,), (vector,))[1]


def generic(W: np.ndarray, x: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Leading eigenvalues of every class block through eigsh."""
    with jax.enable_x64(True):
        rest, data, y = jnp.asarray(W), jnp.asarray(x), jnp.asarray(labels.astype(int))
        found = []
        for number in range(CLASSES):
            product = partial(hessian_product, rest[number], number=number, rest=rest, x=data, y=y)
            operator = LinearOperator(
                (DIM, DIM), lambda u, f=product: np.asarray(f(jnp.asarray(u.ravel()))), dtype=float
            )
            values = eigsh(operator, RANK, which="LM", tol=TOLERANCE)[0]
            found.append(np.sort(values)[::-1])
    return found


def leading_pairs() -> Iterator[Row]:
    """All class blocks of the Hessian of softmax regression, on the same data."""
    task = sl.tasks.GaussianMixture(classes=CLASSES, precision=10.0)
    training = sl.spectra.Training(task, DIM, 1.0, 0, task.check_state(STATE))
    W = next(training.weights_at(np.zeros(1))).W
    data = training.unseen(SAMPLES)

    def ours() -> np.ndarray:
        matrices = sl.spectra.Empirical(task, data, W)
        return matrices.leading("hessian", range(CLASSES), RANK, tolerance=TOLERANCE).values

    ours()  # compile
    ours_took, generic_took, gap = [], [], 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        fast = ours()
        middle = time.perf_counter()
        slow = np.array(generic(W, data.x, data.labels))
        end = time.perf_counter()
        ours_took.append(middle - start)
        generic_took.append(end - middle)
        gap = max(gap, float(np.max(np.abs(fast - slow) / np.abs(slow))))
    what = "top 10 eigenpairs of 10 class blocks, dim 1000: autodiff + eigsh / ours"
    yield Row(what, min(generic_took) / min(ours_took), 5.0, True)
    yield Row("the same: distance of their eigenvalues, relative", gap / 1e-6, 1.0, False, "ppm")


def effective_spectrum() -> Iterator[Row]:
    """No baseline: there is no other way without data."""
    task = sl.tasks.GaussianMixture(classes=CLASSES, precision=10.0)
    seconds = []
    for _ in range(REPEATS + 1):  # the first one compiles
        start = time.perf_counter()
        sl.spectra.effective(task, STATE, SAMPLES / DIM)
        seconds.append(time.perf_counter() - start)
    what = "effective spectrum of a class block, edges and outliers, 10 classes"
    yield Row(what, float(np.median(seconds[1:])), 0.5, False, unit="s")
