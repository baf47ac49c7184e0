"""Alignment of vectors, matrices and subspaces."""

import numpy as np
import pytest

from sgdlimits.spectra import alignment, escape, leading_space, lives_in, principal_angles

RNG = np.random.default_rng(0)
B = RNG.standard_normal((8, 3))
PROJECTOR = B @ np.linalg.inv(B.T @ B) @ B.T


def test_alignment_is_the_projection() -> None:
    v = RNG.standard_normal(8)
    expected = np.linalg.norm(PROJECTOR @ v) / np.linalg.norm(v)
    assert alignment(v, B) == pytest.approx(expected, rel=1e-12)
    assert alignment(B @ [1, 2, 3], B) == pytest.approx(1)
    assert alignment(v - PROJECTOR @ v, B) == pytest.approx(0, abs=1e-12)
    twice = np.concatenate([B, B], axis=1)  # dependent columns count once
    assert alignment(v, twice) == pytest.approx(expected, rel=1e-12)


def test_matrices_live_in_what_they_map_to() -> None:
    A = B @ RNG.standard_normal((3, 5))
    noise = RNG.standard_normal((8, 5))
    noise *= 0.1 * np.linalg.norm(A, 2) / np.linalg.norm(noise, 2)
    assert escape(A, B) < 1e-12
    assert lives_in(A, B, 1e-10)
    assert escape(A + noise, B) < 0.12
    assert not lives_in(noise - PROJECTOR @ noise, B, 0.5)
    v = B @ [1, 0, 0]
    assert lives_in(v, B, 0.0)


def test_the_best_correction_is_the_projection() -> None:
    """Definition 2.2 asks for any M with Im(A − M) in B: none is smaller than (1 − P)A."""
    A = RNG.standard_normal((8, 5))
    least = escape(A, B) * np.linalg.norm(A, 2)
    for _ in range(50):
        M = A - B @ RNG.standard_normal((3, 5)) - PROJECTOR @ A
        assert np.linalg.norm(M, 2) >= least - 1e-12


def test_angles() -> None:
    angle = 0.3
    first = np.array([[1.0], [0], [0]])
    second = np.array([[np.cos(angle), 0], [np.sin(angle), 0], [0, 1]])
    assert principal_angles(first, second) == pytest.approx([angle])
    assert principal_angles(B, B @ RNG.standard_normal((3, 3))) == pytest.approx(
        [0, 0, 0], abs=1e-7
    )


def test_leading_space_counts_absolute_values() -> None:
    Q = np.linalg.qr(RNG.standard_normal((5, 5)))[0]
    A = Q @ np.diag([1.0, -5.0, 3.0, 0.5, 2.0]) @ Q.T
    assert principal_angles(leading_space(A, 2), Q[:, [1, 2]]) == pytest.approx([0, 0], abs=1e-7)


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match="vector has shape"):
        alignment(np.zeros(3), np.eye(3))
    with pytest.raises(ValueError, match=r"basis has shape \(8, 3\).*must have 3 rows"):
        alignment(np.ones(3), B)
    with pytest.raises(ValueError, match="vector"):
        alignment([1.0, np.nan], np.eye(2))
    with pytest.raises(ValueError, match="vector"):
        alignment([1.0, 1j], np.eye(2))
    with pytest.raises(ValueError, match="rank=0 is not allowed"):
        leading_space(np.eye(3), 0)
