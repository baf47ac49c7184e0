"""Wick moments against quadrature, and quadratic forms against brute-force Wick sums."""

import itertools

import jax
import numpy as np
import pytest

from sgdlimits.gaussian.wick import (
    moment,
    quadratic_mean,
    quadratic_second,
    quadratic_square_mean,
    quadratic_square_second,
)


def example(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factor, form = rng.normal(size=(2, size, size))
    return (form + form.T) / 2, factor @ factor.T / size


@pytest.mark.parametrize("indices", [(0, 1), (0, 1, 2, 2), (0, 0, 1, 1, 2, 2), (0,) * 8, (2, 1, 0)])
def test_moment_matches_exact_quadrature(indices: tuple[int, ...]) -> None:
    _, c = example(3, 0)
    t, w = np.polynomial.hermite_e.hermegauss(6)  # exact for degree 11
    grid = np.stack(np.meshgrid(t, t, t, indexing="ij")).reshape(3, -1)
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel() / np.sqrt(2 * np.pi) ** 3
    fields = np.linalg.cholesky(c) @ grid
    exact = float(np.prod(fields[list(indices)], axis=0) @ weights)
    with jax.enable_x64(True):
        assert float(moment(c, indices)) == pytest.approx(exact, rel=1e-12, abs=1e-13)


def test_quadratic_forms_match_brute_force() -> None:
    b, c = example(3, 1)
    with jax.enable_x64(True):
        cached = {
            n: {
                i: float(moment(c, i)) for i in itertools.combinations_with_replacement(range(3), n)
            }
            for n in (2, 4, 6)
        }

        def brute(power: int, extra: tuple[int, ...]) -> float:
            total = 0.0
            for pairs in itertools.product(range(3), repeat=2 * power):
                weight = np.prod([b[pairs[2 * s], pairs[2 * s + 1]] for s in range(power)])
                indices = tuple(sorted(pairs + extra))
                total += float(weight) * cached[len(indices)][indices]
            return total

        assert float(quadratic_mean(b, c)) == pytest.approx(brute(1, ()), rel=1e-12)
        assert float(quadratic_square_mean(b, c)) == pytest.approx(brute(2, ()), rel=1e-12)
        second = np.asarray(quadratic_second(b, c))
        squared = np.asarray(quadratic_square_second(b, c))
    for i, j in itertools.product(range(3), repeat=2):
        assert second[i, j] == pytest.approx(brute(1, (i, j)), rel=1e-11)
        assert squared[i, j] == pytest.approx(brute(2, (i, j)), rel=1e-11)
    wrong = squared - 4 * c @ b @ c @ b @ c  # coefficient 4 in place of 8
    assert wrong[0, 0] != pytest.approx(brute(2, (0, 0)), rel=1e-2)


def test_long_products_of_few_coordinates() -> None:
    with jax.enable_x64(True):
        assert float(moment(np.eye(2), [0] * 12 + [1] * 4)) == 10395 * 3
        assert float(moment(np.eye(2), [])) == 1.0


def test_leading_axes_and_derivatives() -> None:
    b, c = example(3, 2)
    with jax.enable_x64(True):
        stack = np.stack([c, 2 * c])
        assert moment(stack, [0, 1, 2, 2]).shape == (2,)
        assert quadratic_square_second(b, stack).shape == (2, 3, 3)
        # d/ds E[(z' (s B) z)^2 z z'] at s = 1 is twice the value
        slope = jax.jacobian(lambda s: quadratic_square_second(s * b, c))(1.0)
        np.testing.assert_allclose(slope, 2 * quadratic_square_second(b, c), rtol=1e-12)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"indices=\[0, 5\] is not allowed.*0\.\.1"):
        moment(np.eye(2), [0, 5])
    with pytest.raises(ValueError, match=r"form has shape \(3, 3\)"):
        quadratic_mean(np.eye(3), np.eye(2))
