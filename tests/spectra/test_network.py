"""Matrices of any loss: against full automatic differentiation, block by block."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import sgdlimits as sl
from sgdlimits.spectra import Network, Tracker, alignment, leading_space
from sgdlimits.spectra import network as module

RNG = np.random.default_rng(0)
PARAMS: dict[str, Any] = {
    "hidden": [RNG.normal(size=(3, 4)), RNG.normal(size=3)],
    "out": RNG.normal(size=3),
}
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=20)


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    weight, bias = params["hidden"]
    return (params["out"] @ jnp.tanh(weight @ x + bias) - y) ** 2 / 2


def whole(matrix: str) -> np.ndarray:
    with jax.enable_x64(True):
        flat, restore = ravel_pytree(PARAMS)

        def one(flat: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
            return loss(restore(flat), x, y)

        if matrix == "hessian":
            hessians = jax.jit(jax.vmap(jax.hessian(one), (None, 0, 0)))(flat, X, Y)
            return np.asarray(np.asarray(hessians).mean(0))
        gradients = np.asarray(jax.jit(jax.vmap(jax.grad(one), (None, 0, 0)))(flat, X, Y))
        return np.asarray(gradients.T @ gradients / len(X))


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_blocks(matrix: str) -> None:
    network = Network(loss, X, Y)
    assert network.blocks(PARAMS) == ["hidden/0", "hidden/1", "out", "hidden", "all"]
    full = whole(matrix)
    assert network.dense(PARAMS, matrix, "all") == pytest.approx(full, abs=1e-12)
    places = {
        "hidden/0": slice(0, 12),
        "hidden/1": slice(12, 15),
        "out": slice(15, 18),
        "hidden": slice(0, 15),
    }
    for name, place in places.items():
        assert network.dense(PARAMS, matrix, name) == pytest.approx(full[place, place], abs=1e-12)
    pairs = network.leading(PARAMS, matrix, "hidden/0", 3)
    values = np.linalg.eigvalsh(full[:12, :12])
    assert np.sort(np.abs(pairs.values)) == pytest.approx(np.sort(np.abs(values))[-3:], rel=1e-5)
    assert 0 < network.alignment(PARAMS, matrix, "hidden/0", 3) <= 1
    nodes, weights = network.density(PARAMS, matrix, "all", probes=50, steps=18)
    assert weights.sum() == pytest.approx(1)
    assert nodes.min() >= np.linalg.eigvalsh(full)[0] - 1e-9


def test_blocks_of_any_tree() -> None:
    network = Network(lambda p, x, y: 0.0 * y, X, Y)
    one = np.ones(2)
    nested = {"net": [{"b": one, "w": one}, {"b": one, "w": one}], "scale": {"s": one}}
    leaves = ["net/0/b", "net/0/w", "net/1/b", "net/1/w", "scale/s"]
    assert network.blocks(nested) == [*leaves, "net", "net/0", "net/1", "all"]
    assert network.size(nested, "scale") == 2  # a subtree of one leaf is not listed, but known
    assert network.blocks({"params": [one, one]}) == ["params/0", "params/1", "all"]
    assert network.size({"params": [one, one]}, "params") == 4
    assert network.blocks(one) == ["all"]
    assert network.flat({"w": jnp.ones(2, jnp.bfloat16)}, "w").dtype == np.float64
    for ambiguous in ({"a": {"b": one}, "a/b": one}, {"all": one, "w": one}):
        with pytest.raises(ValueError, match=r"second part named 'a(/b|ll)', which is not allowed"):
            network.blocks(ambiguous)


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_products_in_parts(matrix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_at_once = Network(loss, X, Y).dense(PARAMS, matrix, "all")
    monkeypatch.setattr(module, "AT_ONCE", 5 * len(X))  # 18 columns: three times 5, and 3 of 5
    network = Network(loss, X, Y)
    assert network.dense(PARAMS, matrix, "all") == pytest.approx(whole_at_once, abs=1e-14)
    vector = RNG.normal(size=18)
    product = network.product(PARAMS, matrix, "all", vector)
    assert product == pytest.approx(whole_at_once @ vector, abs=1e-12)


def test_one_network_for_trees_of_different_form() -> None:
    def sums(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(params["w"] ** 2) + 0 * y

    network = Network(sums, X, Y)
    assert network.dense({"w": np.ones(1)}, "hessian", "w") == pytest.approx(2 * np.eye(1))
    more = {"a": np.ones(3), "w": np.ones(2)}  # here "w" is the second leaf
    assert network.dense(more, "hessian", "w") == pytest.approx(2 * np.eye(2))


def trained(time: int) -> dict[str, Any]:
    """Parameters on the way from somewhere; the output starts at zero."""
    weight, bias = PARAMS["hidden"]
    return {"hidden": [weight * 0.8**time, bias + time], "out": PARAMS["out"] * time}


def test_tracker_against_dense_matrices() -> None:
    network, rank, times = Network(loss, X, Y), 4, [0, 1, 3]
    tracker = network.tracker(rank=rank)
    for time in times:
        tracker(time, trained(time))
    found = tracker.dataset()
    assert isinstance(tracker, Tracker)
    assert list(found.block.values) == network.blocks(PARAMS)
    assert dict(found.sizes) == {"time": 3, "matrix": 2, "block": 5, "rank": rank}
    for time in times:
        for block in network.blocks(PARAMS):
            own = network.flat(trained(time), block)
            norm = found.norm.sel(time=time, block=block)
            assert float(norm) == pytest.approx(np.linalg.norm(own))
            for matrix in ("hessian", "gradient"):
                dense = network.dense(trained(time), matrix, block)
                values = np.linalg.eigvalsh(dense)
                wanted = np.full(rank, np.nan)
                wanted[: len(own)] = values[np.argsort(-np.abs(values))][:rank]
                one = found.sel(time=time, matrix=matrix, block=block)
                assert one.eigenvalues.values == pytest.approx(wanted, abs=1e-9, nan_ok=True)
                if not np.any(own):
                    assert np.isnan(one.alignment)
                elif len(own) <= rank:
                    assert float(one.alignment) == pytest.approx(1)
                elif time:  # at time 0 many eigenvalues are zero: any basis will do
                    space = leading_space(dense, rank)
                    assert float(one.alignment) == pytest.approx(alignment(own, space), abs=1e-6)
    assert sl.plot.eigenvalues_over_time(found, "hidden", "gradient").axes
    assert len(sl.plot.alignment(found).axes) == 2


def test_tracker_sees_eigenvalues_that_overtake() -> None:
    def separate(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(params**4) / 12 + 0 * y  # the Hessian is diagonal, with entries params²

    size = 40
    network = Network(separate, np.zeros(1), np.zeros(1))
    before = np.r_[4.0, np.linspace(1, 2, size - 1)]
    after = np.r_[4.0, np.linspace(1, 2, size - 2), 5.0]
    tracker = network.tracker("all", rank=1, matrices="hessian")
    tracker(0.0, before)
    tracker(1.0, after)
    assert tracker.dataset().eigenvalues.values.ravel() == pytest.approx([16, 25])
    # the last eigenvector, which has not moved, alone as a start would be taken for the answer
    found = network.leading(after, "hessian", "all", 1, start=np.eye(size)[:, :1])
    assert found.values == pytest.approx([25])


def test_tracker_refuses() -> None:
    network = Network(loss, X, Y)
    tracker = network.tracker(["out"], rank=2)
    with pytest.raises(ValueError, match="nothing was recorded"):
        tracker.dataset()
    tracker(1.0, PARAMS)
    for time in (1.0, 0.5):
        with pytest.raises(ValueError, match=rf"time={time:g} is not allowed: times must increase"):
            tracker(time, PARAMS)
    with pytest.raises(ValueError, match="time=nan is not allowed"):
        tracker(np.nan, PARAMS)
    with pytest.raises(ValueError, match=r"params at 'out' has 4 entries.* had 3"):
        tracker(2.0, PARAMS | {"out": np.ones(4)})
    assert tracker.dataset().time.values.tolist() == [1.0]  # errors record nothing
    with pytest.raises(ValueError, match=r"block='w' is not allowed.*'hidden'"):
        network.tracker(["w"])(0, PARAMS)
    with pytest.raises(ValueError, match="matrix='fisher' is not allowed"):
        network.tracker(matrices=["fisher"])
    with pytest.raises(ValueError, match="rank=0 is not allowed"):
        network.tracker(rank=0)
    with pytest.raises(ValueError, match="blocks must be different names"):
        network.tracker(["out", "out"])
    with pytest.raises(ValueError, match="tolerance=-1 is not allowed"):
        network.tracker(tolerance=-1)


@pytest.mark.parametrize(
    ("entry", "said"),
    [(np.nan, "finite"), (np.inf, "finite"), (1j, "real numbers"), ("w", "real numbers")],
)
def test_entries_are_real_and_finite(entry: Any, said: str) -> None:
    wrong = np.array([entry, entry, entry])
    bad = PARAMS | {"hidden": [wrong, PARAMS["hidden"][1]]}
    for block in ("hidden/0", "out"):  # also where the block itself is right
        named = rf"params at 'hidden/0' has entries that are not {said}, which is not allowed"
        with pytest.raises(ValueError, match=named):
            Network(loss, X, Y).dense(bad, "hessian", block)
    with pytest.raises(ValueError, match=rf"^x has entries that are not {said}"):
        Network(loss, wrong, Y[:3])
    with pytest.raises(ValueError, match=rf"^y has entries that are not {said}"):
        Network(loss, X[:3], wrong)


def test_wrong_input_is_named() -> None:
    network = Network(loss, X, Y)
    with pytest.raises(ValueError, match=r"block='w' is not allowed.*'hidden/0'"):
        network.dense(PARAMS, "hessian", "w")
    with pytest.raises(ValueError, match="matrix='fisher' is not allowed"):
        network.dense(PARAMS, "fisher", "out")
    with pytest.raises(ValueError, match="20 and 3 samples"):
        Network(loss, X, Y[:3])
    with pytest.raises(ValueError, match="rank=4 is not allowed: block 'out' has only 3"):
        network.leading(PARAMS, "hessian", "out", 4)
    with pytest.raises(ValueError, match=r"start has shape \(2, 1\).* must have 3 rows"):
        network.leading(PARAMS, "hessian", "out", 1, start=np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"vector has shape \(2,\).* must have shape \(3,\)"):
        network.product(PARAMS, "hessian", "out", np.ones(2))
    with pytest.raises(ValueError, match="at least one array"):
        network.blocks({})
    with pytest.raises(ValueError, match="x is one number"):
        Network(loss, 1.0, Y)
    with pytest.raises(ValueError, match=r"loss gives an array of shape \(1,\)"):
        Network(lambda p, x, y: p["out"][:1] * y, X, Y).dense(PARAMS, "gradient", "out")
