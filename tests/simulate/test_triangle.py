"""Square roots that move on by rotations are those of the matrix that NumPy forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.simulate import triangle

RUNS, KEEP = 6, 0.9
KINDS = {"ordinary": 1.0, "no gradient": 0.0, "tiny gradient": 1e-150, "huge gradient": 1e100}


def moved(C: np.ndarray, *others: np.ndarray) -> tuple[jax.Array, ...]:
    return compiled(triangle.triangle_of(C), *map(jnp.asarray, others))


@jax.jit
def compiled(
    columns: triangle.Triangle, g: jax.Array, eta: jax.Array, rho: jax.Array
) -> tuple[jax.Array, ...]:
    """BBᵀ for B = [aC, 0] − g (η, ρ)ᵀ, and Cη; runs along the last axis."""
    columns, total, tau = triangle.gather(columns, eta, rho)
    last = jnp.where(tau > 0, KEEP / tau, 0.0) * total - tau * g
    return triangle.gram(triangle.absorb(columns, jnp.asarray(KEEP), last)), total


def draw(K: int, size: float) -> list[np.ndarray]:
    """Of six runs the second has a singular C, the third none, the fourth no ρ."""
    rng = np.random.default_rng(K)
    C, g = np.tril(rng.normal(size=(RUNS, K, K))), size * rng.normal(size=(RUNS, K))
    eta, rho = rng.normal(size=(RUNS, K)), rng.chisquare(20, size=RUNS) ** 0.5
    C[1, -1] = 0
    C[2] = 0
    rho[3] = 0
    eta[3, -1] = 0
    return [np.moveaxis(part, 0, -1) for part in (C, g, eta, rho)]


def expected(C: np.ndarray, g: np.ndarray, eta: np.ndarray, rho: np.ndarray) -> np.ndarray:
    wide = np.concatenate([KEEP * C, np.zeros_like(C[:, :1])], axis=1)
    B = wide - g[:, None] * np.concatenate([eta, rho[None]])[None]
    return np.einsum("ikn,jkn->nij", B, B)


def gap(found: np.ndarray, true: np.ndarray) -> float:
    """The largest difference relative to the norms of both rows."""
    norms = np.sqrt(np.einsum("nii->ni", true))
    scale = norms[:, :, None] * norms[:, None, :]
    return float(np.max(np.abs(found - true) / np.where(scale > 0, scale, 1.0)))


@pytest.mark.parametrize("size", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("K", [1, 2, 4, 6, 7, 64])
def test_against_numpy(K: int, size: float) -> None:
    """Written out up to width 6, a loop beyond it."""
    given = draw(K, size)
    with jax.enable_x64(True):
        found, total = (np.asarray(part) for part in moved(*given))
    assert gap(found, expected(*given)) < 1e-14
    C, _, eta, _ = given
    np.testing.assert_allclose(total, np.einsum("ikn,kn->in", C, eta), rtol=0, atol=1e-13)


@pytest.mark.parametrize("K", [4, 7])
def test_the_check_sees_what_is_wrong(K: int) -> None:
    """Negative control: a chi-square with one degree of freedom less, or another g."""
    C, g, eta, rho = draw(K, 1.0)
    with jax.enable_x64(True):
        found = np.asarray(moved(C, g, eta, rho)[0])
    assert gap(found, expected(C, g, eta, np.sqrt(np.maximum(rho**2 - 1, 0)))) > 1e-3
    assert gap(found, expected(C, g[::-1], eta, rho)) > 1e-3


@pytest.mark.parametrize("K", [4, 7])
def test_rows_keep_their_own_accuracy(K: int) -> None:
    """A row that has nearly vanished is not lost beside the others: R is never formed."""
    C, g, eta, rho = draw(K, 1.0)
    C[0], g[0] = 1e-100 * C[0], 1e-100 * g[0]
    with jax.enable_x64(True):
        found = np.asarray(moved(C, g, eta, rho)[0])
    assert gap(found, expected(C, g, eta, rho)) < 1e-14
    assert 0 < found[0, 0, 0] < 1e-190


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
@pytest.mark.parametrize("K", [4, 7])
def test_what_overflows_is_not_finite(K: int, value: float) -> None:
    """A run that has diverged shows it and leaves the others alone."""
    C, g, eta, rho = draw(K, 1.0)
    g[:, 5] = value
    with jax.enable_x64(True):
        found = np.asarray(moved(C, g, eta, rho)[0])
    assert not np.isfinite(found[5]).all()
    assert np.isfinite(found[:5]).all()
