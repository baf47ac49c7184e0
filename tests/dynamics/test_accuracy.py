"""Stated errors where rules are wrong alike, or of little use; against integrals by SciPy."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtri
from scipy.stats import norm, qmc

import sgdlimits as sl
from sgdlimits.dynamics.model.multi_index import MultiIndexModel
from sgdlimits.dynamics.rest.stability import spectrum_at


def suited(limit: sl.EffectiveDynamics, state: Any) -> MultiIndexModel:
    """The model that is used at a state."""
    with jax.enable_x64(True):
        model, _ = limit.suited(jnp.asarray(limit.ravel(state))[None])
    assert isinstance(model, MultiIndexModel)
    return model


def test_one_steep_relu_unit() -> None:
    """σ(v·relu(s)) bends at the kink of s, to one side only: Gauss rules of all orders miss it."""
    for v in (-2.0, 30.0):
        compare_steep_unit(v)


def compare_steep_unit(v: float) -> None:
    """With integrals by SciPy."""
    lam, m, R, ridge = 1e-3, 0.5, 0.5, 0.1
    sd = ((m * m + R) / lam) ** 0.5

    def mean(integrand: Any) -> float:
        """Over both classes and s > 0; below it nothing moves."""
        pieces = [(0.0, 0.2), (0.2, 2.0), (2.0, 20.0), (20.0, 300.0)]
        parts = (
            quad(lambda s, mu=mu, y=y: integrand(s, mu, y) * norm.pdf(s, mu, sd), *piece, limit=500)
            for mu, y in ((m, 1), (-m, 0))
            for piece in pieces
        )
        return 0.5 * sum(part[0] for part in parts)

    square = v * v * mean(lambda s, mu, y: (expit(v * s) - y) ** 2)
    along = v * mean(lambda s, mu, y: (expit(v * s) - y) * (s - mu)) * R / (m * m + R)
    true = -2 * along - 2 * ridge * R + square / lam

    task = sl.tasks.BinaryMixture(width=1, precision=lam, ridge=ridge)
    limit = sl.effective_dynamics(task)
    state = {"v": [v], "M": [[m]], "R": [[R]]}
    found = limit.drift(state)["R"][0, 0]
    assert abs(found - true) < 3 * limit.drift_error(state)["R"][0, 0]
    assert abs(found - true) < 1e-5 * true


def test_neurons_without_weights_stay_so() -> None:
    """As those of SGD do, whose ReLU has no slope at zero; beside them the drift is another one."""
    task = sl.tasks.BinaryMixture(width=2, precision=10.0, ridge=0.0)
    state = {"v": [0.5, -0.5], "M": [[0.3], [0.0]], "R": [[1.0, 0.0], [0.0, 0.0]]}
    limit = sl.effective_dynamics(task, rtol=1e-4)
    assert limit.drift(state)["M"][1] == 0
    assert limit.drift(state)["R"][1, 1] == 0
    path = limit.solve(state, time=2.0, points=3)
    runs = sl.simulate(task, init=state, dim=4000, time=2.0, points=3, runs=4, seed=0)
    assert np.all(path.M.values[:, 1] == 0)
    assert np.all(runs.M.values[..., 1, :] == 0)
    assert np.max(np.abs(path.R.values[:, 1])) < 1e-15
    gap = runs.M[:, -1, 0].mean() - path.M[-1, 0]
    assert abs(float(gap.item())) < 0.02
    # and a little weight is enough to move
    beside = state | {"R": [[1.0, 0.0], [0.0, 1e-12]]}
    assert limit.drift(beside)["M"][1, 0] < -0.1


def clipped(s: Any, v: Any, y: Any) -> Any:
    return jax.nn.softplus(-y * jnp.sum(v * jnp.clip(s, -1, 1)))


CLIPPED: dict[str, Any] = {
    "M": [[-0.1153558130012503], [0.31471682026046327]],
    "R": [[0.7967168768473373, -0.09829764291259252], [-0.09829764291259252, 0.09622872197403018]],
    "v": [0.5405251317548021, 1.9350880340988528],
}
CLIPPED_TASK: dict[str, Any] = {
    "loss": clipped,
    "width": 2,
    "anchors": ["a"],
    "means": [[1.0], [-1.0]],
    "labels": [1.0, -1.0],
    "precision": 5.0,
    "ridge": 0.1,
    "readout": "trained",
}


def clipped_drift(vector: np.ndarray, seed: int) -> np.ndarray:
    """In plain NumPy, on Sobol nodes."""
    v, M, R = vector[:2], vector[2:4], np.array([[vector[4], vector[5]], [vector[5], vector[6]]])
    root = np.linalg.cholesky(R / 5)
    dv, dM, dR = -0.1 * v, -0.1 * M, -0.2 * R
    for c, mean in enumerate((1.0, -1.0)):
        z = ndtri(qmc.Sobol(3, seed=2 * seed + c).random(2**17)).T
        a, across = mean + z[0] / 5**0.5, root @ z[1:]
        s = M[:, None] * a + across
        e = -mean * expit(-mean * (v @ np.clip(s, -1, 1))) / (2 * len(a))
        g = e * v[:, None] * (np.abs(s) < 1)
        dv = dv - np.clip(s, -1, 1) @ e
        dM = dM - g @ a
        dR = dR - g @ across.T - across @ g.T + g @ g.T * (2 * len(a)) / 5
    return np.concatenate([dv, dM, dR[np.triu_indices(2)]])


def test_jacobian_within_its_stated_error() -> None:
    """Kinks of a clipped unit are not at zero: its derivatives are far less accurate."""
    limit = sl.effective_dynamics(sl.tasks.MultiIndexTask(**CLIPPED_TASK))
    found, stated = limit.jacobian(CLIPPED), limit.jacobian_error(CLIPPED)
    vector, h = limit.ravel(CLIPPED), 0.02
    columns = []
    for unit in np.eye(len(vector)):
        both = [[clipped_drift(vector + sign * h * unit, k) for k in range(4)] for sign in (1, -1)]
        columns.append((np.array(both[0]) - np.array(both[1])) / (2 * h))
    plain = np.stack(columns, axis=-1)
    chance = plain.std(axis=0, ddof=1) / 2
    assert np.all(np.abs(found - plain.mean(axis=0)) < 5 * chance + 3 * stated + h**2)
    assert 1e-5 < stated.max() < 0.01


def test_more_nodes_are_taken_where_they_help() -> None:
    limit = sl.effective_dynamics(sl.tasks.MultiIndexTask(**CLIPPED_TASK))
    error = max(np.max(part) for part in limit.drift_error(CLIPPED).values())
    assert error < 1e-5
    few = sl.effective_dynamics(sl.tasks.MultiIndexTask(**CLIPPED_TASK), nodes=512)
    assert max(np.max(part) for part in few.drift_error(CLIPPED).values()) > 1e-4


def test_infinite_rates_are_called_infinite() -> None:
    """Parallel neurons; not those that are parallel beside the anchors only, or smooth."""
    parallel = {"v": [0.8, 0.8], "M": [[0.7], [0.7]], "R": [[0.1, 0.1], [0.1, 0.1]]}
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture())
    with pytest.warns(RuntimeWarning, match="neurons 0 and 1 are parallel .* rate .* is infinite"):
        limit.jacobian(parallel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limit.jacobian(parallel | {"M": [[0.7], [-0.7]]})
    smooth = sl.effective_dynamics(sl.tasks.GaussianMixture(classes=2))
    same = smooth.ravel({"M": [[0.7, 0.1]] * 2, "R": [[0.1, 0.1], [0.1, 0.1]]})
    with jax.enable_x64(True):
        assert not smooth.model.infinite_rates(jnp.asarray(same))


def test_rest_points_of_parallel_neurons_have_an_infinite_rate() -> None:
    """On the ring of collinear neurons, to which stable rates belong but for their parting."""
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture(), rtol=1e-4)
    d, n = np.array([0.6, 0.8]), np.array([-0.8, 0.6])
    ring = {"v": 1.14006 * d, "M": 1.14082 * d[:, None], "R": 0.015879 * np.outer(d, d)}
    apart = ring | {"R": ring["R"] + 1e-3 * np.outer(n, n)}
    opposite = ring | {"M": ring["M"] * [[1], [-1]], "R": ring["R"] * [[1, -1], [-1, 1]]}
    on, beside, mirrored = map(limit.ravel, (ring, apart, opposite))
    with jax.enable_x64(True):
        model, _ = limit.suited(on[None], smooth=True)
        spectrum = spectrum_at(model, on)
        assert spectrum.values[0] == np.inf
        assert np.all(spectrum.values[1:].real < 1e-3)
        assert spectrum.stability == "unstable"
        assert np.all(np.isfinite(spectrum_at(model, beside).values))  # negative control
        (row,) = model.parting(mirrored)
    assert row @ mirrored == pytest.approx(0, abs=1e-15)
    with pytest.raises(sl.InputError, match=r"neurons 0 and 1 are parallel .* is infinite"):
        limit.rescaled(ring)


WIDTH, PLACE = 1e-4, 0.7


def narrow(x: Any, share: Any) -> Any:
    """A bump, or as much of a Cauchy density as is asked for."""
    return (1 - share) * jnp.exp(-(x**2) / 2) + share / (1 + x**2)


def with_narrow(s: Any, v: Any, y: Any, share: Any) -> Any:
    return narrow((s[0] - PLACE) / WIDTH, share) + (s[0] - 1) ** 2 / 2


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["bump", "Cauchy"])
def test_what_lies_between_all_nodes_is_not_missed_silently(share: float) -> None:
    """A feature of width 1e-4, of which the program of the loss tells nothing."""
    task = sl.tasks.MultiIndexTask(
        loss=with_narrow,
        parameters={"share": share},
        width=1,
        anchors=["mu"],
        means=[[1.0]],
        labels=[1.0],
        precision=10.0,
    )
    M, R = 0.6, 0.8
    state = {"M": np.array([[M]]), "R": np.array([[R]])}
    limit = sl.effective_dynamics(task)
    with pytest.warns(RuntimeWarning, match="expectations are known to .* only at this state"):
        drift, error = limit.drift(state), limit.drift_error(state)
    # E g² to leading order in the width: the feature's slope, squared, where it is
    x = np.linspace(-60, 60, 240_001)
    slopes = -(1 - share) * x * np.exp(-(x**2) / 2) - share * 2 * x / (1 + x**2) ** 2
    density = norm.pdf(PLACE, M, ((M**2 + R) / 10) ** 0.5)
    corrector = np.sum(slopes**2) * (x[1] - x[0]) * density / WIDTH / 10
    assert corrector > 10
    assert abs(drift["R"][0, 0] - corrector) < 3 * error["R"][0, 0] + 2
    assert 0 < error["R"][0, 0] < 0.5 * corrector


def softmax_drift(k: int, M: np.ndarray, R: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Of ten classes in plain NumPy."""
    values, vectors = np.linalg.eigh(R)
    root = vectors * np.sqrt(np.maximum(values, 0) / 10)
    dM, dR = -0.01 * M, -0.02 * R
    for c in range(k):
        z = ndtri(qmc.Sobol(2 * k, seed=k * seed + c).random(count)).T
        z = np.concatenate([z, -z], axis=1)
        a, across = z[:k] / 10**0.5, root @ z[k:]
        a[c] += 1
        s = M @ a + across
        g = np.exp(s - s.max(axis=0))
        g /= g.sum(axis=0)
        g[c] -= 1
        share = 1 / (k * z.shape[1])
        dM = dM - g @ a.T * share
        dR = dR + (g @ g.T / 10 - g @ across.T - across @ g.T) * share
    return np.concatenate([dM.ravel(), dR[np.triu_indices(k)]])


@pytest.mark.parametrize(("scale", "kind"), [(0.9, "sparse"), (3.0, "sparse"), (9.0, "sobol")])
def test_ten_classes(scale: float, kind: str) -> None:
    """Few nodes are enough while the fields move little; confident ones need random nodes."""
    k, rng = 10, np.random.default_rng(0)
    task = sl.tasks.GaussianMixture(classes=k)
    M = scale * (np.eye(k) - 0.1) + 0.1 * rng.normal(size=(k, k))
    state = {"M": M, "R": 0.02 * scale**2 * np.eye(k)}
    limit = sl.effective_dynamics(task, rtol=1e-4)
    assert suited(limit, state).size.kind == kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drift, stated = (limit.ravel(part(state)) for part in (limit.drift, limit.drift_error))
    plain = np.stack([softmax_drift(k, M, state["R"], 2**14, seed) for seed in range(8)])
    chance = plain.std(axis=0, ddof=1) / 8**0.5
    assert np.all(np.abs(drift - plain.mean(axis=0)) < 5 * chance + 3 * stated.max())
    assert np.max(chance) < 1e-4


def test_rules_that_agree_with_smaller_ones_and_not_with_larger_ones() -> None:
    """Three nearly dependent neurons |s| and a label sign(a): small orthant rules are off alike."""
    lam, K, count = 1.072, 3, 2**15
    task = sl.tasks.MultiIndexTask(
        loss=lambda s, v, y: (y - jnp.sum(v * jnp.abs(s))) ** 2 / 2,
        labels=lambda _, a, _e: jnp.sign(a[0]),
        width=K,
        anchors=["a"],
        precision=lam,
        readout="trained",
    )
    v, M = np.array([1.35369, -0.83257, -0.88764]), np.array([[-0.62126], [-0.5775], [-0.58881]])
    R = np.array(
        [[0.49047, 0.45983, 0.45756], [0.45983, 0.43468, 0.43107], [0.45756, 0.43107, 0.42966]]
    )
    limit = sl.effective_dynamics(task, rtol=1e-4)
    state = {"v": v, "M": M, "R": R}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "expectations are known to")
        drift, stated = limit.drift(state)["M"], limit.drift_error(state)["M"]
    means = []
    for seed in range(6):
        z = ndtri(qmc.Sobol(1 + K, rng=np.random.default_rng(seed)).random(count)) / lam**0.5
        s = z[:, :1] @ M.T + z[:, 1:] @ np.linalg.cholesky(R).T
        residual = np.abs(s) @ v - np.sign(z[:, 0])
        means.append(-(residual[:, None] * v * np.sign(s)).T @ z[:, :1] / count)
    chance = np.std(means, axis=0, ddof=1) / 6**0.5
    assert np.max(chance) < np.max(stated)
    assert np.all(np.abs(drift - np.mean(means, axis=0)) < 3 * np.max(stated) + 4 * chance)
