"""The readout block: against matrices, and which of its eigenvalues stand out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import spectra
from sgdlimits.spectra import Empirical, Training

FOUR = np.array([[1, 0], [-1, 0], [0, 1], [0, -1.0]])  # μ, −μ, ν, −ν
MATRICES = ["hessian", "gradient"]


def learned(width: int, classes: int, spread: float = 1e-3) -> dict[str, np.ndarray]:
    """An XOR network whose neurons point to so many of the four means in turn, and no others.

    These are rest points at λ = ∞ for ridge 0.05, where the output at such a mean is ±logit(0.8),
    about ±1.4, and 0 at the others (BGJ22, section 5.1).
    """
    which = np.arange(width) % classes
    size = np.sqrt(1.4 * classes / width)
    v = np.where(which < 2, size, -size)
    return {"v": v, "M": size * FOUR[which], "R": spread * np.eye(width)}


def tanh_network(width: int, precision: float = 10.0) -> sl.tasks.MultiIndexTask:
    """Labels ±1, two components each; the hidden layer is odd, without a positive mean."""

    def loss(s: Any, v: Any, y: Any) -> Any:
        return jax.nn.softplus(-y * jnp.sum(v * jnp.tanh(s)))

    return sl.tasks.MultiIndexTask(
        loss=loss,
        width=width,
        anchors=["a", "b", "c", "e"],
        means=np.eye(4),
        labels=[1, 1, -1, -1],
        precision=precision,
        readout="trained",
        kinks="none",
    )


def largest_ratio(values: np.ndarray) -> int:
    """The rule that we do not use: eigenvalues before the largest ratio of neighbours."""
    leading = np.abs(values[:5])
    return int(np.argmax(leading[:-1] / leading[1:])) + 1


@pytest.mark.parametrize("matrix", MATRICES)
def test_eigenvalues_are_those_of_a_matrix_of_data(matrix: str) -> None:
    task = sl.tasks.XorMixture(width=5, precision=10.0)
    state = task.random_state(100, seed=0)
    predicted = spectra.effective(task, state, 4.0, matrix, "vv")
    training = Training(task, 50, 1.0, 0, state)
    weights = next(training.weights_at(np.zeros(1)))
    values = Empirical(task, training.unseen(200_000), *weights).eigenvalues(matrix, "vv")
    assert predicted.eigenvalues == pytest.approx(values[::-1], rel=0.03, abs=2e-4)
    assert len(predicted.edges) == 0
    assert predicted.density([0.0, 1.0]).tolist() == [0.0, 0.0]
    assert 0 < predicted.alignment <= 1
    assert repr(predicted).startswith("EffectiveSpectrum(5 eigenvalues, no bulk; outliers: ")


@pytest.mark.parametrize("matrix", MATRICES)
def test_positivity_makes_one_outlier_at_a_random_start(matrix: str) -> None:
    """That of relu(Wx) (BGHJ23, Figure 2.5): tanh has none."""
    relu, tanh = sl.tasks.XorMixture(width=20, precision=10.0), tanh_network(20)
    for seed in range(3):
        start = spectra.effective(relu, relu.random_state(1000, seed), 4.0, matrix, "vv")
        (only,) = start.outliers
        assert only.value == start.eigenvalues[0] > 3 * start.threshold
        assert only.overlaps == {}
        # the others are one bulk, of which all but a few are the noise
        assert start.eigenvalues[1] < 0.7 * start.threshold
        odd = spectra.effective(tanh, tanh.random_state(1000, seed), 4.0, matrix, "vv")
        assert odd.outliers == []
        assert odd.eigenvalues[0] < 0.8 * odd.threshold


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize(("width", "classes"), [(12, 1), (12, 2), (6, 3), (12, 4), (4, 4)])
def test_as_many_outliers_as_hidden_classes(width: int, classes: int, matrix: str) -> None:
    """BGHJ23, Figure 2.6; also where the width leaves no eigenvalue besides them."""
    task = sl.tasks.XorMixture(width=width, precision=40.0)
    state = learned(width, classes)
    assert spectra.hidden_classes(task, state) == classes
    spectrum = spectra.effective(task, state, 4.0, matrix, "vv")
    assert len(spectrum.outliers) == classes
    expected = spectrum.eigenvalues[:classes].tolist()
    assert spectrum.outlier_values == expected
    assert np.all(np.abs(spectrum.eigenvalues[:classes]) > spectrum.threshold)
    assert np.all(np.abs(spectrum.eigenvalues[classes:]) <= spectrum.threshold)


def test_the_largest_ratio_of_neighbours_would_miscount() -> None:
    """A negative control of the rule: of four eigenvalues it never finds four outliers."""
    task = sl.tasks.XorMixture(width=4, precision=10.0)
    spectrum = spectra.effective(task, learned(4, 4), 4.0, "hessian", "vv")
    assert len(spectrum.outliers) == 4 != largest_ratio(spectrum.eigenvalues)


@pytest.mark.parametrize("matrix", MATRICES)
def test_outliers_stay_as_the_noise_vanishes(matrix: str) -> None:
    """Of order one as λ → ∞, to their limit (Lemmas 4.4 and 4.5); all others fall like 1/λ."""
    state = learned(8, 3, spread=0.5)
    lemma = {
        "hessian": sl.theory.population_spectra.xor_readout_hessian,
        "gradient": sl.theory.population_spectra.xor_readout_gradient,
    }[matrix]
    limit = np.linalg.eigvalsh(lemma(state["v"], state["M"][:, 0], state["M"][:, 1]))[::-1]
    gaps, others, noise = [], [], []
    for precision in (40.0, 400.0, 4000.0):
        task = sl.tasks.XorMixture(width=8, precision=precision)
        spectrum = spectra.effective(task, state, 4.0, matrix, "vv")
        assert len(spectrum.outliers) == 3
        gaps.append(np.max(np.abs(np.array(spectrum.outlier_values) / limit[:3] - 1)))
        others.append(np.abs(spectrum.eigenvalues[3]))
        noise.append(spectrum.threshold)
    assert gaps[2] < 0.05  # errors are O(λ^(−1/2)): overlaps with a mean that is not learned are 0
    assert gaps[1] < 0.5 * gaps[0]
    for falling in (others, noise):
        assert np.array(falling[1:]) / falling[:-1] == pytest.approx([0.1, 0.1], rel=0.6)


def test_at_most_as_many_as_components() -> None:
    """Weyl's inequality, at states that no training has made."""
    task = sl.tasks.BinaryMixture(precision=20.0, width=6)
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(20):
        state = {
            "v": 3 * rng.normal(size=6),
            "M": 3 * rng.normal(size=(6, 1)),
            "R": 0.1 * np.eye(6),
        }
        spectrum = spectra.effective(task, state, 4.0, "gradient", "vv", nodes=2**10)
        counts.append(len(spectrum.outliers))
    assert max(counts) == 2 == len(task.means)
