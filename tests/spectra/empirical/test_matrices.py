"""Empirical matrices: against automatic differentiation of the whole loss, and dense solvers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.spectra import Empirical, Training
from sgdlimits.spectra.empirical import matrices as module
from sgdlimits.spectra.krylov import leading_pairs, quadrature

TASKS = [
    sl.tasks.GaussianMixture(classes=3, precision=4.0),
    sl.tasks.XorMixture(width=4, precision=4.0),
    sl.tasks.TeacherStudent(activation="tanh", teacher_width=2, student_width=3, noise=0.1),
    sl.tasks.PhaseRetrieval(width=2, noise=0.1, readout="trained"),
]
DIM, SAMPLES = 12, 40


def matrices(task: Any, dim: int = DIM, samples: int = SAMPLES) -> Empirical:
    training = Training(task, dim, 1.0, 3, task.random_state(dim, seed=3))
    weights = next(training.weights_at(np.zeros(1)))
    return Empirical(task, training.unseen(samples), weights.W, weights.v)


def by_autodiff(found: Empirical, matrix: str) -> np.ndarray:
    """The whole matrix of W, then v, with nothing known about its structure."""
    task, K = found.task, found.task.width

    def loss(flat: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        W = flat[: K * found.dim].reshape(K, found.dim)
        v = flat[K * found.dim :] if task.trained else None
        return task.loss(W @ x, v, y)

    with jax.enable_x64(True):
        parts = [found.W.ravel()] + ([] if found.v is None else [found.v])
        flat = jnp.asarray(np.concatenate(parts))
        data = jnp.asarray(found.x), jnp.asarray(found.labels)
        if matrix == "hessian":
            each = np.asarray(jax.jit(jax.vmap(jax.hessian(loss), (None, 0, 0)))(flat, *data))
        else:
            gradients = np.asarray(jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))(flat, *data))
            each = gradients[:, :, None] * gradients[:, None, :]
        return np.asarray(each.mean(0))


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_blocks_are_those_of_the_loss(task: Any, matrix: str) -> None:
    found = matrices(task)
    whole = by_autodiff(found, matrix)
    K, d = task.width, DIM
    for i in range(K):
        for j in range(K):
            block = whole[i * d : (i + 1) * d, j * d : (j + 1) * d]
            assert found.dense(matrix, (i, j)) == pytest.approx(block, abs=1e-12)
    if task.trained:
        assert found.dense(matrix, "vv") == pytest.approx(whole[K * d :, K * d :], abs=1e-12)
        across = whole[K * d :, d : 2 * d]
        assert found.dense(matrix, "vW1") == pytest.approx(across, abs=1e-12)
        u = np.arange(2.0 * d).reshape(d, 2)
        assert found.product(matrix, "vW1", u) == pytest.approx(across @ u, abs=1e-11)
    u = np.random.default_rng(0).standard_normal((len(whole), 2))
    assert found.product(matrix, "all", u) == pytest.approx(whole @ u, abs=1e-12)
    assert found.product(matrix, "all", u[:, 0]) == pytest.approx(whole @ u[:, 0], abs=1e-12)
    assert found.dense(matrix, "all") == pytest.approx(whole, abs=1e-12)
    leading = np.sort(np.abs(np.linalg.eigvalsh(whole)))[::-1][:3]
    assert np.abs(found.leading(matrix, ["all"], 3).values[0]) == pytest.approx(leading, rel=1e-6)


@pytest.mark.parametrize("formed", [True, False])
@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_leading_pairs_are_those_of_dense_solvers(
    matrix: str, formed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DENSE", 1500 if formed else 0)
    task = sl.tasks.GaussianMixture(classes=4, precision=5.0)
    found = matrices(task, dim=120, samples=600)
    blocks: list[Any] = [0, 1, (0, 1)]
    pairs = found.leading(matrix, blocks, rank=5)
    for number, block in enumerate(blocks):
        dense = found.dense(matrix, block)
        values, vectors = np.linalg.eigh(dense)
        order = np.argsort(-np.abs(values))[:5]
        assert pairs.values[number] == pytest.approx(values[order], rel=1e-7)
        overlaps = np.abs(np.sum(pairs.vectors[number] * vectors[:, order], axis=0))
        assert overlaps == pytest.approx(np.ones(5), abs=1e-6)


def test_small_matrices_and_equal_eigenvalues() -> None:
    A = np.diag([3.0, 3.0, -3.0, 1.0])
    found = leading_pairs(lambda x: A @ x, 1, 4, 3)
    assert np.abs(found.values[0]) == pytest.approx([3, 3, 3])
    assert found.vectors[0].T @ found.vectors[0] == pytest.approx(np.eye(3), abs=1e-10)


def test_stochastic_quadrature() -> None:
    rng = np.random.default_rng(7)  # not the seed of the probes
    A = rng.standard_normal((300, 300))
    A = A + A.T
    nodes, weights = quadrature(lambda u: A @ u, 300, probes=20, steps=25, seed=0)
    assert weights.sum() == pytest.approx(1)
    values = np.linalg.eigvalsh(A)
    for power in (2, 4):
        exact = np.mean(values**power)
        each = (weights * nodes**power).sum(axis=1) * 20
        error = each.std(ddof=1) / 20**0.5
        assert abs(each.mean() - exact) < 4 * error
    few, even = quadrature(lambda u: A @ u, 300, probes=2, steps=25, seed=1)
    assert few.shape == even.shape == (2, 25)


def test_stochastic_quadrature_of_few_eigenvalues() -> None:
    """After three steps a probe has seen all: the other nodes have weight 0, and stay inside."""
    A = np.diag([0.0] * 30 + [1.0] * 6 + [-2.0] * 4)
    nodes, weights = quadrature(lambda u: A @ u, 40, probes=3, steps=10, seed=0)
    heavy = weights > 1e-12
    assert heavy.sum(axis=1).tolist() == [3, 3, 3]
    assert np.sort(nodes[heavy].reshape(3, 3)) == pytest.approx(np.array([[-2, 0, 1.0]] * 3))
    assert nodes.min() >= -2 - 1e-9
    assert nodes.max() <= 1 + 1e-9


def test_wrong_input_is_named() -> None:
    task = TASKS[1]
    found = matrices(task)
    with pytest.raises(ValueError, match=r"v=None is not allowed: v must be given"):
        Empirical(task, sl.spectra.DataSet(found.x, found.labels), found.W)
    with pytest.raises(ValueError, match=r"W"):
        Empirical(task, sl.spectra.DataSet(found.x, found.labels), found.W * 1j, found.v)
    with pytest.raises(ValueError, match=r"W"):
        Empirical(task, sl.spectra.DataSet(found.x, found.labels), found.W * np.nan, found.v)
    with pytest.raises(ValueError, match=r"block='W9W9' is not allowed: .*W0W0"):
        found.dense("hessian", "W9W9")
    with pytest.raises(ValueError, match="block='vv' is not allowed: it must be between rows"):
        found.weights("hessian", "vv")
    with pytest.raises(ValueError, match="block='vW0' is not allowed: it is not square"):
        found.eigenvalues("hessian", "vW0")
    few = Empirical(task, sl.spectra.DataSet(found.x[:2], found.labels[:2]), found.W, found.v)
    with pytest.raises(ValueError, match="rank=3 is not allowed: 2 samples make at most 2"):
        few.leading("hessian", [0], 3)
    with pytest.raises(ValueError, match="rank=13 is not allowed: blocks have only 12"):
        found.leading("hessian", [0], 13)
    with pytest.raises(sl.InputError, match=r"vectors has shape \(3,\).*length 12"):
        found.product("hessian", 0, np.ones(3))
    with pytest.raises(sl.InputError, match=r"vectors has shape \(12,\).*length 4"):
        found.product("hessian", "vv", np.ones(12))
    with pytest.raises(sl.InputError, match=r"vectors has shape \(12,\).*length 52"):
        found.product("hessian", "all", np.ones(12))
    with pytest.raises(sl.InputError, match="block='vW0' is not allowed: it is not square"):
        found.density("hessian", "vW0")
    with pytest.raises(sl.InputError, match=r"task=SpikedTensor\(.* must be a multi-index task"):
        Empirical(sl.tasks.SpikedTensor(), sl.spectra.DataSet(found.x, found.labels), found.W)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", ["W1W1", "vv", "all"])
def test_density_has_the_moments_of_the_matrix(block: str) -> None:
    """As many steps as rows: every probe sees the whole spectrum, and moments are unbiased.

    Of 52 eigenvalues of the whole matrix 12 vanish: 40 samples make no more.
    """
    found, probes = matrices(TASKS[1]), 16
    values = found.eigenvalues("gradient", block)
    nodes, weights = found.density("gradient", block, probes=probes, steps=len(values))
    assert weights.sum() == pytest.approx(1)
    assert nodes.max() == pytest.approx(values[-1], rel=1e-6)
    assert nodes.min() > -1e-9
    each = (nodes * weights).reshape(probes, -1).sum(axis=1) * probes
    error = each.std(ddof=1) / probes**0.5
    assert abs(each.mean() - values.mean()) < 4 * error
