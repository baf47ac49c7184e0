"""What a table says is what the model says, by few programs."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.dynamics.model import Table, multi_index, quadrature
from tests.compilations import compilations

CASES: list[tuple[Any, dict[str, Any]]] = [
    (sl.tasks.SpikedTensor(order=3, snr=2.0), {}),
    (sl.tasks.PhaseRetrieval(width=2), {}),
    (sl.tasks.BinaryMixture(), {"nodes": 2**8}),
    (sl.tasks.BinaryMixture(precision=np.inf), {}),
]


@pytest.mark.parametrize(("task", "options"), CASES)
def test_rows_are_the_model_one_by_one(task: Any, options: Any) -> None:
    limit = sl.effective_dynamics(task, **options)
    states = task.random_state(task.least_dim + 20, 0, runs=10)
    with jax.enable_x64(True):
        vectors = task.layout.ravel(states)
        table = Table(limit.model)
        drift, jacobian = map(eqx.filter_jit, (limit.model.drift, limit.model.jacobian))
        expected = np.stack([drift(vector) for vector in vectors])
        np.testing.assert_allclose(table.drift(vectors), expected, rtol=1e-9, atol=1e-12)
        slopes = [jacobian(vector) for vector in vectors[:2]]
        np.testing.assert_allclose(table.jacobian(vectors[:2]), slopes, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(table.retract(vectors), vectors, atol=1e-12)
        assert np.all(table.margin(vectors) > 0)
        assert np.all(np.abs(table.constraint(vectors)) < 1e-12)


def test_one_program_serves_drifts_errors_and_solutions() -> None:
    """At a state where one rule is accurate enough, nothing is compiled after the first drift."""
    task = sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, student_width=1)
    limit = sl.effective_dynamics(task, nodes=2**8)
    state = task.random_state(100, 0)
    with compilations() as first:
        limit.drift(state)
    with compilations() as later:
        limit.solve(state, time=1.0, points=11)
        limit.solve(state, time=2.0, points=30)
        limit.solve(task.random_state(100, 0, runs=5), time=1.0)
        limit.corrector(state)
    assert len(first) > 0
    assert len(later) == 0


def test_halves_of_a_sum_are_the_whole_and_threads_change_no_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = sl.tasks.BinaryMixture(ridge=0.3)
    model = sl.effective_dynamics(task, nodes=2**8).model
    state = task.random_state(100, 0)
    with jax.enable_x64(True):
        vectors = np.asarray(task.layout.ravel(state))[None]
        whole = Table(model).parts(vectors, every_rule=True)
        assert model.rule_halves() == ()
        monkeypatch.setattr(quadrature, "SPLIT", 0)
        tables = []
        for threads in ("1", "2"):
            monkeypatch.setenv("SGDLIMITS_THREADS", threads)
            table = Table(model)
            table.parts(vectors)  # the first call is never in threads
            tables.append(table.parts(vectors, every_rule=True))
        np.testing.assert_array_equal(tables[0], tables[1])
        np.testing.assert_allclose(tables[0], whole, rtol=1e-12, atol=1e-14)
        monkeypatch.setattr(multi_index, "halves", lambda *of: 2 * quadrature.halves(*of)[:1])
        twice_the_first = Table(model).parts(vectors, every_rule=True)
        assert np.abs(twice_the_first - whole).max() > 1e-3
