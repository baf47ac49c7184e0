"""Binary mixture: reference numbers, limits, and printed formulas that must fail."""

import math

import numpy as np
import pytest
from scipy.special import expit

from sgdlimits.theory import binary_mixture as bm

V, M, R = np.array([0.8, -0.5]), np.array([0.6, 0.3]), np.array([[0.7, 0.2], [0.2, 0.9]])


def test_integrals_reference() -> None:
    along, perp, square = bm.integrals(V, M, R, precision=2.0)
    values = [*along, *perp.ravel(), square[0, 0], square[0, 1], square[1, 1]]
    expected = [
        -0.19604769340821085,
        -0.20736252494722046,
        0.024146686607799814,
        -0.009769234757674555,
        0.019501871002288496,
        -0.005583993705157553,
        0.09809101351548585,
        0.06617698278549346,
        0.10406774059453286,
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-11)


def test_ring_radius_and_losses_reference() -> None:
    assert bm.ring_radius_squared(0.1) == pytest.approx(1.3862943611198906, rel=1e-10)
    expected = [0.6931471805599453, 0.5967748020490666, 0.5004024235381879]
    np.testing.assert_allclose(bm.critical_losses(0.1), expected, rtol=1e-10)


def test_integrals_against_monte_carlo() -> None:
    """Direct sampling in four dimensions; independent noises per neuron (Lemma 8.1) must fail."""
    n = 10**6
    rng = np.random.default_rng(0)
    v, m, r = np.array([1.5, -1.0]), np.array([1.1, -0.9]), np.array([[0.3, 0.1], [0.1, 0.2]])
    lam = 1.5
    y = rng.integers(0, 2, n)
    shared = (2 * y - 1) + rng.normal(size=n) / np.sqrt(lam)
    perp = np.linalg.cholesky(r) @ rng.normal(size=(2, n)) / np.sqrt(lam)
    exact = bm.integrals(v, m, r, precision=lam)

    def gaps(coordinates: np.ndarray) -> float:
        s = m[:, None] * coordinates + perp
        residual = (s > 0) * (expit(v @ np.maximum(s, 0)) - y)
        samples = [*(coordinates * residual), *(residual * perp), *(residual[:1] * residual[1:])]
        values = [*exact.along, *np.diag(exact.orthogonal), exact.square[0, 1]]
        return max(
            abs(x.mean() - a) / (x.std() / np.sqrt(n)) for x, a in zip(samples, values, strict=True)
        )

    assert gaps(np.stack([shared, shared])) < 4
    other = (2 * y - 1) + rng.normal(size=n) / np.sqrt(lam)
    assert gaps(np.stack([shared, other])) > 20


@pytest.mark.parametrize(
    ("overlaps", "orthogonal", "precision"),
    [
        ([0.6, 0.3], [[1e-8, 0.0], [0.0, 1e-8]], 2.0),
        ([0.6, 0.3], [[0.0, 0.0], [0.0, 0.0]], 2.0),
        ([1.2, -0.3], [[0.7, 0.7], [0.7, 0.7]], 5.0),
        ([0.0, 0.5], [[0.0, 0.0], [0.0, 0.4]], 3.0),
    ],
)
def test_singular_grams_are_limits(
    overlaps: list[float], orthogonal: list[list[float]], precision: float
) -> None:
    at = bm.integrals(V, overlaps, orthogonal, precision=precision)
    near = bm.integrals(V, overlaps, np.array(orthogonal) + 1e-9 * np.eye(2), precision=precision)
    for a, b in zip(at, near, strict=True):
        np.testing.assert_allclose(a, b, atol=3e-5)


def test_rank_one_field_against_one_dimensional_quadrature() -> None:
    """For R = 0 everything is a function of the shared noise: an independent check to 1e-10."""
    lam, v, m = 2.0, V, np.array([0.6, -0.3])
    z, w = np.polynomial.legendre.leggauss(400)
    total = np.zeros(2)
    for low, high in ((-9.0, 0.0), (0.0, 9.0)):
        x = (low + high) / 2 + (high - low) / 2 * z
        density = (
            np.exp(-lam * (x - 1) ** 2 / 2) * np.sqrt(lam / (2 * np.pi)) * (high - low) / 2 * w
        )
        for sign, label in ((1, 1), (-1, 0)):
            s = sign * np.outer(m, x)
            residual = (s > 0) * (expit(v @ np.maximum(s, 0)) - label)
            total += (residual * sign * x) @ density / 2
    exact = bm.integrals(v, m, np.zeros((2, 2)), precision=lam).along
    np.testing.assert_allclose(exact, total, atol=1e-10)


def test_drift_at_high_precision_is_noiseless() -> None:
    exact = bm.drift(V, M, R, precision=math.inf, ridge=0.1)
    for precision, tolerance in ((1e6, 3e-3), (1e8, 3e-4)):
        near = bm.drift(V, M, R, precision=precision, ridge=0.1)
        for a, b in zip(exact, near, strict=True):
            np.testing.assert_allclose(a, b, atol=tolerance)


@pytest.mark.parametrize("overlaps", [[0.0, 0.0], [0.0, 0.7]])
def test_zero_overlaps_are_limits_of_high_precision(overlaps: list[float]) -> None:
    """Remark 7 claims that A^μ vanishes at mᵢ = 0; it does not."""
    exact = bm.noiseless_drift(V, overlaps, ridge=0.0)
    near = bm.drift(V, overlaps, R, precision=1e8, ridge=0.0)
    np.testing.assert_allclose(near.overlaps, exact.overlaps, atol=1e-3)
    assert abs(exact.overlaps[0]) > 0.1


def test_noiseless_drift_is_a_gradient() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        state = rng.normal(size=8)  # width 4
        velocity = np.concatenate(bm.noiseless_drift(state[:4], state[4:], ridge=0.1))
        for i, e in enumerate(1e-6 * np.eye(8)):
            high, low = (
                bm.population_loss(u[:4], u[4:], ridge=0.1) for u in (state + e, state - e)
            )
            assert velocity[i] == pytest.approx(-(high - low) / 2e-6, abs=1e-8)


def test_fixed_points_are_at_rest() -> None:
    zero, ring, mirror, *optimal = bm.fixed_points(0.1)
    assert isinstance(zero, bm.Point)
    assert isinstance(ring, bm.QuarterRing)
    assert isinstance(mirror, bm.QuarterRing)
    losses = bm.critical_losses(0.1)
    points = [(zero, losses.zero), (ring.at(0.7), losses.ring), (mirror.at(1.1), losses.ring)]
    points += [(point, losses.optimal) for point in optimal if isinstance(point, bm.Point)]
    assert len(points) == 5
    for point, loss in points:
        a = point.readout
        np.testing.assert_allclose(
            np.concatenate(bm.noiseless_drift(a, a, ridge=0.1)), 0, atol=1e-15
        )
        assert bm.population_loss(a, a, ridge=0.1) == pytest.approx(loss, rel=1e-14)
    square = bm.ring_radius_squared(0.1)
    printed = (math.log(2) + math.log1p(math.exp(-square)) + 0.1 * square) / 2
    assert printed != pytest.approx(losses.ring, rel=1e-2)
    assert len(bm.fixed_points(0.3)) == 1
    assert bm.fixed_points(0.3)[0].stable


def test_ring_jacobian_and_diffusion() -> None:
    ring = bm.fixed_points(0.1)[1]
    assert isinstance(ring, bm.QuarterRing)
    a = np.array(ring.at(0.6).readout)
    state = np.concatenate([a, a])
    columns = [
        (
            np.concatenate(bm.noiseless_drift(*np.split(state + e, 2), ridge=0.1))
            - np.concatenate(bm.noiseless_drift(*np.split(state - e, 2), ridge=0.1))
        )
        / 2e-5
        for e in 1e-5 * np.eye(4)
    ]
    exact = bm.ring_jacobian(a, ridge=0.1)
    np.testing.assert_allclose(exact, np.array(columns).T, atol=1e-10)
    sum_rule = (0.1 - 2 * 0.1**2) * np.outer(state, state)
    assert np.abs(exact + 2 * sum_rule - np.array(columns).T).max() > 0.1  # printed sign
    np.testing.assert_allclose(
        bm.ring_diffusion(a, ridge=0.1), bm.noiseless_diffusion(a, a), rtol=1e-12
    )


def test_noiseless_diffusion_for_opposite_signs() -> None:
    v, m = np.array([0.7, -0.4]), np.array([0.9, -0.6])
    slope = m * expit(-v * m)
    matrix = bm.noiseless_diffusion(v, m)
    assert matrix[0, 1] == pytest.approx(-slope[0] * slope[1] / 4, rel=1e-12)
    assert matrix[0, 1] != pytest.approx(slope[0] * slope[1] / 4, rel=0.1)  # printed sign
    assert matrix[0, 0] == pytest.approx(slope[0] ** 2 / 4, rel=1e-12)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"ridge=0.3 is not allowed.*\(0, 0.25\)"):
        bm.ring_radius_squared(0.3)
    with pytest.raises(ValueError, match=r"point=\[1.0, 1.0\] is not allowed"):
        bm.ring_jacobian([1.0, 1.0], ridge=0.1)
    with pytest.raises(ValueError, match=r"orthogonal has shape \(3, 3\)"):
        bm.integrals(V, M, np.eye(3), precision=1.0)
    with pytest.raises(ValueError, match=r"precision=0 is not allowed"):
        bm.integrals(V, M, R, precision=0)


@pytest.mark.parametrize("precision", [1.0, 30.0, 1000.0, math.inf])
def test_noisy_rest_points(precision: float) -> None:
    """The drift vanishes there, not at the points without noise, which are approached."""
    noise, size = {"precision": precision, "ridge": 0.1}, math.sqrt(bm.ring_radius_squared(0.1))
    ring = bm.fixed_points(0.1)[1]
    assert isinstance(ring, bm.QuarterRing)
    pairs = [(bm.noisy_optimal_point(**noise), (size, -size))]
    pairs += [(bm.noisy_ring_point(phi, **noise), ring.at(phi).readout) for phi in (0.0, 0.5)]
    for point, noiseless in pairs:
        rates = bm.drift(*point, **noise)
        assert max(np.max(np.abs(rate)) for rate in rates) < 1e-8
        wrong = bm.drift(noiseless, noiseless, np.zeros((2, 2)), **noise)
        assert np.max(np.abs(wrong.readout)) > 1e-5 or math.isinf(precision)
        assert np.max(np.abs(point.readout - noiseless)) < 3 / precision + 1e-12
