"""When solutions meet events: against a solver of its own, near misses, and what ends early."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sgdlimits as sl

LIMIT = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
START = {"m": 0.01, "r2": 1.0}


def reference(level: float) -> float:
    """By SciPy, and the drift of this task: m' = 4λm − 4m‖x‖², r2' = 8(1 − r2)‖x‖²."""

    def rates(_: float, u: np.ndarray) -> list[float]:
        m, r2 = u
        norm = m**2 + r2
        return [4 * (2.0 - norm) * m, 8 * norm * (1 - r2)]

    def event(_: float, u: np.ndarray) -> float:
        return float(u[0] - level)

    solution = solve_ivp(
        rates, (0, 10), [0.01, 1.0], events=event, rtol=1e-12, atol=1e-14, method="DOP853"
    )
    return float(solution.t_events[0][0])


@pytest.mark.parametrize("max_time", [1.5, 100.0, 3000.0])
def test_time_is_that_of_another_solver(max_time: float) -> None:
    passage = LIMIT.first_passage(("m", ">", 0.5), START, max_time)
    np.testing.assert_allclose(passage.time, reference(0.5), rtol=1e-8)
    np.testing.assert_allclose(passage.m, 0.5, rtol=1e-9)
    path = LIMIT.solve(START, times=[0.0, float(passage.time)])
    np.testing.assert_allclose(passage.r2, path.r2[-1], rtol=1e-7)
    assert not passage.censored
    assert not passage.diverged
    assert passage.attrs["event"] == "m > 0.5"


@pytest.mark.parametrize("max_time", [3.0, 1000.0])
def test_an_excursion_between_two_points_of_the_grid_is_seen(max_time: float) -> None:
    """A function that is positive for a thousandth of a unit of time, on the way up."""
    width = 0.001 * float(LIMIT.drift({"m": 0.5, "r2": 1.0})["m"])
    passage = LIMIT.first_passage(lambda s: width**2 - (s["m"] - 0.5) ** 2, START, max_time)
    np.testing.assert_allclose(passage.time, reference(0.5 - width), rtol=1e-7)


def test_either_side_and_the_start() -> None:
    starts = {"m": [0.01, 1.2, 0.5], "r2": [1.0, 1.0, 1.0]}
    passage = LIMIT.first_passage(lambda s: s["m"] - 1.1, starts, 30.0)
    assert passage.sizes["run"] == 3
    assert passage.censored.values.tolist() == [True, False, True]
    np.testing.assert_allclose(passage.m.values[1], 1.1)
    np.testing.assert_allclose(passage.time.values[[0, 2]], 30.0)
    above = LIMIT.first_passage(("m", ">", 0.4), starts, 30.0)
    assert above.at_start.values.tolist() == [False, True, True]
    assert above.time.values[1:].tolist() == [0.0, 0.0]
    assert above.m.values[1:].tolist() == [1.2, 0.5]
    assert not above.censored.values.any()


def test_a_rest_point_that_is_approached_is_not_passed() -> None:
    """m tends to 1 from below."""
    assert bool(LIMIT.first_passage(("m", ">", 1.0 + 1e-6), START, 1000.0).censored)
    assert not bool(LIMIT.first_passage(("m", ">", 1.0 - 1e-5), START, 1000.0).censored)


def test_a_solution_that_ends_is_told_apart() -> None:
    """Large steps with square units blow up in finite time, through every level."""
    task = sl.tasks.TeacherStudent(activation="square", teacher_width=1, student_width=1)
    limit = sl.effective_dynamics(task, step=2.0)
    start = {"M": [[0.1]], "R": [[3.0]]}
    never = limit.first_passage(("R[0,0]", "<", 0.1), start, 1.0)
    assert bool(never.diverged)
    assert bool(never.censored)
    passage = limit.first_passage(("R[0,0]", ">", 1e3), start, 1.0)
    assert not bool(passage.censored)
    np.testing.assert_allclose(passage.R, 1e3, rtol=1e-2)
    assert 0 < float(passage.time) <= float(never.time) * (1 + 1e-6)


def test_numerical_expectations() -> None:
    """The time belongs to the solution of the same accuracy."""
    task = sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, student_width=1)
    limit = sl.effective_dynamics(task, step=0.5)
    start = {"M": [[0.1]], "R": [[0.5]]}
    passage = limit.first_passage(("M[0,teacher0]", ">", 0.5), start, 20.0)
    path = limit.solve(start, times=[0.0, float(passage.time)])
    np.testing.assert_allclose(path.M.values[-1, 0, 0], 0.5, atol=1e-4)


def test_wrong_input() -> None:
    for arguments, part in (
        ((("q", ">", 0.5), START), "event[0]='q'"),
        ((("m", ">", 0.5), START, 0.0), "max_time=0.0"),
        ((("m", ">", 0.5), {"m": 1.0}), "init"),
    ):
        with pytest.raises(sl.InputError, match="not allowed") as caught:
            LIMIT.first_passage(*arguments)
        assert part in str(caught.value)
