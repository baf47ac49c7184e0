"""Which fields an orthant rule takes together, and what comes of it at the end of training."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

import sgdlimits as sl
from sgdlimits.dynamics.model import Table, blocks
from sgdlimits.dynamics.model.multi_index import MultiIndexModel


def arranged(made_of: np.ndarray, pairs: int, whole: tuple[int, ...] = ()) -> blocks.Arrangement:
    return blocks.arrangement(made_of, pairs, whole)


def opposite_pairs(rest: float) -> np.ndarray:
    """Two pairs of opposite fields, and a small fifth one along the first of them."""
    return np.array(
        [
            [1.0, 0, rest, 0, 0, 0],
            [0, 1.0, 0, rest, 0, 0],
            [-1.0, 0, rest, 0, 0, 0],
            [0, -1.0, 0, rest, 0, 0],
            [0.03, 0, 0, 0, 1e-3, 0],
        ]
    )


def test_opposite_neurons_are_pairs_and_a_dead_one_is_not() -> None:
    """The dead one is more dependent than they are, but too small to matter."""
    found = arranged(opposite_pairs(0.2), 2)
    assert [set(found.order[:2]), set(found.order[2:4])] in ([{0, 2}, {1, 3}], [{1, 3}, {0, 2}])
    assert found.order[4] == 4
    assert blocks.pairs_needed(found) == 2
    assert found.left[4] < blocks.LITTLE
    np.testing.assert_allclose(found.alike, (1 - 0.04) / (1 + 0.04), rtol=1e-12)
    with jax.enable_x64(True):  # inside a program it is the same
        inside = jax.jit(blocks.arrangement, static_argnums=(1, 2))(opposite_pairs(0.2), 2, ())
    np.testing.assert_array_equal(inside.order, found.order)
    np.testing.assert_allclose(inside.left, found.left, rtol=1e-9)


def test_independent_fields_are_taken_alone() -> None:
    found = arranged(np.eye(4), 2)
    assert blocks.pairs_needed(found) == 0
    assert blocks.block_orders(3, 0, list(found.left), 0) == ((3,),) * 4
    assert blocks.block_count(((3,),) * 4, 0) == 6**4


def test_fields_without_kinks_come_last() -> None:
    found = arranged(np.eye(3) + 0.1, 1, (0,))
    assert found.order[-1] == 0
    orders = blocks.block_orders(3, 1, list(found.left), 1)
    assert blocks.block_count(orders, 1) == 6 * 11 * 6


def test_equals_by_symmetry_do_not_hang_on_rounding() -> None:
    made_of = opposite_pairs(0.2)[:4]
    orders = {
        tuple(
            arranged(
                made_of * (1 + 1e-13 * np.random.default_rng(seed).normal(size=(4, 6))), 2
            ).order
        )
        for seed in range(20)
    }
    assert len(orders) == 1


def plain_drift(task: sl.tasks.XorMixture, state: dict[str, Any], seed: int) -> np.ndarray:
    """The drift of a ReLU network on XOR in plain NumPy, on Sobol nodes for the data."""
    v, M, R, K = state["v"], state["M"], state["R"], task.width
    values, vectors = np.linalg.eigh(R)
    root = vectors * np.sqrt(np.maximum(values, 0.0) / task.precision)
    dv, dM, dR = -task.ridge * v, -task.ridge * M, -2 * task.ridge * R
    assert task.labels is not None
    for c, (mean, label) in enumerate(zip(task.means, task.labels, strict=True)):
        z = ndtri(qmc.Sobol(2 + K, seed=10 * seed + c).random(2**15)).T
        a, across = mean[:, None] + z[:2] / task.precision**0.5, root @ z[2:]
        s = M @ a + across
        active, share = np.maximum(s, 0.0), 1 / (4 * z.shape[1])
        e = 1 / (1 + np.exp(-(v @ active))) - label
        g = e * v[:, None] * (s > 0)
        dv = dv - active @ e * share
        dM = dM - g @ a.T * share
        dR = dR + (g @ g.T / task.precision - g @ across.T - across @ g.T) * share
    return np.concatenate([dv, dM.ravel(), dR[np.triu_indices(K)]])


# narrow ones are narrower: two pairs and one beside them are all that may happen
@pytest.mark.parametrize(("width", "scale"), [(5, 0.1), (5, 1.0), (5, 10.0), (4, 10.0)])
def test_trained_networks_are_integrated_within_the_stated_error(width: int, scale: float) -> None:
    """Against plain NumPy at opposite neurons, as after training, of several sizes."""
    rng = np.random.default_rng(width)
    task = sl.tasks.XorMixture(width=width, precision=10.0)
    ways = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0.03, 0]])[:width]
    lengths = np.linalg.norm(ways, axis=1)
    small = 0.06 * rng.normal(size=(width, 2 * width)) * lengths[:, None]
    state = {
        "v": lengths * [1, 1, -1, -1, 1][:width],
        "M": scale * (1.06 * ways + 1e-3 * rng.normal(size=(width, 2))),
        "R": scale**2 * small @ small.T,
    }
    limit = sl.effective_dynamics(task)
    rows = limit.ravel(state)[None]
    with jax.enable_x64(True):
        model, error = limit.suited(rows, smooth=True)
        assert isinstance(model, MultiIndexModel)
        assert model.size.kind == "orthant"
        (drift,) = Table(model).drift(rows)
        stated = float(model.errors(jnp.asarray(rows)).drift.max())
    plain = np.stack([plain_drift(task, state, seed) for seed in range(8)])
    chance = plain.std(axis=0, ddof=1) / len(plain) ** 0.5
    assert error < 1e-3
    assert np.all(np.abs(drift - plain.mean(axis=0)) < 5 * chance + 3 * stated)


def test_rest_points_of_five_neurons() -> None:
    """Four neurons along the means, a fifth shares the work of one: a ring, marginally stable.

    Runs of SGD started there stay, within their noise.
    """
    task = sl.tasks.XorMixture(width=5, precision=10.0, ridge=0.05)
    limit = sl.effective_dynamics(task, rtol=1e-3)
    size = np.array([1.0057, 1.05, 0.3017, 1.05, 1.05])  # as at time 200 of a solution
    ways = np.array([[0.0, -1], [0, 1], [0, -1], [-1, 0], [1, 0]])
    own, other, across = 0.0318, -0.0012, -0.0147
    R = np.outer(size, size) * np.where(np.abs(ways @ ways.T) > 0, own, across)
    R = np.where(ways @ ways.T < 0, other * np.outer(size, size), R) + 1e-5 * np.eye(5)
    start = {"v": size * [-1, -1, -1, 1, 1], "M": 1.01 * size[:, None] * ways, "R": R}
    (point,) = limit.fixed_points(init={name: x[None] for name, x in start.items()})
    assert (point.stability, point.kernel_dimension) == ("marginal", 1)
    assert point.eigenvalues[1].real == pytest.approx(-0.05, abs=1e-4)  # the ridge
    strength = point.state["v"] ** 2
    total = [strength[0] + strength[2], strength[1], strength[3], strength[4]]
    np.testing.assert_allclose(total, total[1], rtol=1e-5)
    dim, runs = 4000, 64
    sgd = sl.simulate(task, dim=dim, runs=runs, time=40.0, points=3, init=point.state, seed=1)
    ends = np.sum(sgd.v.values[:, -1, 3:] ** 2, axis=1)
    spread = ends.std(ddof=1) / np.sqrt(runs)
    assert abs(ends.mean() - 2 * total[1]) < 4 * spread + 20 / dim
