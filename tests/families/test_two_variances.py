"""A family that lives outside of the package gets everything the package has."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from tests.families.two_variances import TwoVariances

TASK = TwoVariances(narrow=0.5, wide=2.0, signal=1.0, noise=0.1, ridge=0.1)
STEP = 0.3
LIMIT = sl.effective_dynamics(TASK, STEP)
START = {"m": [0.2, -0.1], "r2": [0.3, 0.4]}


def rest_point(task: TwoVariances, step: float) -> tuple[np.ndarray, np.ndarray]:
    """m_b = σ_b² s/(σ_b² + α); r2 solves two linear equations."""
    variances = np.array([task.narrow, task.wide])
    m = variances * task.signal / (variances + task.ridge)
    bias = np.sum(variances * (m - task.signal) ** 2) + task.noise
    decay = np.diag(2 * (variances + task.ridge))
    gain = step / 2 * variances
    return m, np.linalg.solve(decay - np.outer(gain, variances), gain * bias)


def test_coordinates_and_labels() -> None:
    assert LIMIT.coordinates == ["m[narrow]", "m[wide]", "r2[narrow]", "r2[wide]"]
    assert LIMIT.nonnegative == ["r2[narrow]", "r2[wide]"]
    with pytest.raises(sl.InputError, match=r"state\['r2'\]=.* is not allowed: r2 must be >= 0"):
        LIMIT.drift({"m": [0.0, 0.0], "r2": [1.0, -1.0]})
    with pytest.raises(sl.InputError, match=r"init\['m'\] has shape \(3,\)"):
        sl.simulate(TASK, dim=50, runs=2, time=0.1, init={"m": [0.0] * 3, "r2": [1.0, 1.0]})


def test_the_solution_is_that_of_the_linear_equations() -> None:
    path = LIMIT.solve(START, time=4.0, points=5)
    assert path.m.dims == ("time", "block")
    assert path.block.values.tolist() == ["narrow", "wide"]
    for block, variance in (("narrow", 0.5), ("wide", 2.0)):
        rate, end = variance + 0.1, variance / (variance + 0.1)
        start = START["m"][["narrow", "wide"].index(block)]
        expected = end + (start - end) * np.exp(-rate * path.time.values)
        np.testing.assert_allclose(path.m.sel(block=block), expected, rtol=1e-7)


def test_rest_points_and_their_stability() -> None:
    (point,) = LIMIT.fixed_points(count=8)
    m, r2 = rest_point(TASK, STEP)
    np.testing.assert_allclose(point.state["m"], m, rtol=1e-9)
    np.testing.assert_allclose(point.state["r2"], r2, rtol=1e-9)
    assert point.stability == "stable"
    # control: without the corrector r2 would vanish
    assert np.all(r2 > 0.005)


def test_bifurcations_follow_a_parameter() -> None:
    diagram = LIMIT.bifurcations("ridge", 0.05, 2.0, count=8)
    (branch,) = diagram.branch.values
    one = diagram.sel(branch=branch)
    for index in (0, len(one.point) // 2, -1):
        m, r2 = rest_point(TASK.replace(ridge=float(one.ridge[index])), STEP)  # type: ignore[arg-type]
        np.testing.assert_allclose(one.m[index], m, rtol=1e-8)
        np.testing.assert_allclose(one.r2[index], r2, rtol=1e-8)
    assert set(one.stability.values) == {"stable"}


def test_sgd_fluctuates_around_the_limit_as_predicted() -> None:
    dim, runs = 2000, 1024
    simulated = sl.simulate(TASK, dim, runs=runs, time=1.0, step=STEP, init=START, points=3, seed=1)
    path = LIMIT.solve(START, times=simulated.time)
    spread = LIMIT.fluctuations(path)
    for name in sl.results.statistics(simulated):
        x = dim**0.5 * (
            sl.results.select(simulated, name).values - sl.results.select(path, name).values
        )
        predicted = sl.results.select(spread, name).values
        for k in (1, 2):
            assert abs(x[:, k].mean()) < 4.5 * predicted[k] / runs**0.5 + 4 / dim**0.5
            assert abs(x[:, k].var() / predicted[k] ** 2 - 1) < 4.5 * (2 / runs) ** 0.5


def test_rest_points_diffuse() -> None:
    """The stationary covariance solves Lyapunov's equation of the model's own matrices."""
    m, r2 = rest_point(TASK, STEP)
    sde = LIMIT.rescaled({"m": m, "r2": r2})
    C = sde.stationary_covariance().covariance
    balance = sde.drift_matrix @ C + C @ sde.drift_matrix.T + sde.diffusion_matrix
    np.testing.assert_allclose(balance, 0.0, atol=1e-10)
    part = LIMIT.rescaled({"m": m, "r2": r2}, only=["m[wide]"])
    assert part.rescaled == ["m[wide]"]


def test_basins_count_every_start() -> None:
    basins = LIMIT.basins(lambda count, seed: TASK.search_states(count, seed), time=40.0, count=16)
    assert basins.probability.values.tolist() == [1.0]


@pytest.mark.parametrize("name", ["runs.nc", "runs.zarr"])
def test_results_can_be_saved_and_loaded(name: str, tmp_path: Path) -> None:
    runs = sl.simulate(TASK, dim=100, runs=3, time=1.0, step=STEP, points=3)
    sl.results.save(runs, tmp_path / name)
    again = sl.results.load(tmp_path / name)
    xr.testing.assert_identical(again, runs)
    assert sl.results.statistics(again) == LIMIT.coordinates
    assert sl.results.parameters(again)["wide"] == 2.0


def test_pictures() -> None:
    runs = sl.simulate(TASK, dim=200, runs=8, time=2.0, step=STEP, init=START, points=21)
    path = LIMIT.solve(START, times=runs.time)
    compared = sl.plot.compare(runs, path)
    assert len(compared.axes) == 4
    assert "TwoVariances" in compared.get_suptitle()
    plane = sl.plot.plane(runs, path, x="m[narrow]", y="m[wide]")
    assert plane.axes[0].get_xlabel() == sl.plot.symbol("m[narrow]")
    portrait = sl.plot.portrait(
        LIMIT, "m[narrow]", "r2[narrow]", fixed_points=LIMIT.fixed_points(count=4), points=11
    )
    assert portrait.axes[0].get_ylim()[0] >= 0.0
