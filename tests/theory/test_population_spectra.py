"""Population Hessian and gradient blocks: lemmas of BGHJ23 against averages over data."""

import functools
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit, softmax

from sgdlimits.theory import population_spectra as ps

PRECISION = 2.0
P = np.array([0.5, 0.3, 0.2])
DIM, SAMPLES = 8, 200_000
BLOCKS = [(0, 0), (2, 2), (0, 1), (2, 1)]
MATRICES: dict[str, Callable[..., ps.PopulationBlock]] = {
    "hessian": ps.softmax_hessian,
    "gradient": ps.softmax_gradient,
}


class Data(NamedTuple):
    """Means and weights in rows, and samples."""

    means: np.ndarray
    w: np.ndarray
    labels: np.ndarray
    y: np.ndarray
    pi: np.ndarray

    @property
    def statistics(self) -> dict[str, Any]:
        gram = self.means @ self.means.T
        m = self.w @ self.means.T
        r = self.w @ self.w.T - m @ np.linalg.solve(gram, m.T)
        return {"overlaps": m, "orthogonal": r, "means_gram": gram, "weights": P}


class Average(NamedTuple):
    mean: np.ndarray
    sem: np.ndarray

    def agrees(self, matrix: np.ndarray) -> bool:
        return bool(np.all(np.abs(matrix - self.mean) < 4 * self.sem))


@functools.cache
def dataset() -> Data:
    rng = np.random.default_rng(5)
    means, w = rng.normal(size=(2, 3, DIM)) * [[[0.5]], [[0.9]]]
    labels = rng.choice(3, size=SAMPLES, p=P)
    y = means[labels] + rng.normal(size=(SAMPLES, DIM)) / math.sqrt(PRECISION)
    return Data(means, w, labels, y, softmax(y @ w.T, axis=1))


def average(matrix: str, b: int, c: int) -> Average:
    """Mean of D YYᵀ over samples, with D as the gradient and Hessian of the loss have it."""
    data = dataset()
    pi_b, pi_c = data.pi[:, b], data.pi[:, c]
    if matrix == "hessian":
        weight = pi_b * (b == c) - pi_b * pi_c
    else:
        weight = ((data.labels == b) - pi_b) * ((data.labels == c) - pi_c)
    mean = (data.y.T * weight) @ data.y / SAMPLES
    square = (data.y.T**2 * weight**2) @ data.y**2 / SAMPLES
    return Average(mean, np.sqrt((square - mean**2) / SAMPLES))


def embedded(block: ps.PopulationBlock) -> np.ndarray:
    """The d × d block, from the coordinates that the docstring of PopulationBlock states."""
    means, w = dataset().means, dataset().w
    span = np.linalg.solve(np.linalg.cholesky(means @ means.T), means)
    perp = w - w @ span.T @ span
    values, vectors = np.linalg.eigh(perp @ perp.T)
    basis = np.vstack([span, vectors / np.sqrt(values) @ vectors.T @ perp])
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-12)
    return basis.T @ block.low_rank @ basis + block.identity * np.eye(DIM)


class Pieces(NamedTuple):
    """Sample means, f the product of J softmax entries, t = Σx − J x̄."""

    means: np.ndarray  # f μμᵀ
    mixed: np.ndarray  # f (μtᵀ + tμᵀ)/λ
    tilts: np.ndarray  # f ttᵀ/λ²
    spread: np.ndarray  # J f (Σ_a π_a xᵃxᵃᵀ − x̄x̄ᵀ)/λ²
    identity: np.ndarray  # f I/λ

    def total(self, mixed: float = 1.0, tilts: float = 1.0, spread: float = 1.0) -> np.ndarray:
        """E[f YYᵀ] by parts, or what misprints make of it."""
        low_rank = self.means + mixed * self.mixed + tilts * self.tilts - spread * self.spread
        return low_rank + self.identity


@functools.cache
def pieces(labels: tuple[int, ...], own: int | None = None) -> Pieces:
    """The terms of an integration by parts, over all samples or those of the class ``own``."""
    data, count, chosen = dataset(), len(labels), list(labels)
    f = np.prod(data.pi[:, chosen], axis=1) / SAMPLES
    f = f if own is None else f * (data.labels == own)
    mu, pi, w = data.means[data.labels], data.pi, data.w
    t = (w[chosen].sum(axis=0) - count * pi @ w) / PRECISION
    mixed = (t.T * f) @ mu
    spread = count * w.T @ (np.diag(f @ pi) - (pi.T * f) @ pi) @ w / PRECISION**2
    identity = np.eye(DIM) * f.sum() / PRECISION
    return Pieces((mu.T * f) @ mu, mixed + mixed.T, (t.T * f) @ t, spread, identity)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("matrix", MATRICES)
def test_softmax_lemmas_against_data(matrix: str, block: tuple[int, int]) -> None:
    statistics = dataset().statistics
    lemma = MATRICES[matrix](**statistics, precision=PRECISION, block=block)
    measured = average(matrix, *block)
    assert measured.agrees(embedded(lemma))
    assert not measured.agrees(embedded(lemma._replace(identity=0.0)))
    leading = MATRICES[matrix](**statistics, precision=math.inf, block=block)
    assert not measured.agrees(embedded(leading))


@pytest.mark.parametrize("block", [(0, 1), (2, 1)], ids=str)
def test_printed_lemma_31_fails(block: tuple[int, int]) -> None:
    measured, terms = average("hessian", *block), pieces(block)
    assert measured.agrees(-terms.total())
    assert not measured.agrees(terms.total())  # as printed: without the minus
    assert not measured.agrees(-terms.total(spread=0.0))


@pytest.mark.parametrize("a", range(3))
def test_printed_lemma_32_fails(a: int) -> None:
    measured = average("hessian", a, a)

    def lemma(**wrong: float) -> np.ndarray:
        return pieces((a,)).total(**wrong) - pieces((a, a)).total(**wrong)

    assert measured.agrees(lemma())
    # as printed μ is outside of the square: μ^⊗2 + (xᵃ − x̄)^⊗2/λ
    assert not measured.agrees(lemma(mixed=0.0, tilts=PRECISION))
    assert not measured.agrees(lemma(mixed=0.0))  # nor with the power of the precision put right
    assert not measured.agrees(lemma(tilts=PRECISION**2, spread=PRECISION**2))  # (3.14)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_printed_lemma_33_fails(block: tuple[int, int]) -> None:
    measured = average("gradient", *block)
    b, c = block

    def lemma(sign: float = 1.0, **wrong: float) -> np.ndarray:
        total = pieces(block).total(mixed=sign)
        total = total - pieces((b,), c).total(**wrong) - pieces((c,), b).total(**wrong)
        return total + (pieces((), b).total() if b == c else 0)

    assert measured.agrees(lemma())
    assert not measured.agrees(lemma(sign=-1.0))  # μ_ℓ − (…)/λ
    assert not measured.agrees(lemma(spread=-1.0))  # C with −p_c, −p_b
    assert not measured.agrees(lemma(sign=-1.0, spread=-1.0))  # as printed
    assert not measured.agrees(lemma(tilts=2.0, spread=2.0))  # (3.18)


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
@pytest.mark.parametrize("matrix", MATRICES)
def test_blocks_of_a_row_sum_to_zero(matrix: str, classes: int) -> None:
    """The loss does not change when a vector is added to all weights: the null space of BGHJ23."""
    rng = np.random.default_rng(classes)
    root = rng.normal(size=(classes, classes))
    arguments: dict[str, Any] = {
        "overlaps": rng.normal(size=(classes, classes)),
        "orthogonal": root @ root.T,
        "weights": rng.dirichlet(np.full(classes, 5.0)),
        "means_gram": 0.3 + np.eye(classes),
        "precision": PRECISION,
        "nodes": 256,
    }
    row = [MATRICES[matrix](**arguments, block=(1, c)) for c in range(classes)]
    assert np.max(np.abs(row[1].low_rank)) > 0.02
    np.testing.assert_allclose(sum(block.low_rank for block in row), 0, atol=1e-13)
    assert sum(block.identity for block in row) == pytest.approx(0, abs=1e-13)
    other = MATRICES[matrix](**arguments, block=(0, 1))
    np.testing.assert_allclose(other.low_rank, row[0].low_rank, atol=1e-14)


@pytest.mark.parametrize("matrix", MATRICES)
def test_quadrature_has_converged(matrix: str) -> None:
    """Gauss–Hermite nodes for three classes, Sobol nodes for five."""
    block = {"precision": PRECISION, "block": (0, 1)}
    three = dataset().statistics
    fine, coarse = (MATRICES[matrix](**three, **block, nodes=n) for n in (2**14, 2**10))
    np.testing.assert_allclose(fine.low_rank, coarse.low_rank, rtol=0, atol=1e-8)
    five: dict[str, Any] = {"overlaps": np.eye(5), "orthogonal": np.eye(5), "weights": [0.2] * 5}
    fine, coarse = (MATRICES[matrix](**five, **block, nodes=n) for n in (2**14, 2**12))
    np.testing.assert_allclose(fine.low_rank, coarse.low_rank, rtol=0, atol=5e-5)


def test_infinite_precision_sees_the_means_only() -> None:
    m, p = np.array([[1.0, -0.5], [0.2, 0.7]]), np.array([0.7, 0.3])
    pi = softmax(m, axis=0)
    arguments: dict[str, Any] = {"weights": p, "precision": math.inf, "block": (0, 1)}
    block = ps.softmax_hessian(m, np.eye(2), **arguments)
    np.testing.assert_allclose(block.low_rank[:2, :2], np.diag(-p * pi[0] * pi[1]), atol=1e-14)
    assert block.identity == 0
    assert not np.any(block.low_rank[2:])


# Two-layer network. Columns of weights: μ, ν, then coordinates orthogonal to both.
V = np.array([1.1, -0.8])
FAR = np.array([[0.9, -0.8, 0.3, 0.0, 0.2], [-0.7, 0.8, 0.1, 0.3, 0.0]])
OTHER_AT_ZERO = FAR * [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]  # of neuron 1 only, with μ
XOR = ["hessian", "gradient", "readout_hessian", "readout_gradient"]


def xor_statistics(w: np.ndarray) -> dict[str, Any]:
    return {"readout": V, "mu_overlaps": w[:, 0], "nu_overlaps": w[:, 1]}


def xor_error(name: str, w: np.ndarray, precision: float, lemma: np.ndarray | None = None) -> float:
    """Operator norm of the difference of block (neuron 0) and lemma; mirrored noise, four means."""
    noise = np.random.default_rng(3).normal(size=(50_000, w.shape[1])) / math.sqrt(precision)
    noise = np.concatenate([noise, -noise])
    total: Any = 0.0
    for sign, axis in itertools.product((1.0, -1.0), (0, 1)):
        y = noise + sign * np.eye(w.shape[1])[axis]
        s = y @ w.T
        prediction = expit(np.maximum(s, 0) @ V)
        weight = prediction * (1 - prediction)
        if name.endswith("gradient"):
            weight = ((1.0 if axis == 0 else 0.0) - prediction) ** 2
        z = np.maximum(s, 0) if name.startswith("readout") else y * (V[0] * (s[:, :1] > 0))
        total = total + (z.T * weight) @ z / len(z) / 4
    if lemma is None:
        function = getattr(ps, f"xor_{name}")
        more: dict[str, Any] = {"precision": precision, "neuron": 0}
        more["orthogonal"] = w[:, 2:] @ w[:, 2:].T
        lemma = function(**xor_statistics(w), **({} if name.startswith("readout") else more))
    total[: len(lemma), : len(lemma)] -= lemma
    return float(np.linalg.norm(total, 2))


def rate(name: str, states: Callable[[float], np.ndarray], precisions: list[float]) -> float:
    """The power of 1/precision with which the error decreases."""
    errors = [xor_error(name, states(precision), precision) for precision in precisions]
    return float(-np.polyfit(np.log(precisions), np.log(errors), 1)[0])


@pytest.mark.parametrize("name", XOR)
def test_xor_error_is_of_first_order_far_from_zero(name: str) -> None:
    assert rate(name, lambda _: FAR, [1e2, 1e3, 1e4]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("name", XOR)
def test_xor_error_is_of_order_one_half_if_another_overlap_is_zero(name: str) -> None:
    """The overlaps of neuron 0 are far from 0: the bounds (4.11), (4.17) as printed say 1."""
    power = rate(name, lambda _: OTHER_AT_ZERO, [1e5, 1e6, 1e7])
    assert power == pytest.approx(0.5, abs=0.05)


def small(precision: float) -> np.ndarray:
    w = FAR.copy()
    w[0, :2] = np.array([0.4, -0.3]) / math.sqrt(precision)
    return w


@pytest.mark.parametrize("name", ["hessian", "gradient"])
def test_xor_follows_the_distribution_function(name: str) -> None:
    """For overlaps of the size of the noise F matters; a step function in its place fails."""
    assert rate(name, small, [1e2, 1e3, 1e4]) > 0.5
    w = small(1e4)
    arguments: dict[str, Any] = {**xor_statistics(w), "orthogonal": np.eye(2), "neuron": 0}
    step = getattr(ps, f"xor_{name}")(**arguments, precision=math.inf)
    assert xor_error(name, w, 1e4, step) > 10 * xor_error(name, w, 1e4)


WRONG = ["x", [[1.0], [2.0, 3.0]], math.nan, {}, 1j]
RIGHT: dict[str, Any] = {
    "overlaps": np.eye(2),
    "orthogonal": np.eye(2),
    "weights": [0.5, 0.5],
    "precision": 2.0,
    "block": (0, 1),
    "means_gram": np.eye(2),
    "nodes": 64,
    **xor_statistics(FAR),
    "neuron": 0,
}


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("block", (0, 2), "two classes"),
        ("block", (0, 1, 1), "two classes"),
        ("block", (0, True), "two classes"),
        ("block", (0.0, 1.0), "two classes"),
        ("orthogonal", -np.eye(2), "positive semidefinite"),
        ("means_gram", np.ones((2, 2)), "positive definite"),
        ("precision", 0.0, "positive"),
        ("nodes", 1, "integer >= 2"),
        ("overlaps", [0.1, 0.2], "shape"),
        ("neuron", 2, r"in 0..1"),
        ("neuron", -1, "integer >= 0"),
        *((name, wrong, "") for name in RIGHT for wrong in WRONG),
    ],
    ids=repr,
)
def test_wrong_values_are_named(name: str, wrong: Any, message: str) -> None:
    for function in (*MATRICES.values(), *(getattr(ps, f"xor_{block}") for block in XOR)):
        names = inspect.signature(function).parameters
        if name in names:
            expected = rf"^{name}(=| has shape ).* is not allowed: {name} must.*{message}"
            with pytest.raises(ValueError, match=expected):
                function(**{key: RIGHT[key] for key in names} | {name: wrong})


def test_a_neuron_without_weights_has_no_slope() -> None:
    with pytest.raises(ValueError, match=r"neuron=1 is not allowed.*other than 0"):
        ps.xor_hessian(V, [1, 0], [0, 0], np.diag([1, 0]), precision=10.0, neuron=1)
