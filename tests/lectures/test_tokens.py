"""Random tokens and matrices, and what is counted among them."""

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures import tokens


def test_uniform_points_are_on_the_sphere_and_do_not_depend_on_the_number_of_runs() -> None:
    one, three = tokens.uniform(4, 3, seed=7), tokens.uniform(4, 3, runs=3, seed=7)
    assert np.array_equal(one[0], three[0])
    many = tokens.uniform(2000, 3)[0]
    np.testing.assert_allclose(np.linalg.norm(many, axis=1), 1, atol=1e-14)
    # the height on a sphere in three dimensions is uniform: its variance is 1/3
    assert np.mean(many[:, 2] ** 2) == pytest.approx(1 / 3, abs=4 * np.sqrt(4 / 45 / 2000))


def test_huge_and_tiny_points_have_directions() -> None:
    np.testing.assert_allclose(
        tokens.on_sphere([[3e200, 4e200], [0, 1e-290]]), np.array([[0.6, 0.8], [0, 1]])
    )


def test_matrices_are_of_their_ensembles() -> None:
    d = 200
    for name in tokens.ENSEMBLES:
        Q, K, V = tokens.matrices(name, d, seed=1)
        A = Q.T @ K
        symmetric = np.allclose(A, A.T)
        assert symmetric == (name in ("identity", "wigner", "symmetric"))
        assert np.allclose(A, V) == (name in ("identity", "value", "symmetric"))
    Q, _, V = tokens.matrices("wigner", d, seed=1)
    for matrix, low in ((Q, -2.0), (V, 0.0)):  # the semicircle of radius 2, and its modulus
        values = np.linalg.eigvalsh(matrix)
        assert values[0] == pytest.approx(low, abs=0.15)
        assert values[-1] == pytest.approx(2, abs=0.15)
        assert np.mean(values**2) == pytest.approx(1, abs=0.05)
    Q, K, _ = tokens.matrices("ginibre", d, seed=1)
    assert abs(np.sum(Q * K)) < 4  # its deviation is 1
    assert np.linalg.norm(Q, 2) == pytest.approx(2, abs=0.1)


def test_clusters_are_chains_of_pairs() -> None:
    angles = np.array([0.0, 0.1, 0.2, 2.0, 2.05, 4.0])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert tokens.clusters(points, np.cos(0.11)) == 3  # the first and third by the second
    assert tokens.clusters(points, np.cos(0.07)) == 5
    both = np.stack([points, points[[0] * 6]])
    assert tokens.clusters(both, np.cos(0.11)).tolist() == [3, 1]
    assert tokens.products(both).shape == (2, 15)


@pytest.mark.parametrize("threshold", [1.0, -1.0, np.nan, "x"])
def test_thresholds_are_products(threshold: object) -> None:
    with pytest.raises(sl.InputError, match="threshold"):
        tokens.clusters(np.eye(2), threshold)  # type: ignore[arg-type]


def test_wrong_input() -> None:
    with pytest.raises(sl.InputError, match="particles=1 is not allowed"):
        tokens.uniform(1, 3)
    with pytest.raises(sl.InputError, match="dim=1 is not allowed"):
        tokens.uniform(2, 1)
    with pytest.raises(sl.InputError, match="ensemble='x' is not allowed"):
        tokens.matrices("x", 3)
    with pytest.raises(sl.InputError, match="must not be zero"):
        tokens.products([[0.0, 0.0], [1.0, 0.0]])
