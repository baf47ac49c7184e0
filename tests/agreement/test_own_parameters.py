"""Parameters of one's own loss and labels: compiled once, and the same in limit, chain and SGD."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from tests.compilations import compilations

START = {"M": [[0.2]], "R": [[0.6]]}
FLIP = 0.15


def logistic(s: jax.Array, v: None, y: jax.Array, slope: jax.Array) -> jax.Array:
    return jax.nn.softplus(-slope * y * s[0])


def flipped(c: jax.Array, a: jax.Array, z: jax.Array, flip: jax.Array) -> jax.Array:
    """A smooth flip: the mean label of a component is (1 − 2 flip) · sign."""
    return (1.0 - 2.0 * c) * (1.0 - 2.0 * flip) + 0.3 * z


def own(flip: float = FLIP, slope: float = 1.5, **changes: Any) -> sl.tasks.MultiIndexTask:
    return sl.tasks.MultiIndexTask(
        loss=logistic,
        labels=flipped,
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        precision=2.0,
        ridge=0.2,
        kinks="none",
        parameters={"flip": flip, "slope": slope},
        **changes,
    )


@functools.cache
def constant() -> sl.tasks.MultiIndexTask:
    """The same task with its numbers written into the functions."""
    return sl.tasks.MultiIndexTask(
        loss=lambda s, v, y: logistic(s, v, y, jnp.asarray(1.5)),
        labels=lambda c, a, z: flipped(c, a, z, jnp.asarray(FLIP)),
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        precision=2.0,
        ridge=0.2,
        kinks="none",
    )


Use = Callable[[sl.tasks.MultiIndexTask], Any]
SETTINGS: dict[str, Any] = {"dim": 60, "runs": 8, "time": 0.5, "init": START, "points": 3}
USES: dict[str, Use] = {
    # one rule is accurate enough at all values
    "drift": lambda task: sl.effective_dynamics(task, rtol=1e-4).drift(START),
    "jacobian": lambda task: sl.effective_dynamics(task, rtol=1e-4).jacobian(START),
    "solve": lambda task: sl.effective_dynamics(task, rtol=1e-4).solve(START, time=1.0, points=3),
    "chain": lambda task: sl.simulate(task, **SETTINGS),
    "direct": lambda task: sl.simulate(task, **SETTINGS, method="direct"),
    "spectrum": lambda task: sl.spectra.effective(task, START, 4.0, nodes=2**8),
}


@pytest.mark.parametrize("name", USES)
def test_one_compilation_serves_all_values(name: str) -> None:
    use = USES[name]
    first = use(own())
    with compilations() as compiled:
        again = use(own(flip=0.3, slope=0.7))
    assert compiled == []
    assert repr(first) != repr(again)  # another value is another result
    with compilations() as compiled:  # control: functions with other constants compile again
        other = use(constant())
    assert compiled or name == "solve"  # which may need no program but that of the drift
    for statistic in ("M", "R") if name in ("drift", "chain", "direct") else ():
        np.testing.assert_allclose(first[statistic], other[statistic], rtol=1e-9)
    if name == "jacobian":
        np.testing.assert_allclose(first, other, rtol=1e-9)


def test_chain_and_direct_agree() -> None:
    runs = 1024
    ends = [
        sl.simulate(
            own(), 60, runs=runs, time=1.0, init=START, points=2, method=method, seed=seed
        ).isel(time=-1)
        for seed, method in enumerate(("chain", "direct"))
    ]
    for name in ("M", "R"):
        x, y = (end[name].values.reshape(runs) for end in ends)
        assert abs(x.mean() - y.mean()) < 4.5 * np.hypot(x.std(), y.std()) / runs**0.5
        assert abs(x.var() / y.var() - 1) < 4.5 * (4 / runs) ** 0.5


def test_derivatives_through_the_model() -> None:
    limit = sl.effective_dynamics(own(), nodes=2**10)
    with jax.enable_x64(True):
        u = jnp.asarray(limit.ravel(START))

        def drift(flip: jax.Array) -> jax.Array:
            return eqx.tree_at(lambda model: model.task.flip, limit.model, flip).drift(u)

        forward = np.asarray(jax.jit(jax.jacfwd(drift))(FLIP))
        backward = float(jax.jit(jax.grad(lambda flip: drift(flip)[0]))(FLIP))
    h = 1e-5
    ends = [sl.effective_dynamics(own(flip=FLIP + shift), nodes=2**10) for shift in (-h, h)]
    low, high = (flat(end.drift(START)) for end in ends)
    np.testing.assert_allclose(forward, (high - low) / (2 * h), rtol=1e-7)
    assert backward == pytest.approx(forward[0], rel=1e-10)
    assert abs(forward[0]) > 0.1


def flat(state: dict[str, np.ndarray]) -> np.ndarray:
    return np.array([state["M"][0, 0], state["R"][0, 0]])


def test_derivatives_where_a_label_jumps_at_a_parameter() -> None:
    """The drift is affine in the share of flipped labels, so its derivative is a difference."""

    def jumping(c: jax.Array, a: jax.Array, z: jax.Array, flip: jax.Array) -> jax.Array:
        wrong = jax.scipy.special.ndtr(z) < flip
        return (1.0 - 2.0 * c) * jnp.where(wrong, -1.0, 1.0)

    task = own().replace(labels=jumping)
    ends = [sl.effective_dynamics(task.replace(flip=flip), nodes=2**10) for flip in (0.1, 0.3)]
    low, high = (flat(end.drift(START)) for end in ends)
    with jax.enable_x64(True):
        u = jnp.asarray(ends[0].ravel(START))
        slope = jax.jit(
            jax.jacfwd(
                lambda flip: eqx.tree_at(lambda m: m.task.flip, ends[0].model, flip).drift(u)
            )
        )(0.17)
    np.testing.assert_allclose(np.asarray(slope), (high - low) / 0.2, rtol=1e-9)


def test_rest_points_move_with_a_parameter() -> None:
    diagram = sl.effective_dynamics(own(), rtol=1e-7).bifurcations(
        "flip", 0.05, 0.3, init={"M": [[[0.5]]], "R": [[[0.2]]]}, search_at=0.1
    )
    assert diagram.attrs["parameter"] == "flip"
    assert "flip" not in sl.results.parameters(diagram)
    assert sl.results.parameters(diagram)["slope"] == 1.5
    (branch,) = diagram.branch.values
    one = diagram.sel(branch=branch)
    assert float(one.flip.min()) == pytest.approx(0.05)
    assert float(one.flip.max()) == pytest.approx(0.3)
    for index in (0, len(one.point) // 2, -1):
        point = one.isel(point=index)
        drift = sl.effective_dynamics(own(flip=float(point.flip)), rtol=1e-7).drift(
            {"M": point.M.values, "R": point.R.values}
        )
        np.testing.assert_allclose(flat(drift), 0.0, atol=1e-6)  # by another rule


def test_an_unknown_parameter_is_refused_with_those_that_there_are() -> None:
    limit = sl.effective_dynamics(own())
    with pytest.raises(sl.InputError, match=r"parameter='flop' .*ridge, flip, slope, step"):
        limit.bifurcations("flop", 0.1, 0.2)


@pytest.mark.parametrize("ending", ["zarr", "nc"])
def test_results_keep_them(tmp_path: Path, ending: str) -> None:
    for name in ("solve", "chain"):
        result = USES[name](own(flip=0.3))
        sl.results.save(result, tmp_path / f"{name}.{ending}")
        again = sl.results.load(tmp_path / f"{name}.{ending}")
        assert sl.results.parameters(again)["flip"] == 0.3
        assert sl.results.parameters(again)["slope"] == 1.5


def test_a_sweep_is_a_dimension() -> None:
    flips = [0.1, 0.2]
    joined = sl.results.over("flip", flips, lambda flip: USES["solve"](own(flip=flip)))
    assert joined.flip.values.tolist() == flips
    assert sl.results.parameters(joined)["slope"] == 1.5
    assert "flip" not in sl.results.parameters(joined)
