"""Expectations where rules are easily wrong: kinks anywhere, large fields, singular covariances.

Against plain Sobol sums over data, and against rewritings of the same task.
"""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats
from scipy.special import ndtri

import sgdlimits as sl
from tests.cases import hinge_network
from tests.dynamics.flat import flatten
from tests.dynamics.sampled import gradients

COUNT, REPLICATES = 2**15, 6


def hinge(fields: Any, readout: Any, label: Any) -> Any:
    return jax.nn.relu(1 - label * jnp.sum(readout * jnp.tanh(fields)))


def logistic(fields: Any, readout: Any, label: Any) -> Any:
    return jax.nn.softplus(-label * jnp.sum(readout * jnp.tanh(fields)))


def pair(loss: Any, **options: Any) -> Any:
    return sl.tasks.MultiIndexTask(
        loss=loss,
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        labels=[1.0, -1.0],
        **{"readout": "trained"} | options,
    )


def by_data(task: Any, state: Any, step: Any = 1.0) -> Any:
    """The drift as a mean over samples of the data, and its standard error over scrambles."""
    with jax.enable_x64(True):
        drifts = [_one_scramble(task, state, step, seed) for seed in range(REPLICATES)]
    flat = np.array([flatten(drift) for drift in drifts])
    return flat.mean(0), flat.std(0, ddof=1) / REPLICATES**0.5


def _one_scramble(task: Any, state: Any, step: Any, seed: Any) -> Any:
    K, r = task.width, len(task.anchors)
    values, vectors = np.linalg.eigh(np.asarray(state["R"]))
    C = vectors * np.sqrt(np.maximum(values, 0))
    A = np.linalg.cholesky(task.gram)
    total: dict[str, Any] = {}
    for c, weight in enumerate(task.weights):
        engine = scipy.stats.qmc.Sobol(r + K + 1, rng=np.random.default_rng([seed, c]))
        normal = ndtri(np.clip(engine.random(COUNT), 1e-16, 1 - 1e-16))
        a = task.means[c] @ task.gram + normal[:, :r] @ A.T / task.precision**0.5
        across = normal[:, r:-1] @ C.T / task.precision**0.5
        s = a @ np.linalg.inv(task.gram) @ np.asarray(state["M"]).T + across
        g, dv = gradients(task, np.full(COUNT, c), a, normal[:, -1], s, state.get("v"))
        part = {
            "M": -(g.T @ a) / COUNT,
            "R": -(g.T @ across + across.T @ g) / COUNT + step / task.precision * g.T @ g / COUNT,
        }
        if task.trained:
            part["v"] = -dv.mean(0)
        part = {name: weight * x for name, x in part.items()}
        total = {name: total.get(name, 0.0) + x for name, x in part.items()}
    decay = {"v": 1, "M": 1, "R": 2}
    return {
        name: total[name] - decay[name] * task.ridge * np.asarray(state[name]) for name in state
    }


def random_state(task: Any, scale: Any, seed: Any) -> Any:
    state = task.random_state(task.least_dim + 20, seed)
    return {
        name: x * (scale**2 if name == "R" else scale if name == "M" else 1.0)
        for name, x in state.items()
    }


@pytest.mark.filterwarnings("ignore:expectations are known")
@pytest.mark.parametrize(
    ("task", "scale"),
    [
        (pair(hinge, precision=3.0, ridge=0.1), 1.0),
        (hinge_network(), 2.0),
        (pair(logistic, precision=1e-3, width=3), 1.0),
        (pair(logistic, precision=0.1, width=3), 1.0),
        (sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, scale="sum"), 5.0),
        (sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, scale="sum"), 20.0),
        (sl.tasks.XorMixture(width=5, precision=10.0), 1.0),
        (sl.tasks.GaussianMixture(classes=5, precision=2.0), 3.0),
    ],
)
def test_drift_is_right_within_its_own_error(task: Any, scale: Any) -> None:
    state = random_state(task, scale, seed=3)
    limit = sl.effective_dynamics(task)
    drift, error = flatten(limit.drift(state)), flatten(limit.drift_error(state))
    expected, standard_error = by_data(task, state)
    gap = np.linalg.norm(drift - expected)
    assert gap < 3 * np.linalg.norm(error) + 4 * np.linalg.norm(standard_error) + 1e-9


def test_flipped_labels_are_summed() -> None:
    flipped = sl.tasks.MultiIndexTask(
        loss=lambda s, v, y: jax.nn.softplus(-y * s[0]),
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        labels=lambda c, a, e: jnp.where(e < ndtri(0.15), -1.0, 1.0) * jnp.where(c == 0, 1.0, -1.0),
        kinks="none",
        ridge=0.1,
    )
    rewritten = sl.tasks.MultiIndexTask(
        loss=lambda s, v, y: jax.nn.softplus(-y * s[0]),
        anchors=["mu"],
        means=[[1.0], [1.0], [-1.0], [-1.0]],
        weights=[0.425, 0.075, 0.075, 0.425],
        labels=[1, -1, 1, -1],
        ridge=0.1,
    )
    state = {"M": [[0.7]], "R": [[0.3]]}
    limits = [sl.effective_dynamics(task, rtol=1e-9) for task in (flipped, rewritten)]
    one, other = (flatten(limit.drift(state)) for limit in limits)
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("smallest", [1e-4, 1e-10, 0.0])
def test_nearly_collinear_neurons(smallest: Any) -> None:
    """Two parallel neurons of a ReLU network are one with both readouts, whatever R's rank."""
    task = sl.tasks.BinaryMixture()
    direction = np.array([0.6, 0.8])
    across = np.array([-0.8, 0.6])
    R = 0.016 * np.outer(direction, direction) + smallest * np.outer(across, across)
    state = {"v": 1.14 * direction, "M": 1.14 * direction[:, None], "R": R}
    one = sl.effective_dynamics(sl.tasks.BinaryMixture(width=1), rtol=1e-9)
    single = one.drift({"v": [1.14], "M": [[1.14]], "R": [[0.016]]})
    both = sl.effective_dynamics(task, rtol=1e-9).drift(state)
    gap = max(
        np.abs(both["v"] - single["v"] * direction).max(),
        np.abs(both["M"][:, 0] - single["M"][0] * direction).max(),
    )
    assert gap < 1e-8 + 2 * smallest**0.5 * 1e-2


def test_derivatives_see_kinks_move() -> None:
    limit = sl.effective_dynamics(pair(hinge, precision=3.0, ridge=0.1))
    state = {"v": [1.3], "M": [[1.2]], "R": [[0.22]]}
    u, h = limit.ravel(state), 1e-5

    def drift(u: Any) -> Any:
        return limit.ravel(limit.drift(limit.unravel(u)))

    differences = [(drift(u + h * e) - drift(u - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(limit.jacobian(state), np.transpose(differences), atol=1e-7)


def hinge_drift(u: Any) -> list[float]:
    """One neuron by integrals over its field s ~ N(M, σ²), of the class with label 1 alone."""
    v, M, R = u
    precision, ridge = 3.0, 0.1
    variance = (M**2 + R) / precision
    most = np.arctanh(1 / v)  # beyond it the loss is zero

    def mean(f: Any) -> float:
        law = scipy.stats.norm(M, variance**0.5)
        low = M - 12 * variance**0.5
        return scipy.integrate.quad(lambda s: f(s) * law.pdf(s), low, most, epsabs=1e-12)[0]

    def push(s: Any) -> Any:
        return v / np.cosh(s) ** 2

    return [
        mean(np.tanh) - ridge * v,
        mean(lambda s: push(s) * (1 + M / precision / variance * (s - M))) - ridge * M,
        2 * mean(lambda s: push(s) * R / precision / variance * (s - M))
        + mean(lambda s: push(s) ** 2) / precision
        - 2 * ridge * R,
    ]


def test_rest_points_of_a_hinge_loss() -> None:
    """SGD at d = 4000 ends at ±(v 1.33, M 1.29), R 0.22."""
    limit = sl.effective_dynamics(pair(hinge, precision=3.0, ridge=0.1))
    points = limit.fixed_points(count=8)
    (stable,) = [point for point in points if point.stability == "stable"]
    assert stable.multiplicity == 2
    rest = stable.orbit[int(stable.state["v"][0] < 0)]
    expected = scipy.optimize.fsolve(hinge_drift, [1.3, 1.3, 0.2], xtol=1e-12)
    np.testing.assert_allclose(limit.ravel(rest), expected, atol=1e-6)
    np.testing.assert_allclose(expected, [1.33, 1.29, 0.22], atol=1e-2)
    assert limit.basins({name: x[None] for name, x in rest.items()}).reached.values == [0]
    assert limit.rescaled(rest).coordinates == limit.coordinates


def test_two_nearly_parallel_neurons_part_like_a_square_root() -> None:
    """Between the kinks of two neurons at angle √ε their gradients differ: E(g·n)² ~ √ε.

    So neurons that are exactly parallel stay so, but the rate at which they would part is infinite;
    they come to rest at ε = (a/0.2)², beyond which the ridge of 0.1 is stronger.
    """
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture(), rtol=1e-8)
    d, n = np.array([0.6, 0.8]), np.array([-0.8, 0.6])

    def growth(smallest: float) -> float:
        R = 0.015879 * np.outer(d, d) + smallest * np.outer(n, n)
        state = {"v": 1.14006 * d, "M": 1.14082 * d[:, None], "R": R}
        return float(n @ limit.drift(state)["R"] @ n)

    opening = [(growth(eps) + 0.2 * eps) / eps**0.5 for eps in (1e-12, 1e-10, 1e-8)]
    np.testing.assert_allclose(opening, opening[0], rtol=0.02)
    assert abs(growth(0.0)) < 1e-11
    assert growth(0.5 * (opening[0] / 0.2) ** 2) > 0 > growth(2 * (opening[0] / 0.2) ** 2)


def test_rest_points_of_the_binary_mixture_with_noise() -> None:
    """Two optimal classifiers, two rings of nearly parallel neurons, and zero."""
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture())
    found = limit.fixed_points(count=16)
    kinds = [(point.stability, point.kernel_dimension, point.multiplicity) for point in found]
    assert kinds == [("stable", 0, 2), ("marginal", 1, 2), ("unstable", 0, 1)]
    radius = np.linalg.norm(found[0].state["v"]) / 2**0.5
    for state in [*found[1].orbit, *found[1].representatives]:
        np.testing.assert_allclose(np.linalg.norm(state["v"]), radius, atol=1e-4)
        assert np.linalg.eigvalsh(state["R"])[0] < 1e-7
    largest = found[1].eigenvalues.real
    assert abs(largest[0]) < 1e-6
    assert largest[1] < -0.05


STEEP: dict[str, Any] = {  # function, its value and its derivative in NumPy, and how steep
    "tanh": (jnp.tanh, np.tanh, lambda x: np.cosh(np.clip(x, -300, 300)) ** -2, 330.0),
    "softplus": (jax.nn.softplus, lambda x: np.logaddexp(0, x), scipy.special.expit, 128.0),
    "ramp": (lambda x: jnp.clip(x, -1, 1), lambda x: np.clip(x, -1, 1), lambda x: abs(x) < 1, 4e3),
}


PLACE = 0.3


@functools.cache
def of_steep_unit(name: str) -> sl.tasks.MultiIndexTask:
    """A unit of slope one with a sharp bend at a field of 0.3."""
    unit, _, _, steep = STEEP[name]

    def loss(fields: Any, readout: Any, label: Any) -> Any:
        return (label - unit(steep * (fields[0] - PLACE)) / steep) ** 2 / 2

    return pair(loss, precision=0.0362, ridge=0.1, readout="fixed")


@pytest.mark.parametrize("name", STEEP)
def test_units_so_steep_that_no_node_meets_their_bend(name: str) -> None:
    """Every grid is then wrong in the same way, by a half or all of it: 0 was stated."""
    _, value, derivative, steep = STEEP[name]
    task, m, R = of_steep_unit(name), -1.67, 1.945

    def increment(s: float, mean: float, label: float) -> float:
        x = steep * (s - PLACE)
        g = (value(x) / steep - label) * derivative(x)
        along = 2 * g * (s - mean) * R / (m**2 + R)
        return float((g**2 / task.precision - along) * scipy.stats.norm.pdf(s, mean, deviation))

    deviation = math.sqrt((m**2 + R) / task.precision)
    near = [PLACE + sign * x / steep for x in (0, 0.5, 1, 2, 5, 10, 20, 40) for sign in (-1, 1)]
    edges = sorted({*near, *(deviation * np.array([-12, -4, -1, 1, 4, 12])).tolist()})
    true = -0.2 * R
    for mean, label in ((m, 1.0), (-m, -1.0)):
        pieces = [
            scipy.integrate.quad(increment, *ends, args=(mean, label), epsabs=1e-14, epsrel=1e-11)
            for ends in itertools.pairwise(edges)
        ]
        true += sum(piece[0] for piece in pieces) / 2
    limit, state = sl.effective_dynamics(task, rtol=1e-8), {"M": [[m]], "R": [[R]]}
    np.testing.assert_allclose(limit.drift(state)["R"][0, 0], true, rtol=1e-7)
    assert limit.drift_error(state)["R"][0, 0] < 1e-5 * abs(true)


def test_a_grid_that_misses_a_bend_says_so() -> None:
    state = {"M": [[-1.67]], "R": [[1.945]]}
    task = of_steep_unit("tanh")
    right, wrong = (sl.effective_dynamics(task, nodes=nodes) for nodes in (None, 80))
    gap = abs(right.drift(state)["R"][0, 0] - wrong.drift(state)["R"][0, 0])
    assert gap > 1e-3
    assert wrong.drift_error(state)["R"][0, 0] > gap / 3


def test_vanishing_weights_hold_no_solution_though_their_jacobian_decays() -> None:
    """A ReLU network that learns from zero: its drift there is of degree one, and not linear."""
    task = sl.tasks.BinaryMixture(width=1, precision=17.32, ridge=0.122)
    limit = sl.effective_dynamics(task, step=1.22)
    (origin,) = limit.fixed_points({"v": [[0.0]], "M": [[[0.0]]], "R": [[[0.0]]]})
    assert origin.stability == "unstable"
    path = limit.solve({"v": [1e-5], "M": [[1e-5]], "R": [[1e-12]]}, time=40.0, points=3)
    rate = np.log(path.v.values[2, 0] / path.v.values[1, 0]) / 20
    np.testing.assert_allclose(origin.eigenvalues[0], rate, rtol=1e-2)
