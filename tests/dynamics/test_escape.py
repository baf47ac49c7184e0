"""What ``limit.escape`` says: against closed forms, and where there is no escape."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

import sgdlimits as sl
from sgdlimits.dynamics.escape.growth import growth

RETRIEVAL = sl.theory.phase_retrieval


def equator(width: int = 1) -> dict[str, np.ndarray]:
    return {"M": np.zeros((width, 1)), "R": np.eye(width)}


@pytest.mark.parametrize(("width", "step"), [(1, 0.05), (1, 0.3), (3, 0.2), (3, 1.4)])
def test_phase_retrieval(width: int, step: float) -> None:
    """AKLS23 (38), also where no overlap grows at the step, or overlaps of neurons grow faster."""
    task = sl.tasks.PhaseRetrieval(width=width, noise=0.5)
    found = sl.effective_dynamics(task, step=step).escape(equator(width))
    assert found.fastest_step == pytest.approx(RETRIEVAL.fastest_step(width, 0.5), rel=1e-6)
    assert found.largest_step == pytest.approx(RETRIEVAL.largest_step(0.5, width), rel=1e-9)
    rate = RETRIEVAL.growth_rate(width, step, 0.5)
    overlaps = [abs(r - rate) < 1e-9 for r in found.rates]
    assert sum(overlaps) == (width if rate > 0 else 0)
    if width == 1 and rate > 0:
        variance = step * RETRIEVAL.single_increment_covariance(0.0, step=step, noise=0.5)[0, 0]
        assert found.noise[0, 0] == pytest.approx(variance, rel=1e-9)


def test_an_event_that_the_flow_does_not_come_to_is_said_to_be_never() -> None:
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.5), step=0.05)
    law = limit.escape(equator(1)).exit_time(1000, ("M[0,teacher]", ">", 0.999))
    assert law.reached == 0
    assert "never" in repr(law)


def test_matrix_pca_whose_equator_moves_with_the_step() -> None:
    """At r² = c the overlap grows at 4(λ − c) with noise 8c²."""
    snr, step = 2.0, 0.8
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(snr=snr), step=step)
    found = limit.escape({"m": 0.0, "r2": step})
    assert found.rate == pytest.approx(4 * (snr - step))
    assert found.noise[0, 0] == pytest.approx(8 * step**2)
    assert found.fastest_step == pytest.approx(snr / 2, rel=1e-6)
    assert found.largest_step == pytest.approx(snr, rel=1e-6)
    assert found.directions == [{"m": pytest.approx(1.0)}] or found.directions == [
        {"m": pytest.approx(-1.0)}
    ]


def test_the_constant_of_the_flow() -> None:
    """For one neuron the flow ṁ = m(a − bm²) is solved by hand: every quantile of the law."""
    step, noise, dim, level = 0.05, 0.5, 3000, 0.3
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=noise), step=step)
    law = limit.escape(equator()).exit_time(dim, (lambda s: s["M"][0, 0] ** 2, ">", level))
    rate = RETRIEVAL.growth_rate(1, step, noise)
    b = 4 * (1 - 6 * step)
    spread = (1 + step * (48 + 4 * noise) / (2 * rate)) / dim
    for part in (0.1, 0.5, 0.9):
        start = spread * chi2.isf(part, 1)
        time = math.log(level / (start * (1 - b * level / rate))) / (2 * rate)
        assert law.quantile(part) == pytest.approx(time, rel=5e-3)
    assert law.survival([law.quantile(0.5)])[0] == pytest.approx(0.5, abs=1e-3)
    assert law.samples == pytest.approx(law.mean * dim / step)
    assert "on average, between" in repr(law)


def test_two_rates() -> None:
    """Two teachers that are correlated are found at two rates, and the law knows both."""
    task = sl.tasks.TeacherStudent(
        activation="square", teacher_width=2, student_width=1, teacher_gram=[[1.0, 0.5], [0.5, 1.0]]
    )
    limit = sl.effective_dynamics(task, step=0.02)

    def state(square: float) -> dict[str, list[list[float]]]:
        return {"M": [[0.0, 0.0]], "R": [[square]]}

    square = brentq(lambda q: float(limit.drift(state(q))["R"][0, 0]), 0.1, 2.0)
    found = limit.escape(state(square))
    assert len(found.rates) == 2
    assert found.rates[0].real > 1.2 * found.rates[1].real > 0
    event = (lambda s: (s["M"] ** 2).sum(), ">", 0.2)
    with pytest.raises(sl.InputError, match="start='random' is not allowed: the mean of random"):
        found.exit_time(1000, event)
    law = found.exit_time(1000, event, start="rest", directions=6)
    runs = sl.first_passage(task, event, 1000, 300, 400.0, step=0.02, init=state(square))
    spread = float(runs.time.std()) / 300**0.5
    assert not runs.censored.any()
    assert abs(float(runs.time.mean()) - law.mean) < 4 * (spread + law.error)


def test_a_defective_or_turning_growth() -> None:
    turning = np.array([[1.0, -2.0, 0.3], [2.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    found = growth(turning, np.eye(3))
    np.testing.assert_allclose(found.readings @ turning, found.matrix @ found.readings, atol=1e-12)
    np.testing.assert_allclose(
        turning @ found.directions, found.directions @ found.matrix, atol=1e-12
    )
    np.testing.assert_allclose(found.readings @ found.directions, np.eye(2), atol=1e-12)
    assert not found.equal
    assert not growth(np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(2)).equal


def test_where_nothing_grows_it_says_so() -> None:
    third = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=2.0))
    found = third.escape({"m": 0.0, "r2": 1.0})
    assert found.rate < 0
    assert found.fastest_step is found.largest_step is found.gain is None
    assert "not left linearly" in repr(found)
    with pytest.raises(sl.InputError, match="information exponent is 3 or more"):
        found.exit_time(1000, ("m", ">", 0.5))
    slow = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.5), step=0.2).escape(equator())
    assert "growth ends at step 0.16" in repr(slow)
    with pytest.raises(sl.InputError, match=r"growth ends at step 0\.16"):
        slow.exit_time(1000, ("risk", "<", 1.0))


def test_wrong_input() -> None:
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(), step=0.05)
    with pytest.raises(sl.InputError, match="only a rest point"):
        limit.escape({"M": [[0.5]], "R": [[0.75]]})
    found = limit.escape(equator())
    with pytest.raises(sl.InputError, match="dim=0 is not allowed"):
        found.exit_time(0, ("risk", "<", 1.0))
    with pytest.raises(sl.InputError, match="it holds next to the rest point already"):
        found.exit_time(1000, ("risk", "<", 5.0))
    with pytest.raises(sl.InputError, match="start='warm' is not allowed"):
        found.exit_time(1000, ("risk", "<", 1.0), start="warm")
    with pytest.raises(sl.InputError, match="directions=1 is not allowed"):
        found.exit_time(1000, ("risk", "<", 1.0), directions=1)
    moving = sl.effective_dynamics(sl.tasks.PhaseRetrieval(), step=[(0.0, 0.1), (1.0, 0.05)])
    with pytest.raises(sl.InputError, match="not allowed for escape"):
        moving.escape(equator())


def test_batches_and_momentum() -> None:
    """A batch of b allows b times the step; momentum is a larger step."""
    task = sl.tasks.PhaseRetrieval(noise=0.5)
    batch = sl.effective_dynamics(task, step=0.05, batch=4).escape(equator())
    assert batch.largest_step == pytest.approx(4 * 0.16)
    momentum = sl.effective_dynamics(task, step=0.05, momentum=0.5).escape(equator())
    assert momentum.largest_step == pytest.approx(0.08)
    assert momentum.rate == pytest.approx(2 * RETRIEVAL.growth_rate(1, 0.1, 0.5))
