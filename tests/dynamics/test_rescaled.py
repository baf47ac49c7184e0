"""Diffusive limits around rest points: against formulas, and against SGD itself."""

import math

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import theory
from sgdlimits._types import StateLike
from sgdlimits.dynamics import EffectiveDynamics
from sgdlimits.dynamics.noise.linear import LinearSDE
from sgdlimits.dynamics.noise.rescaled import RescaledSDE

EQUATOR = {"m": 0.0, "r2": 1.0}


def linear(limit: EffectiveDynamics, at: StateLike) -> LinearSDE:
    sde = limit.rescaled(at)
    assert isinstance(sde, LinearSDE)
    return sde


@pytest.mark.parametrize("order", [2, 3, 4])
def test_spiked_tensors_at_the_equator(order: int) -> None:
    """(3.5) corrected: decoupled, stationary variance 2k of the radius; the printed one fails."""
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=order, snr=0.5))
    sde = linear(limit, EQUATOR)
    k = order
    np.testing.assert_allclose(
        sde.drift_matrix, np.diag([2 * k * (0.5 * (k == 2) - 1), -4 * k]), atol=1e-12
    )
    np.testing.assert_allclose(sde.diffusion_matrix, np.diag([4 * k, 16 * k**2]), atol=1e-12)
    found = sde.stationary_covariance()
    expected = [
        theory.spiked_tensor.equator_stationary_variance(snr=0.5, order=k),
        theory.spiked_tensor.radius_variance(order=k),
    ]
    np.testing.assert_allclose(found.covariance, np.diag(expected), rtol=1e-9, atol=1e-9)
    early = sde.covariance(0.1, init=np.diag([1.0, 2.0]))[1, 1]
    closed = theory.spiked_tensor.transient_radius_variance(0.1, order=k)
    np.testing.assert_allclose(early, closed, rtol=1e-9)
    assert found.unbounded == []
    assert sde.rank == 2
    printed = 4 * k * (k - 1) / (2 * 4 * k**2)  # drift −4k², noise 2√(k(k−1))
    assert abs(printed - expected[1]) > 1


def test_second_moment_of_an_unstable_process() -> None:
    sde = linear(sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=1.2)), EQUATOR)
    covariance = sde.covariance(1.0, init=np.diag([1.0, 0.0]))
    np.testing.assert_allclose(covariance[0, 0], 24.71819454637069, rtol=1e-9)
    found = sde.stationary_covariance()
    assert math.isnan(found.covariance[0, 0])
    np.testing.assert_allclose(found.covariance[1, 1], 4.0)
    assert [sorted(direction) for direction in found.unbounded] == [["m"]]


def test_paths_have_the_exact_covariance() -> None:
    A, S = np.array([[-1.0, 2.0], [0.0, -0.5]]), np.array([[1.0, 0.5], [0.5, 2.0]])
    sde = LinearSDE(["x", "y"], A, S)
    runs = 20_000
    paths = sde.sample(3.0, runs=runs, seed=1, init=[1.0, -1.0], points=4)
    assert paths.dims == ("run", "time", "statistic")
    for index, time in enumerate(paths.time.values[1:], start=1):
        x = paths.values[:, index]
        products = (x - x.mean(0))[:, :, None] * (x - x.mean(0))[:, None, :]
        error = products.std(0) / runs**0.5
        assert np.all(np.abs(products.mean(0) - sde.covariance(float(time))) < 4.5 * error)
    long = sde.covariance(200.0)
    np.testing.assert_allclose(long, sde.stationary_covariance().covariance, rtol=1e-9)
    np.testing.assert_allclose(A @ long + long @ A.T + S, 0.0, atol=1e-9)


def test_binary_ring_is_degenerate() -> None:
    """Prop. 4.3: rank 1; the noise pushes along the radius, which the drift contracts."""
    ridge = 0.1
    radius = math.sqrt(theory.binary_mixture.ring_radius_squared(ridge))
    a = radius * np.array([math.cos(0.6), math.sin(0.6)])
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture(precision=math.inf, ridge=ridge))
    sde = linear(limit, {"v": a, "M": a[:, None], "R": np.zeros((2, 2))})
    assert sde.rank == 1
    found = sde.stationary_covariance()
    assert found.unbounded == []  # the neutral direction along the ring is not excited
    direction = np.tile(a, 2)
    rate = 2 * (ridge - 2 * ridge**2) * (a @ a)
    expected = ridge**2 / (2 * rate) * np.outer(direction, direction)
    np.testing.assert_allclose(found.covariance[:4, :4], expected, atol=1e-9)


def test_xor_rings_have_noise_of_rank_two() -> None:
    """Prop. 5.1: two anticorrelated rings."""
    ridge = 0.05
    radius = math.sqrt(theory.xor.ring_radius_squared(ridge))
    mu = radius * np.array([math.cos(0.4), math.sin(0.4)])
    nu = -radius * np.array([math.cos(1.0), math.sin(1.0)])
    M = np.zeros((4, 2))
    M[:2, 0], M[2:, 1] = mu, nu
    state = {"v": np.concatenate([mu, nu]), "M": M, "R": np.zeros((4, 4))}
    sde = linear(sl.effective_dynamics(sl.tasks.XorMixture(precision=math.inf, ridge=ridge)), state)
    assert sde.rank == 2
    names = sde.coordinates
    anchors = ["mu", "mu", "nu", "nu"]
    moving = [*(f"v[{i}]" for i in range(4)), *(f"M[{i},{a}]" for i, a in enumerate(anchors))]
    where = np.ix_(*2 * [[names.index(name) for name in moving]])
    drift = theory.xor.rings_jacobian(state["v"], ridge=ridge)
    noise = theory.xor.rings_diffusion(state["v"], ridge=ridge)
    np.testing.assert_allclose(sde.drift_matrix[where], drift, atol=1e-12)
    np.testing.assert_allclose(sde.diffusion_matrix[where], noise, atol=1e-12)
    # as printed, the rings repel: the engine says otherwise
    printed = drift + 2 * np.tile(
        (ridge - 4 * ridge**2)
        * np.outer(state["v"], state["v"])
        * np.kron(np.eye(2), np.ones((2, 2))),
        (2, 2),
    )
    assert np.max(np.linalg.eigvals(printed).real) > 0.1
    assert np.max(np.linalg.eigvals(sde.drift_matrix[where]).real) < 1e-9


@pytest.mark.parametrize(
    ("task", "name", "expected"),
    [
        (sl.tasks.SpikedTensor(order=2, snr=0.5), "m", 2.0),
        (sl.tasks.SpikedTensor(order=2, snr=0.5), "r2", 4.0),
        (sl.tasks.SpikedTensor(order=3, snr=0.5), "r2", 6.0),
    ],
)
def test_stationary_variance_of_sgd(
    task: sl.tasks.SpikedTensor, name: str, expected: float
) -> None:
    dim, runs = 2000, 2048
    simulated = sl.simulate(task, dim=dim, runs=runs, time=3.0, init=EQUATOR, points=2, seed=5)
    x = dim * (simulated[name].values[:, -1] - EQUATOR[name]) ** 2
    error = x.std() / runs**0.5
    index = ["m", "r2"].index(name)
    sde = linear(sl.effective_dynamics(task), EQUATOR)
    predicted = sde.stationary_covariance().covariance[index, index]
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    assert abs(x.mean() - predicted) < 4 * error


def test_stationary_variance_of_sgd_on_the_binary_ring() -> None:
    """Only the radial direction has a stationary law: compare it there, and nothing across."""
    ridge, dim, runs = 0.1, 1000, 512
    task = sl.tasks.BinaryMixture(precision=math.inf, ridge=ridge)
    radius = math.sqrt(theory.binary_mixture.ring_radius_squared(ridge))
    a = radius * np.array([math.cos(0.8), math.sin(0.8)])
    state = {"v": a, "M": a[:, None], "R": np.zeros((2, 2))}
    simulated = sl.simulate(task, dim=dim, runs=runs, time=30.0, init=state, points=2, seed=6)
    shift = np.concatenate([simulated.v.values[:, -1], simulated.M.values[:, -1, :, 0]], axis=1)
    x = dim**0.5 * (shift - np.tile(a, 2))
    covariance = linear(sl.effective_dynamics(task), state).stationary_covariance().covariance
    radial = np.tile(a, 2) / math.sqrt(2 * a @ a)
    values = (x @ radial) ** 2
    predicted = radial @ covariance[:4, :4] @ radial
    assert abs(values.mean() - predicted) < 4 * values.std() / runs**0.5 + 0.02 * predicted


def test_some_statistics_rescaled() -> None:
    """(3.2): √n·m diffuses while r2 follows its ODE; compared with SGD over time."""
    task, dim, runs = sl.tasks.SpikedTensor(order=2, snr=0.8), 3000, 4096
    limit = sl.effective_dynamics(task)
    start = {"m": 0.0, "r2": 0.3}
    sde = limit.rescaled(start, only=["m"])
    assert isinstance(sde, RescaledSDE)
    paths = sde.sample(0.5, runs=runs, seed=1, points=6)
    assert paths.statistic.values.tolist() == ["m", "r2"]
    simulated = sl.simulate(task, dim=dim, runs=runs, time=0.5, init=start, points=6, seed=2)
    solution = limit.solve(start, time=0.5, points=6)
    np.testing.assert_allclose(paths.sel(statistic="r2")[0], solution.r2, rtol=1e-7)
    for index in range(1, 6):
        predicted = paths.sel(statistic="m").values[:, index] ** 2
        measured = dim * simulated.m.values[:, index] ** 2
        error = np.hypot(predicted.std(), measured.std()) / runs**0.5
        assert abs(predicted.mean() - measured.mean()) < 4 * error
    # negative control: with r2 held at its start the variance is another
    frozen = LinearSDE(["m"], [[4 * (0.8 - 0.3)]], [[8 * 0.3]]).covariance(0.5)[0, 0]
    assert abs(frozen - measured.mean()) > 8 * error


def test_away_from_rest_it_says_how_large_the_drift_is() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    with pytest.raises(ValueError, match=r"drift of the statistics is 1\.92") as caught:
        limit.rescaled({"m": 0.0, "r2": 0.4})  # −8·0.4·(0.4 − 1)
    assert "rest point" in str(caught.value)
    with pytest.raises(ValueError, match=r"only=\['q'\] is not allowed"):
        limit.rescaled(EQUATOR, only=["q"])
    moving = limit.rescaled({"m": 0.0, "r2": 1.0}, only=["r2"])
    assert isinstance(moving, RescaledSDE)
    with pytest.raises(ValueError, match="drift of the named statistics"):
        limit.rescaled({"m": 0.0, "r2": 0.5}, only=["r2"])
