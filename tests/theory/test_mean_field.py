"""The mean field: drifts against closed forms, gradient flow, densities, wrong input."""

from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.theory import phase_retrieval
from sgdlimits.theory.mean_field import MeanField, solve_density, start_density

GRAM = [[1.0, 0.4], [0.4, 2.0]]


def particles(count: int, teachers: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"M": rng.normal(size=(count, teachers)) / 2, "q": rng.uniform(0.2, 1.0, count)}


def erf_of_a_user(x: Any) -> Any:
    return jax.scipy.special.erf(x / 2**0.5)


def test_squares_differ_from_the_exact_drift_by_the_own_term() -> None:
    """AKLS23 (26) at Q = mmᵀ + diag(q), whose own terms of order 1/p the mean field leaves out."""
    p, state = 7, particles(7, 1)
    m, q = state["M"][:, 0], state["q"]
    exact = phase_retrieval.drift(
        m, np.outer(m, m) + np.diag(q), step=1e-12, noise=0.3, spherical=False
    )
    found = MeanField(activation="square", teacher_width=1).drift(state)
    np.testing.assert_allclose(found["M"][:, 0], p * exact.overlaps + 4 * q * m / p, rtol=1e-9)
    orthogonal = p * (np.diag(exact.gram) - 2 * m * exact.overlaps)
    np.testing.assert_allclose(found["q"], orthogonal + 8 * q**2 / p + 8 * m**2 * q / p, rtol=1e-9)


@pytest.mark.parametrize("spherical", [False, True])
def test_closed_forms_and_nodes_agree(spherical: bool) -> None:
    state = particles(5) | {"v": np.array([1.0, -0.5, 0.3, 2.0, -1.0])}
    common: dict[str, Any] = {
        "teacher_gram": GRAM,
        "teacher_readout": [1.0, -2.0],
        "teacher_activation": "tanh",
        "readout": "trained",
        "spherical": spherical,
        "nodes": 4000,
    }
    exact = MeanField(activation="erf", **common).drift(state)
    # a user's function has its nodes on half-lines, a known smooth one Gauss–Hermite
    nodes = MeanField(activation=erf_of_a_user, **common).drift(state)
    for name in state:
        np.testing.assert_allclose(nodes[name], exact[name], rtol=1e-5, atol=1e-6)


def test_relu_against_samples() -> None:
    """The drift from samples of all fields: within four standard errors."""
    state, rng, n = particles(3), np.random.default_rng(1), 400_000
    a = rng.normal(size=(n, 2)) @ np.linalg.cholesky(np.array(GRAM)).T
    u = a @ np.linalg.solve(np.array(GRAM), state["M"].T)
    noise = np.sqrt(state["q"]) * rng.normal(size=(2, n, 3))
    # the network's mean given a, from fields that are independent of those of the particle
    others = np.maximum(u + noise[0], 0).mean(axis=1)
    psi = np.maximum(a, 0).mean(axis=1) - others
    flow = MeanField(activation="relu", teacher_gram=GRAM, nodes=2000)
    found = flow.drift(state)
    above = (u + noise[1]) > 0
    for j in range(3):
        M = (psi * above[:, j])[:, None] * a
        q = 2 * psi * above[:, j] * noise[1, :, j]
        assert np.all(np.abs(M.mean(0) - found["M"][j]) < 4 * M.std(0) / np.sqrt(n))
        assert abs(q.mean() - found["q"][j]) < 4 * q.std() / np.sqrt(n)


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_the_risk_never_increases(activation: str) -> None:
    flow = MeanField(activation=activation, readout="trained", readout_step=0.5, nodes=900)
    path = flow.solve(particles(20) | {"v": np.linspace(-1, 1, 20)}, time=4.0, points=9)
    assert np.all(np.diff(path.excess_risk) < 0)
    assert path.M.dims == ("time", "particle", "anchor")
    assert float(path.excess_risk[-1]) == pytest.approx(
        flow.excess_risk(sl.results.state(path.drop_vars("excess_risk"))), rel=1e-9
    )


def test_the_sphere_is_kept() -> None:
    flow = MeanField(activation="square", teacher_gram=GRAM, spherical=True)
    start = flow.random_particles(6, dim=9, seed=2)
    path = flow.solve(start, time=3.0, points=4)
    norms = np.sum(path.M * (path.M.values @ np.linalg.inv(GRAM)), axis=-1) + path.q
    np.testing.assert_allclose(norms, 1.0, rtol=1e-6)
    assert float(abs(path.M[-1] - path.M[0]).max()) > 0.1


def test_random_particles_have_the_law_of_random_weights() -> None:
    flow, n = MeanField(teacher_gram=GRAM), 20_000
    found = flow.random_particles(n, dim=10, seed=0)
    second = np.einsum("pi,pj->pij", found["M"], found["M"])
    gap = np.abs(second.mean(0) - np.array(GRAM) / 10)
    assert np.all(gap < 4 * second.std(0) / np.sqrt(n))
    assert abs(found["q"].mean() - 0.8) < 4 * found["q"].std() / np.sqrt(n)


def test_density_keeps_mass_and_converges_to_second_order() -> None:
    flow = MeanField(teacher_width=1, nodes=24)
    means = []
    for cells in (20, 40, 80):
        start = start_density(20, overlap_cells=cells, norm_cells=cells)
        path = solve_density(flow, start, time=2.0, points=3)
        np.testing.assert_allclose(path.mass.sum(("m", "q")), 1.0, rtol=1e-13)
        assert float(path.mass.min()) >= 0
        means.append(float((path.mass * path.m).sum(("m", "q"))[-1]))
    first, second = (means[k + 1] - means[k] for k in range(2))
    assert 3 < first / second < 6  # 4 for second order, 2 for first
    count = 4000
    ends = flow.solve(flow.random_particles(count, dim=20, seed=0), time=2.0, points=2).M[-1, :, 0]
    assert abs(means[-1] - float(ends.mean())) < 4 * float(ends.std()) / count**0.5
    assert abs(means[-1]) > 20 * abs(second)  # it has moved


def test_density_warns_at_the_border() -> None:
    flow = MeanField(teacher_width=1, nodes=24)
    with pytest.warns(RuntimeWarning, match="outermost cells"):
        solve_density(flow, start_density(10, farthest=0.5, overlap_cells=20), time=1.0, points=2)


def test_a_grid_that_misses_the_law_is_told() -> None:
    for grid in ({"farthest": 1e-9}, {"signal": 1e9}, {"largest": 0.01}):
        with pytest.raises(sl.InputError, match="must hold 80% of the law or more, and hold"):
            start_density(10, **grid)


def test_no_time_at_all_is_told() -> None:
    with pytest.raises(sl.InputError, match="time=0 is not allowed"):
        MeanField().solve(particles(2), time=0)


def test_poor_nodes_are_told() -> None:
    flow = MeanField(activation="relu", teacher_gram=GRAM, nodes=16)
    with pytest.warns(RuntimeWarning, match="raise nodes"):
        flow.solve(particles(4), time=0.1, points=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"activation": "sinus"}, "activation='sinus' is not allowed: activation must be one of"),
        ({"teacher_width": 0}, "teacher_width=0 is not allowed"),
        ({"teacher_gram": [[1.0]]}, "teacher_gram has shape"),
        ({"readout": "free"}, "readout='free' is not allowed"),
        ({"readout_step": -1.0}, "readout_step=-1.0 is not allowed"),
        ({"nodes": 2}, "nodes=2 is not allowed"),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(sl.InputError, match=words):
        MeanField(**arguments)


def test_wrong_states() -> None:
    flow, state = MeanField(), particles(3)
    states: list[tuple[dict[str, Any], str]] = [
        ({"M": state["M"]}, "state=.* is not allowed: state must have M, q"),
        (state | {"R": np.eye(3)}, "state=.* is not allowed"),
        (state | {"q": [-1.0, 0.0, 0.0]}, "q must be squared norms"),
        (state | {"M": np.ones((3, 1))}, "M has shape"),
    ]
    for wrong, words in states:
        with pytest.raises(sl.InputError, match=words):
            flow.drift(wrong)
    with pytest.raises(sl.InputError, match="times must increase"):
        flow.solve(state, times=[1.0, 0.5])
    start = start_density(10, overlap_cells=8, norm_cells=8)
    with pytest.raises(sl.InputError, match="teacher_width=2 is not allowed for a density"):
        solve_density(flow, start)
    one = MeanField(teacher_width=1)
    for masses, words in [
        (start * 2, "sum to 1"),
        (start.assign_coords(q=start.q + 1), "equal cells"),
        (xr.DataArray([1.0], dims="m"), "over m and q"),
    ]:
        with pytest.raises(sl.InputError, match=words):
            solve_density(one, masses)
