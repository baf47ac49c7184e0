"""Random starts with other laws, against weights that NumPy draws coordinate by coordinate."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import sgdlimits as sl
from sgdlimits import tasks
from tests.families.two_variances import TwoVariances

GRAM = [[1.0, 0.4], [0.4, 1.5]]
DIM, RUNS = 9, 2000
FLAT = tasks.MultiIndexTask(
    loss=lambda s, v, y: s @ v, width=2, anchors=["a", "b"], gram=GRAM, labels=[0.0],
    readout="trained",
)  # fmt: skip
SPHERE = tasks.MultiIndexTask(
    loss=lambda s, v, y: s[0], width=3, anchors=["a", "b"], gram=GRAM, labels=[0.0], spherical=True
)
ALIGNED = np.array([[0.5, 0.1], [0.0, -0.9], [0.3, 0.3]])


def statistics(W: np.ndarray) -> dict[str, np.ndarray]:
    """M and R of weights (run, neuron, coordinate), the anchors in the first two coordinates."""
    A = np.zeros((2, DIM))
    A[:, :2] = np.linalg.cholesky(GRAM)
    return {"M": W @ A.T, "R": W[..., 2:] @ np.swapaxes(W[..., 2:], 1, 2)}


def smallest_p(first: dict[str, np.ndarray], second: dict[str, np.ndarray], *names: str) -> float:
    """Of Kolmogorov-Smirnov tests of every entry."""
    pairs = [(first[n].reshape(RUNS, -1).T, second[n].reshape(RUNS, -1).T) for n in names]
    columns = [both for a, b in pairs for both in zip(a, b, strict=True)]
    return min(float(stats.ks_2samp(a, b).pvalue) for a, b in columns if np.ptp(a) > 1e-12)


def test_scale_multiplies_the_weights() -> None:
    W = np.random.default_rng(0).normal(size=(RUNS, 2, DIM)) * (0.2 / DIM) ** 0.5
    expected = statistics(W)
    drawn = FLAT.random_state(DIM, 1, runs=RUNS, scale=0.2)
    assert smallest_p(drawn, expected, "M", "R") > 1e-3
    assert smallest_p(FLAT.random_state(DIM, 1, runs=RUNS), expected, "M", "R") < 1e-9  # control
    np.testing.assert_array_equal(drawn["v"], FLAT.random_state(DIM, 1, runs=RUNS)["v"])
    tensor = tasks.SpikedTensor()
    usual, small = (tensor.random_state(50, 2, scale=x) for x in (None, 0.25))
    assert (small["m"], small["r2"]) == (usual["m"] / 2, usual["r2"] / 4)


def test_aligned_starts_on_the_sphere() -> None:
    """Rows w = (its part along the anchors) + what is left of norm 1 in a uniform direction."""
    L = np.linalg.cholesky(GRAM)
    rest = np.random.default_rng(0).normal(size=(RUNS, 3, DIM - 2))
    inside = np.broadcast_to(ALIGNED @ np.linalg.inv(L).T, (RUNS, 3, 2))
    left = np.sqrt(1 - np.sum(inside**2, axis=-1, keepdims=True))
    rest = left * rest / np.linalg.norm(rest, axis=-1, keepdims=True)
    expected = statistics(np.concatenate([inside, rest], axis=-1))
    drawn = SPHERE.random_state(DIM, 1, runs=RUNS, overlap=ALIGNED)
    np.testing.assert_array_equal(drawn["M"], np.broadcast_to(ALIGNED, (RUNS, 3, 2)))
    diagonal = np.arange(3)
    np.testing.assert_allclose(
        drawn["R"][:, diagonal, diagonal], expected["R"][:, diagonal, diagonal], rtol=1e-12
    )
    SPHERE.check_state(drawn, runs=RUNS)
    assert smallest_p(drawn, expected, "R") > 1e-3
    usual = SPHERE.random_state(DIM, 1, runs=RUNS)  # control: without what the overlaps take
    assert smallest_p(usual, expected, "R") < 1e-9


def test_aligned_starts_elsewhere_leave_the_rest_alone() -> None:
    usual = FLAT.random_state(DIM, 1, runs=4)
    drawn = FLAT.random_state(DIM, 1, runs=4, overlap=0.3)
    assert np.all(drawn["M"] == 0.3)
    np.testing.assert_array_equal(drawn["R"], usual["R"])
    tensor = tasks.SpikedTensor().random_state(50, 2, runs=3, overlap=0.5, scale=4.0)
    np.testing.assert_array_equal(tensor["m"], np.full(3, 0.5))


def test_a_weight_in_the_span_of_the_anchors_has_nothing_left() -> None:
    task = tasks.PhaseRetrieval()
    state = task.check_state(task.random_state(10, 0, overlap=-1.0))
    assert (state["M"].tolist(), state["R"].tolist()) == ([[-1.0]], [[0.0]])
    plane = tasks.MultiIndexTask(loss=lambda s, v, y: s[0], labels=[0.0], anchors=["a", "b", "c"],
        spherical=True)  # fmt: skip
    third = plane.random_state(10, 0, overlap=3**-0.5)  # squares sum to 1 but for rounding
    assert 0 <= third["R"][0, 0] < 1e-12


def test_no_direction_beside_the_anchors() -> None:
    """As many dimensions as anchors: weights of norm 1 are given by their overlaps."""
    circle: Any = tasks.MultiIndexTask(
        loss=lambda s, v, y: s[0], labels=[0.0], anchors=["a", "b"], spherical=True
    )
    assert circle.smallest_dim == 2
    state = circle.random_state(2, 0, overlap=[[0.6, 0.8]])
    assert (state["M"].tolist(), state["R"].tolist()) == ([[0.6, 0.8]], [[0.0]])
    with pytest.raises(sl.InputError, match="there is nothing beside the anchors"):
        circle.random_state(2, 0, overlap=[[0.6, 0.7]])


def test_readouts_start_where_they_are_told() -> None:
    task = tasks.PhaseRetrieval(width=3, readout="trained")
    usual = task.random_state(30, 4, runs=5)
    ones = task.random_state(30, 4, runs=5, readout=1)
    np.testing.assert_array_equal(ones["v"], np.ones((5, 3)))
    np.testing.assert_array_equal(ones["R"], usual["R"])
    own = task.random_state(30, 4, readout=[1.0, 2.0, -1.0])
    assert own["v"].tolist() == [1.0, 2.0, -1.0]


def test_runs_are_those_of_a_simulation() -> None:
    task = tasks.XorMixture()
    states = task.random_state(60, 9, runs=3)
    runs = sl.simulate(task, dim=60, runs=3, time=0.1, seed=9, points=2)
    for name, values in states.items():
        np.testing.assert_array_equal(values, runs[name].values[:, 0])
        some = task.random_state(60, 9, runs=range(1, 3))
        np.testing.assert_array_equal(some[name], values[1:])
        assert task.random_state(60, 9, runs=1)[name].shape == (1, *task.shapes[name])


@pytest.mark.parametrize(
    ("task", "law", "message"),
    [
        (FLAT, {"runs": 0}, r"runs=0 .*integer >= 1"),
        (FLAT, {"runs": range(0)}, r"runs=range\(0, 0\) .*must have numbers"),
        (FLAT, {"runs": range(-1, 2)}, r"runs=range\(-1, 2\) .*none below 0"),
        (FLAT, {"runs": "many"}, r"runs='many' .*integer >= 1"),
        (FLAT, {"scale": -1.0}, r"scale=-1\.0 .*>= 0"),
        (FLAT, {"scale": [1.0, 2.0]}, r"scale=\[1\.0, 2\.0\] .*a number"),
        (FLAT, {"readout": [1.0]}, r"readout has shape \(1,\).*shape \(2,\)"),
        (FLAT, {"readout": "one"}, r"readout='one' .*real numbers"),
        (FLAT, {"overlap": np.nan}, r"overlap=nan .*finite"),
        (FLAT, {"overlap": [0.1, 0.2]}, r"overlap has shape \(2,\).*shape \(2, 2\)"),
        (SPHERE, {"overlap": 0.9}, r"overlap=0\.9 .*at most 1, and it is \[1\.0"),
        (SPHERE, {"scale": 0.1}, r"scale=0\.1 .*MultiIndexTask has weights of norm 1"),
        (SPHERE, {"readout": 1.0}, r"readout=1\.0 .*fixed readout"),
        (tasks.SpikedTensor(), {"readout": 1.0}, r"readout=1\.0 .*SpikedTensor has no readout"),
        (tasks.SpikedTensor(), {"overlap": [0.1]}, r"overlap has shape \(1,\)"),
        (TwoVariances(), {"overlap": 0.1}, r"overlap=0\.1 .*TwoVariances draws .*one law"),
    ],
)  # fmt: skip
def test_what_a_task_does_not_have_is_refused(
    task: tasks.Task, law: dict[str, Any], message: str
) -> None:
    with pytest.raises(sl.InputError, match=message):
        task.random_state(20, 0, **law)
