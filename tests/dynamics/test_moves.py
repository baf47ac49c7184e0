"""Moves of SGD in the limit: what they come to, and what does not exist."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sgdlimits as sl
from sgdlimits._types import State

PCA = sl.tasks.SpikedTensor(order=2, snr=1.5)
POINT = {"m": 0.3, "r2": 0.7}
RETRIEVAL = sl.tasks.PhaseRetrieval(noise=0.3, spherical=False)
TRAINED = sl.tasks.PhaseRetrieval(noise=0.1, spherical=False, readout="trained")
PLAIN: dict[str, Any] = {"batch": 1, "momentum": 0.0, "readout_step": 1.0, "normalised": False}


def same(first: State, second: State, factor: float = 1.0) -> None:
    for name, value in first.items():
        np.testing.assert_allclose(value, factor * second[name], rtol=1e-12)


@pytest.mark.parametrize("step", [0.2, [(0.0, 0.2)]])
def test_defaults_change_no_bit(step: Any) -> None:
    state = TRAINED.random_state(20, seed=1)
    limit, plain = (
        sl.effective_dynamics(TRAINED, step, **PLAIN),
        sl.effective_dynamics(TRAINED, 0.2),
    )
    assert repr(limit) == repr(plain)
    assert str(jax.tree.structure(limit.model)) == str(jax.tree.structure(plain.model))
    for name, value in limit.drift(state).items():
        np.testing.assert_array_equal(value, plain.drift(state)[name])
    np.testing.assert_array_equal(limit.diffusion(state), plain.diffusion(state))


def test_batches_and_momentum_are_another_step_and_another_time() -> None:
    state = TRAINED.random_state(20, seed=1)
    limit = sl.effective_dynamics(TRAINED, 0.2, batch=4, momentum=0.75, readout_step=0.5)
    plain = sl.effective_dynamics(TRAINED, 0.2)  # 0.2 / (1 − 0.75) / 4
    speeds = 4 * np.where(TRAINED.layout.of_readout, 0.5, 1.0)
    for one, other in [
        (limit.drift(state), plain.drift(state)),
        (limit.corrector(state), plain.corrector(state)),
        (limit.population_drift(state), plain.population_drift(state)),
    ]:
        np.testing.assert_allclose(limit.ravel(one), speeds * plain.ravel(other), rtol=1e-12)
    jacobian = speeds[:, None] * plain.jacobian(state)
    np.testing.assert_allclose(limit.jacobian(state), jacobian, rtol=1e-9, atol=1e-12)
    diffusion = np.outer(speeds, speeds) / 4 * plain.diffusion(state)
    np.testing.assert_allclose(limit.diffusion(state), diffusion, rtol=1e-12)


def test_momentum_solves_as_a_larger_step_in_shorter_time() -> None:
    quick = sl.effective_dynamics(PCA, 0.2, momentum=0.5)
    plain = sl.effective_dynamics(PCA, 0.4)
    one, other = (limit.solve(POINT, time, points=5) for limit, time in ((quick, 1), (plain, 2)))
    np.testing.assert_allclose(one.m, other.m, rtol=1e-7)
    spread, wider = quick.fluctuations(one), plain.fluctuations(other)
    np.testing.assert_allclose(spread.r2[1:], wider.r2[1:], rtol=1e-3)
    paths = quick.sample_paths(POINT, dim=4000, time=1.0, runs=1024, points=3)
    deviations = 4000**0.5 * paths.r2.values[:, -1].std()
    assert abs(deviations / float(wider.r2[-1]) - 1) < 4 / 2048**0.5
    folds = [
        diagram.snr.values[diagram.special.values == "fold"]
        for diagram in (
            sl.effective_dynamics(
                sl.tasks.SpikedTensor(order=3), 0.2, momentum=0.75, batch=2
            ).bifurcations("snr", 1.0, 5.0, init={"m": [1.0], "r2": [1.0]}),
            sl.effective_dynamics(sl.tasks.SpikedTensor(order=3), 0.4).bifurcations(
                "snr", 1.0, 5.0, init={"m": [1.0], "r2": [1.0]}
            ),
        )
    ]
    np.testing.assert_allclose(folds[0], folds[1], rtol=1e-9)


def test_a_readout_without_a_step_stays() -> None:
    state = TRAINED.random_state(20, seed=1)
    limit = sl.effective_dynamics(TRAINED, 0.1, readout_step=0.0)
    path = limit.solve(state, time=3.0, points=4)
    np.testing.assert_array_equal(path.v, np.broadcast_to(state["v"], path.v.shape))
    fixed = sl.tasks.PhaseRetrieval(noise=0.1, spherical=False)
    assert abs(float(path.M[-1, 0, 0]) - state["M"][0, 0]) > 0.1
    assert np.all(limit.diffusion(state)[0] == 0)
    with pytest.raises(sl.InputError, match=r"readout_step=0\.5 is not allowed: PhaseRetrieval"):
        sl.effective_dynamics(fixed, readout_step=0.5)


# --- schedules ----------------------------------------------------------------------------------


def decaying(time: Any) -> Any:
    return 0.4 / (1 + time)


PAIRS = [(0.0, 0.4), (0.37, 0.1), (1.5, 0.25)]
SMALL = [(0.0, 0.1), (0.37, 0.02), (1.5, 0.05)]
pairs_or_function = pytest.mark.parametrize("step", [decaying, PAIRS], ids=["function", "pairs"])


def moments(step: Callable[[float], float], end: float) -> tuple[np.ndarray, np.ndarray]:
    """Solution and covariance for matrix PCA: its formulas, by SciPy, from change to change."""
    snr = PCA.snr

    def rates(time: float, both: np.ndarray) -> np.ndarray:
        m, r2, C, c = *both[:2], both[2:].reshape(2, 2), step(time)
        total = m**2 + r2
        drift = [4 * m * (snr - total), 8 * total * (c - r2)]
        J = [[4 * (snr - total) - 8 * m**2, -4 * m], [16 * m * (c - r2), 8 * (c - r2 - total)]]
        way = np.array([m, 2 * r2])
        noise = c * (8 * total * np.diag([1.0, 4 * r2]) + 8 * np.outer(way, way))
        return np.concatenate([drift, (J @ C + C @ np.transpose(J) + noise).ravel()])

    both = np.array([POINT["m"], POINT["r2"], 0, 0, 0, 0])
    for begin, stop in ((0.0, 0.37), (0.37, 1.5), (1.5, end)):
        inside = np.array([begin, np.nextafter(stop, begin)])
        both = solve_ivp(rates, inside, both, rtol=1e-9, atol=1e-11).y[:, -1]
    return both[:2], both[2:].reshape(2, 2)


@pytest.mark.filterwarnings("error")
@pairs_or_function
def test_a_schedule_is_followed(step: Any) -> None:
    limit = sl.effective_dynamics(PCA, step)
    path = limit.solve(POINT, time=2.0, points=6)
    ends, covariance = moments(lambda time: float(limit.moves.step(time)), 2.0)
    np.testing.assert_allclose([path.m[-1], path.r2[-1]], ends, rtol=1e-6)
    spread = limit.fluctuations(path)
    np.testing.assert_allclose(spread.covariance[-1], covariance, rtol=5e-3)
    paths = limit.sample_paths(POINT, dim=4000, time=2.0, runs=1024, points=6)
    for name in ("m", "r2"):
        values = paths[name].values[:, -1]
        error = values.std() / 1024**0.5
        assert abs(values.mean() - float(path[name][-1])) < 4 * error + 5 / 4000
        predicted = float(spread[name][-1]) / 4000**0.5
        assert abs(values.std() / predicted - 1) < 4 / 2048**0.5
    constant = sl.effective_dynamics(PCA, 0.4).solve(POINT, time=2.0, points=6)
    assert abs(float(constant.r2[-1]) / float(path.r2[-1]) - 1) > 0.05


def test_pieces_are_solutions_one_after_the_other() -> None:
    """To the last digits: no step of the solver goes across a change."""
    path = sl.effective_dynamics(RETRIEVAL, SMALL).solve(
        {"M": [[0.5]], "R": [[0.75]]}, times=[0, 1, 2]
    )
    state: State = {"M": np.array([[0.5]]), "R": np.array([[0.75]])}
    for step, times in ((0.1, [0, 0.37]), (0.02, [0.37, 1, 1.5]), (0.05, [1.5, 2])):
        limit = sl.effective_dynamics(RETRIEVAL, step)
        now = limit.solve(state, times=np.array(times) - times[0])
        state = {name: now[name].values[-1] for name in state}
    np.testing.assert_allclose(path.R.values[-1], state["R"], rtol=1e-12)


def test_decay_takes_the_floor_away() -> None:
    """Noisy phase retrieval stays at 1 − m² of order one at a constant step, else of order c(t)."""
    task = sl.tasks.PhaseRetrieval(noise=0.5)
    start = {"M": [[0.6]], "R": [[0.64]]}
    times = np.array([0.0, 8.0, 16.0, 32.0])
    constant, decaying = (
        sl.effective_dynamics(task, step).solve(start, times=times).R.values[:, 0, 0]
        for step in (0.1, lambda t: 0.1 / (1 + t))
    )
    assert constant[-1] == pytest.approx(constant[1], rel=1e-3)
    assert constant[-1] > 0.01
    slope = np.polyfit(np.log(times[1:] + 1), np.log(decaying[1:]), 1)[0]
    assert abs(slope + 1) < 0.05
    warm = sl.effective_dynamics(task, [(0.0, 0.01), (2.0, 0.1)]).solve(start, times=times)
    assert float(warm.R[-1, 0, 0]) == pytest.approx(constant[-1], rel=1e-3)


def test_slow_momentum_and_schedules_go_together() -> None:
    limit = sl.effective_dynamics(RETRIEVAL, SMALL, momentum=("slow", 2.0), batch=2)
    path = limit.solve({"M": [[0.5]], "R": [[0.75]]}, time=2.0, points=3)
    assert list(path.velocity_R.dims) == ["time", "neuron", "neuron_"]
    assert float(path.velocity_R[0, 0, 0]) == 0.0
    assert float(path.velocity_R[-1, 0, 0]) > 0.01


def test_strong_friction_is_no_momentum() -> None:
    """U follows the gradient at once: dW/dt = −G/κ, and the noise of U feeds W in time 1/κ."""
    task, kappa, state = RETRIEVAL, 40.0, {"M": [[0.5]], "R": [[0.75]]}
    slow = sl.effective_dynamics(task, 0.1 * kappa, momentum=("slow", kappa))
    plain = sl.effective_dynamics(task, 0.1)
    one = slow.solve(state, time=0.4 * kappa, points=3)
    other = plain.solve(state, time=0.4, points=3)
    np.testing.assert_allclose(one.M, other.M, rtol=0.05)
    np.testing.assert_allclose(one.R, other.R, rtol=0.1)


def test_results_note_how_sgd_moved() -> None:
    limit = sl.effective_dynamics(PCA, PAIRS, batch=3, momentum=0.5, normalised=True)
    words = "batch=3, momentum=0.5, normalised=True"
    steps = [list(pair) for pair in PAIRS]
    assert repr(limit) == f"EffectiveDynamics({PCA!r}, step={steps}, {words})"
    assert limit.provenance["batch"] == 3
    assert limit.provenance["step"] == steps
    slow = sl.effective_dynamics(RETRIEVAL, momentum=("slow", 2.0))
    assert slow.provenance["task"] == "PhaseRetrieval"
    assert slow.provenance["momentum"] == ["slow", 2.0]


# --- gradients of vanishing length --------------------------------------------------------------


def test_a_gradient_that_vanishes_has_no_direction() -> None:
    """A noiseless student at its teacher; rows far apart, where probabilities are all but one."""
    task = sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, student_width=1)
    limit = sl.effective_dynamics(task, 0.3, normalised=True, nodes=2**8)
    drift = limit.drift({"M": [[1.0]], "R": [[0.0]]})
    assert all(np.all(np.isfinite(x)) for x in drift.values())
    softmax = sl.tasks.GaussianMixture(classes=2, precision=4.0)
    limit = sl.effective_dynamics(softmax, 0.3, normalised=True, nodes=2**8)
    far = limit.drift({"M": 100 * np.diag([1.0, 1.0]), "R": 1e-3 * np.eye(2)})
    assert np.all(np.isfinite(far["M"]))
    # on each sample the direction is (−1, 1)/√2 or the other way
    np.testing.assert_allclose(np.diag(far["R"]), 0.3 / 2 - 0.02 * 1e-3, rtol=1e-2)


def test_a_readout_of_zeros_has_no_normalised_limit() -> None:
    """Then g = 0 on every sample, and the readout moves by √dim in a unit of time."""
    task = sl.tasks.BinaryMixture(width=1, precision=3.0)
    limit = sl.effective_dynamics(task, 0.3, normalised=True, nodes=2**10)
    assert not np.isfinite(limit.drift({"v": [0.0], "M": [[0.5]], "R": [[0.3]]})["v"]).any()
    assert np.isfinite(limit.drift({"v": [0.1], "M": [[0.5]], "R": [[0.3]]})["v"]).all()


# --- wrong input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "words", "message"),
    [
        (PCA, {"batch": 0}, "batch=0 is not allowed"),
        (PCA, {"momentum": 1.0}, r"momentum=1.0 is not allowed: momentum must lie in \[0, 1\)"),
        (PCA, {"momentum": ("slow", 1.0)}, "no limit with slow momentum is known for SpikedTensor"),
        (PCA, {"readout_step": -1.0}, "readout_step=-1.0 is not allowed"),
        (PCA, {"step": [(0.0, 1.0), (1.0, -1.0)]}, "step=-1 at time 1 is not allowed"),
        (PCA, {"step": [(1.0, 1.0)]}, "must start at 0"),
        (RETRIEVAL, {"normalised": True, "batch": 2}, "batch=2 is not allowed with normalised"),
        (
            sl.tasks.XorMixture(precision=math.inf),
            {"normalised": True},
            "precision=inf is not allowed with normalised=True",
        ),
        (
            sl.tasks.XorMixture(precision=math.inf),
            {"momentum": ("slow", 1.0)},
            "precision=inf is not allowed with slow momentum",
        ),
    ],
)
def test_wrong_words(task: sl.tasks.Task, words: dict[str, Any], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        sl.effective_dynamics(task, **words)


def test_a_schedule_must_stay_positive() -> None:
    limit = sl.effective_dynamics(PCA, lambda t: 1.0 - t)
    with pytest.raises(sl.InputError, match=r"step=.* at time 1.* is not allowed"):
        limit.solve(POINT, time=3.0)
    with pytest.raises(sl.InputError, match=r"step=.* at time 1.* is not allowed"):
        limit.sample_paths(POINT, dim=100, time=3.0, runs=2, points=4)
    with pytest.raises(sl.InputError, match="step=nan at time 0 is not allowed"):
        sl.effective_dynamics(PCA, lambda t: jnp.nan * t)
    wrong: Any
    for wrong in (lambda t: "a", lambda t: [t, t], lambda t: 1.0 if t < 1 else 0.5):
        with pytest.raises(sl.InputError, match="step=<lambda> is not allowed: a function must"):
            sl.effective_dynamics(PCA, wrong)
    with pytest.raises(sl.InputError, match="time=-1 is not allowed"):
        limit.drift(POINT, -1)


def test_nothing_rests_where_the_step_moves() -> None:
    limit = sl.effective_dynamics(PCA, decaying)
    for asked in (
        lambda: limit.fixed_points(),
        lambda: limit.basins({"m": [0.1], "r2": [1.0]}),
        lambda: limit.bifurcations("snr", 1.0, 2.0),
        lambda: limit.rescaled(POINT),
        lambda: limit.drift_in_plane("m", "r2", x_values=[0.1, 0.2], y_values=[0.5, 1.0]),
    ):
        with pytest.raises(sl.InputError, match="step='decaying' is not allowed for"):
            asked()


def test_velocities_belong_to_weights() -> None:
    limit = sl.effective_dynamics(RETRIEVAL, 0.1, momentum=("slow", 1.0))
    weights = {"M": [[1.0]], "R": [[0.0]]}
    assert set(limit.drift(weights)) == {"M", "R", "velocity_M", "velocity_R", "cross_R"}
    moving = weights | {"velocity_M": [[0.0]], "velocity_R": [[1.0]], "cross_R": [[1.0]]}
    with pytest.raises(sl.InputError, match=r"state\['cross_R'\]=.* must be positive semidefinite"):
        limit.drift(moving)
    with pytest.raises(sl.InputError, match="exactly the names"):
        limit.drift(weights | {"velocity_M": [[0.0]]})
