"""The effective spectrum of blocks between rows of W, against closed forms and against matrices."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import spectra
from sgdlimits.spectra import Empirical, Training
from sgdlimits.spectra.blocks import find_block
from sgdlimits.spectra.effective.atoms import atoms
from sgdlimits.spectra.effective.law import block_weights, law_at
from sgdlimits.tasks.multi_index import MultiIndexFamily
from sgdlimits.theory import marchenko_pastur

RNG = np.random.default_rng(0)
RATIO = 4.0


class Quadratic(MultiIndexFamily):
    """The loss s²/2: D = 1, and the Hessian is the covariance of the data."""

    def __init__(self, precision: float = 1.0, spike: float = 0.0):
        super().__init__(width=1, anchors=["a"], labels=[0.0], precision=precision, spike=[[spike]])

    def loss(self, fields: Any, readout: Any, label: Any) -> Any:
        return jnp.sum(fields**2) / 2


@pytest.mark.parametrize("ratio", [0.5, 2.0, 10.0])
def test_constant_weights_are_marchenko_pastur(ratio: float) -> None:
    """``ratio`` is samples per dimension in both."""
    found = spectra.effective(Quadratic(precision=4.0), {"M": [[0.5]], "R": [[0.5]]}, ratio)
    low, high = marchenko_pastur.edges(ratio, 1 / 4)
    assert found.edges == pytest.approx([low, high], rel=1e-6)
    assert found.atom == pytest.approx(marchenko_pastur.atom(ratio))
    x = np.linspace(low, high, 50)[1:-1]
    expected = marchenko_pastur.density(x, ratio, 1 / 4)
    assert found.density(x) == pytest.approx(expected, rel=1e-4)
    assert found.outliers == []


@pytest.mark.parametrize("strength", [0.3, 2.0, 5.0])
def test_a_spike_is_that_of_baik_ben_arous_and_peche(strength: float) -> None:
    """Data of covariance 1 + strength·aaᵀ: value and overlap are known, and the threshold."""
    task = Quadratic(spike=strength)
    ratio = 2.0
    found = spectra.effective(task, {"M": [[0.5]], "R": [[0.5]]}, ratio)
    if strength**2 < 1 / ratio:
        assert found.outliers == []
        return
    (outlier,) = found.outliers
    assert outlier.value == pytest.approx((1 + strength) * (1 + 1 / (ratio * strength)), rel=1e-3)
    overlap = (1 - 1 / (ratio * strength**2)) / (1 + 1 / (ratio * strength))
    assert outlier.overlaps["a"] == pytest.approx(overlap, rel=2e-3)


def cases() -> list[Any]:
    mixture = sl.tasks.GaussianMixture(classes=3, precision=5.0)
    xor = sl.tasks.XorMixture(width=4, precision=5.0)
    four = np.array([[1, 0], [-1, 0], [0, 1], [0, -1.0]])
    return [
        (mixture, {"M": RNG.normal(size=(3, 3)), "R": 0.3 * np.eye(3)}, "W0W0"),
        (mixture, {"M": 2 * np.eye(3) - 0.5, "R": 0.1 * np.eye(3)}, "W0W1"),
        (xor, xor.random_state(100, seed=1), "W1W1"),
        (xor, {"v": np.array([1.5, 1.5, -1.5, -1.5]), "M": 1.5 * four, "R": 0.1 * np.eye(4)}, 0),
    ]


def mean_spectrum(task: Any, state: Any, matrix: str, block: Any, dim: int, draws: int) -> Any:
    values = []
    for seed in range(draws):
        training = Training(task, dim, 1.0, seed, state)
        weights = next(training.weights_at(np.zeros(1)))
        data = training.unseen(round(RATIO * dim))
        values.append(Empirical(task, data, weights.W, weights.v).eigenvalues(matrix, block))
    return np.mean(values, axis=0)


@pytest.mark.parametrize(
    ("number", "matrix"), [(0, "hessian"), (1, "gradient"), (2, "hessian"), (3, "gradient")]
)
def test_against_matrices(number: int, matrix: str) -> None:
    """Outliers within 3 %, none missing, none invented; edges approached as the dimension grows."""
    task, state, block = cases()[number]
    predicted = spectra.effective(task, state, RATIO, matrix, block)
    low, high = predicted.edges[0], predicted.edges[-1]
    width = high - low
    all_ = predicted.outlier_values
    assert all_ == [o.value for o in predicted.outliers for _ in range(o.multiplicity)]
    above = sorted((x for x in all_ if x > high), reverse=True)
    below = sorted(x for x in all_ if x < low)
    # outliers nearer to an edge than a tenth of the bulk are not told from it in these dimensions
    clear = [x for x in above if x > high + 0.1 * width]
    gaps = []
    for dim, draws in ((120, 12), (700, 2)):
        mean = mean_spectrum(task, state, matrix, block, dim, draws)
        top = (high - mean[::-1][len(above)]) / width
        bottom = (mean[len(below)] - low) / width
        gaps.append((top, bottom))
    found = mean[::-1][: len(clear)]
    while clear:  # nearly equal ones repel each other by 1/√dim: compare their mean
        near = [x for x in clear if x > 0.97 * clear[0]]
        assert np.mean(found[: len(near)]) == pytest.approx(np.mean(near), rel=0.03)
        found, clear = found[len(near) :], clear[len(near) :]
    for small, large in zip(*gaps, strict=True):
        assert abs(large) < 0.1  # where the law of D has a thin tail edges are reached slowly
        assert abs(large) < 0.75 * abs(small) + 0.01
    mass = np.trapezoid(predicted.density(np.linspace(low, high, 2001)), dx=width / 2000)
    assert mass == pytest.approx(1 - predicted.atom, abs=2e-3)


def test_edge_of_a_finite_matrix() -> None:
    """Well trained, large D are rare: the limit has met more of them than 600 samples have."""
    task = sl.tasks.GaussianMixture(classes=3, precision=10.0)
    state = {"M": 4 * np.eye(3) - 4 / 3, "R": 0.1 * np.eye(3)}
    dim, ratio, draws = 200, 3.0, 30
    limit = spectra.effective(task, state, ratio, "gradient")
    finite = spectra.effective(task, state, ratio, "gradient", dim=dim)
    assert limit.outliers == finite.outliers == []
    tops = []
    for seed in range(draws):
        training = Training(task, dim, 1.0, seed, task.check_state(state))
        W = next(training.weights_at(np.zeros(1))).W
        data = training.unseen(round(ratio * dim))
        tops.append(Empirical(task, data, W).eigenvalues("gradient", 0)[-1])
    error = float(np.std(tops, ddof=1)) / draws**0.5
    assert abs(np.mean(tops) - finite.edges[-1]) < 4 * error
    assert abs(np.mean(tops) - limit.edges[-1]) > 8 * error


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_alignment_and_overlaps(matrix: str) -> None:
    """Of weights and anchors with eigenvectors, for which the noise of the data is in the way."""
    task, state, _ = cases()[0]
    predicted = spectra.effective(task, state, RATIO, matrix)
    dim = 500
    aligned, overlaps = [], []
    for seed in range(8):
        training = Training(task, dim, 1.0, seed, state)
        W = next(training.weights_at(np.zeros(1))).W
        found = Empirical(task, training.unseen(round(RATIO * dim)), W)
        vectors = found.leading(matrix, [0], 3).vectors[0]
        aligned.append(spectra.alignment(W[0], vectors))
        overlaps.append((spectra.anchors(task, dim) @ vectors[:, 0]) ** 2)
    error = float(np.std(aligned, ddof=1)) / 8**0.5
    assert np.mean(aligned) == pytest.approx(predicted.alignment, abs=4 * error + 5 / dim)
    assert predicted.alignment < 0.97  # not the trivial answer
    first = np.array(list(predicted.outliers[0].overlaps.values()))
    errors = np.std(overlaps, axis=0, ddof=1) / 8**0.5
    assert np.all(np.abs(np.mean(overlaps, axis=0) - first) < 4 * errors + 5 / dim)


class Linear(MultiIndexFamily):
    """The loss s: its Hessian vanishes, its gradient does not."""

    def __init__(self) -> None:
        super().__init__(width=1, anchors=["a"], labels=[0.0])

    def loss(self, fields: Any, readout: Any, label: Any) -> Any:
        return jnp.sum(fields)


def test_a_block_that_vanishes() -> None:
    state = {"M": [[0.5]], "R": [[0.5]]}
    zero = spectra.effective(Linear(), state, 2.0)
    assert (zero.atom, zero.outliers, len(zero.edges)) == (1.0, [], 0)
    assert np.isnan(zero.alignment)
    assert zero.density([-1.0, 0.5]).tolist() == [0.0, 0.0]
    assert repr(zero) == "EffectiveSpectrum(no bulk but zero; outliers: none)"
    assert spectra.effective(Linear(), state, 2.0, "gradient").atom == 0.0


def test_atoms_keep_the_second_moments() -> None:
    """Joined or not, the nodes of a law add up to E[y yᵀ] and to E[D y yᵀ]."""
    task, state, _ = cases()[0]
    with jax.enable_x64(True):
        law = law_at(task, task.check_state(state), 2**12)
        D = block_weights(task, state, "hessian", find_block(task, 0), law)
    ybar = law.means[:, None] + law.nodes @ law.slope.T
    each = ybar[..., :, None] * ybar[..., None, :] + law.rest
    joined = atoms(law, D, samples=D.size)
    assert len(joined.D) < 700
    assert joined.probabilities.sum() == pytest.approx(1)
    second = np.tensordot(law.probabilities, each, 2)
    assert joined.moments.sum(axis=0) == pytest.approx(second, abs=1e-12)
    weighted = np.tensordot(law.probabilities * D, each, 2)
    assert joined.matrix(0.0, 1.0) == pytest.approx(weighted, rel=2e-3, abs=1e-4)
    covariance = np.eye(len(second)) / task.precision
    means = np.einsum("c,ci,cj->ij", task.weights, law.means, law.means)
    assert second == pytest.approx(covariance + means, abs=2e-3)


def test_wrong_input_is_named() -> None:
    task = sl.tasks.GaussianMixture(classes=2)
    state = {"M": np.eye(2), "R": np.eye(2)}
    with pytest.raises(ValueError, match="ratio=0 is not allowed"):
        spectra.effective(task, state, 0)
    with pytest.raises(ValueError, match=r"block='vv' is not allowed.* W0W0, W0W1, W1W1"):
        spectra.effective(task, state, 1.0, block="vv")
    with pytest.raises(ValueError, match=r"block=\(7, 7\) is not allowed"):
        spectra.effective(task, state, 1.0, block=7)
    with pytest.raises(ValueError, match="matrix='fisher' is not allowed"):
        spectra.effective(task, state, 1.0, "fisher")
    with pytest.raises(ValueError, match="R must be positive semidefinite"):
        spectra.effective(task, {"M": np.eye(2), "R": -np.eye(2)}, 1.0)
    with pytest.raises(ValueError, match="precision=inf"):
        spectra.effective(sl.tasks.GaussianMixture(precision=np.inf), state, 1.0)
    with pytest.raises(sl.InputError, match=r"task=SpikedTensor\(.* must be a multi-index task"):
        spectra.effective(sl.tasks.SpikedTensor(), {"m": 0.0, "r2": 1.0}, 1.0)  # type: ignore[arg-type]
    xor = sl.tasks.XorMixture()
    with pytest.raises(sl.InputError, match="block='vW1' is not allowed: it is not square"):
        spectra.effective(xor, xor.random_state(50, seed=0), 1.0, block="vW1")
