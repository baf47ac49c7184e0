"""The limit as users hold it: frozen, JAX inside, and its diffusive limits in finite dimension."""

import dataclasses
import inspect
import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import sgdlimits as sl
from sgdlimits import _newton, _warn
from sgdlimits.dynamics.rest.walk import connected
from sgdlimits.dynamics.rest.walk import slope as slope_at

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)


@pytest.mark.parametrize("name", ["step", "task", "nodes", "model"])
def test_a_limit_cannot_be_changed(name: str) -> None:
    limit = sl.effective_dynamics(PCA)
    before = limit.drift({"m": 0.5, "r2": 0.5})
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(limit, name, 2.0)
    assert limit.drift({"m": 0.5, "r2": 0.5}) == before
    assert "step=1.0" in repr(limit)


def test_methods_are_documented_where_users_look() -> None:
    for name in ("solve", "fixed_points", "basins", "bifurcations", "rescaled", "drift_in_plane"):
        method = getattr(sl.EffectiveDynamics, name)
        assert "Args:" in inspect.getdoc(method)  # type: ignore[operator]
        first = next(iter(inspect.signature(method).parameters))
        assert first == "self"


def test_the_model_can_be_differentiated_and_batched() -> None:
    """du*/dsnr by the implicit function theorem, and a drift for many values at once."""
    limit = sl.effective_dynamics(PCA, step=0.5)
    m = math.sqrt(2.0 - 0.5)
    with jax.enable_x64(True):

        def drift(u: jax.Array, snr: jax.Array) -> jax.Array:
            return eqx.tree_at(lambda model: model.task.snr, limit.model, snr).drift(u)

        u = jnp.asarray([m, 0.5])
        along_u, along_snr = jax.jit(jax.jacfwd(drift, (0, 1)))(u, jnp.asarray(2.0))
        slope = -np.linalg.solve(along_u, along_snr)
        snrs = jnp.asarray([1.0, 2.0, 3.0])
        many = np.asarray(jax.jit(jax.vmap(drift, (None, 0)))(u, snrs))
    np.testing.assert_allclose(slope, [1 / (2 * m), 0.0], atol=1e-12)
    for snr, row in zip((1.0, 2.0, 3.0), many, strict=True):
        other = sl.effective_dynamics(PCA.replace(snr=snr), step=0.5)
        drift_there = other.drift({"m": m, "r2": 0.5})
        np.testing.assert_allclose(row, [drift_there["m"], drift_there["r2"]], atol=1e-12)


def test_a_growing_snr_keeps_its_power_of_the_overlap() -> None:
    """(3.3) of BGJ22 corrected: dm̃ = (2kΛ m̃² − 2k m̃) dt + √(4k) dB at snr = Λ√n, k = 3.

    SGD at n = 4000 against the nonlinear SDE; at dim = ∞ the power is missing and the law another.
    """
    dim, big_lambda, runs, time = 4000, 0.6, 4096, 0.12
    task = sl.tasks.SpikedTensor(order=3, snr=big_lambda * math.sqrt(dim))
    limit = sl.effective_dynamics(task)
    equator = {"m": 0.0, "r2": 1.0}
    starts = np.full((runs, 1), 1.5)
    init = {"m": starts[:, 0] / dim**0.5, "r2": np.ones(runs)}
    simulated = sl.simulate(task, dim, runs=runs, time=time, init=init, points=2, seed=3)
    measured = dim**0.5 * simulated.m.values[:, -1]

    def at_the_end(size: float) -> np.ndarray:
        sde = limit.rescaled(equator, only=["m"], dim=size)
        paths = sde.sample(time, runs, seed=4, init=starts, points=2)
        return np.asarray(paths.sel(statistic="m").values[:, -1])

    nonlinear, linear = at_the_end(dim), at_the_end(math.inf)
    error = np.hypot(measured.std(), nonlinear.std()) / runs**0.5
    assert abs(nonlinear.mean() - measured.mean()) < 4 * error
    assert scipy.stats.ks_2samp(measured, nonlinear).pvalue > 1e-3
    assert abs(linear.mean() - measured.mean()) > 8 * error


def test_a_finite_dim_is_for_some_statistics_only() -> None:
    limit = sl.effective_dynamics(PCA)
    options: dict[str, Any] = {"dim": 100}
    with pytest.raises(sl.InputError, match="dim=100 is not allowed without `only`"):
        limit.rescaled({"m": 1.0, "r2": 1.0}, **options)
    assert "linear" in repr(limit.rescaled({"m": 1.0, "r2": 1.0}, only=["m"]))
    assert "nonlinear" in repr(limit.rescaled({"m": 1.0, "r2": 1.0}, only=["m"], dim=100))


# --- pieces that several rooms share --------------------------------------------------------------


def test_steps_of_least_norm() -> None:
    """One equation in three unknowns: along its gradient; dependent equations do no harm."""
    with jax.enable_x64(True):
        J, v = jnp.asarray([[1.0, 2.0, 2.0]]), jnp.asarray([9.0])
        np.testing.assert_allclose(_newton.least_norm_step(J, v), [-1.0, -2.0, -2.0], rtol=1e-9)
        twice = jnp.concatenate([J, J])
        step = _newton.least_norm_step(twice, jnp.asarray([9.0, 9.0]))
        np.testing.assert_allclose(step, [-1.0, -2.0, -2.0], rtol=1e-6)


def test_a_step_too_far_is_halved() -> None:
    """arctan from x = 2: Newton's full step overshoots to the other side and farther away."""
    with jax.enable_x64(True):
        x = jnp.asarray([2.0])
        full = _newton.least_norm_step(1 / (1 + x**2)[None], jnp.arctan(x))
        assert abs(np.arctan(2.0 + float(full[0]))) > np.arctan(2.0)
        for _ in range(6):
            x = _newton.damped(
                jnp.arctan, x, _newton.least_norm_step(1 / (1 + x**2)[None], jnp.arctan(x))
            )
        assert abs(float(x[0])) < 1e-12
        still = _newton.damped(lambda y: y**2, jnp.asarray([0.1]), jnp.asarray([5.0]))
        assert float(still[0]) == 0.1  # nothing along this direction is better


def test_a_walk_along_a_ring_arrives_and_one_across_does_not() -> None:
    """The quarter ring of two aligned neurons, and the origin beside it."""
    task = sl.tasks.BinaryMixture(precision=math.inf, ridge=0.1)
    limit = sl.effective_dynamics(task)
    radius = math.sqrt(sl.theory.binary_mixture.ring_radius_squared(0.1))

    def on_ring(angle: float) -> np.ndarray:
        a = radius * np.array([math.cos(angle), math.sin(angle)])
        return limit.ravel({"v": a, "M": a[:, None], "R": np.zeros((2, 2))})

    with jax.enable_x64(True):
        assert np.linalg.svd(slope_at(limit.model, on_ring(0.3)), compute_uv=False).min() < 1e-9
        assert connected(limit.model, on_ring(0.3), on_ring(1.2))
        assert connected(limit.model, on_ring(0.3), on_ring(1.2), arrived=1e-5)
        assert not connected(limit.model, on_ring(0.3), np.zeros_like(on_ring(0.3)))


def test_warnings_point_at_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn.warn("here")
        unstable = sl.tasks.SpikedTensor(order=2, snr=2.0)
        sl.simulate(unstable, dim=20, runs=2, time=20.0, step=40.0, points=2)
    assert [warning.filename for warning in caught] == [__file__, __file__]
    assert "diverged" in str(caught[1].message)
