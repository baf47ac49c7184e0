"""Paths of the SDE: the order of their error, exits on time, and the ends of what is allowed."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import sgdlimits as sl
from sgdlimits.dynamics.noise import paths as module
from sgdlimits.dynamics.noise.integrator import SDE, Grid, path_keys, square_roots
from sgdlimits.dynamics.noise.linear import gaussian_step
from sgdlimits.dynamics.noise.paths import TOGETHER, followed
from tests.compilations import compilations


class Linear(eqx.Module):
    """du = A u dt + √(S/dim) dB, whose law is known."""

    A: Float[Array, "n n"]
    S: Float[Array, "n n"]
    exact: bool = True

    def drift(self, vector: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.A @ vector

    def diffusion(self, vector: Float[Array, " n"]) -> Float[Array, "n n"]:
        return self.S

    def retract(self, vector: Float[Array, " n"]) -> Float[Array, " n"]:
        return vector


class Scheme(NamedTuple):
    """Paths from one start, cut into any number of steps, along the same Brownian motions."""

    model: SDE
    start: np.ndarray
    dim: float
    spacing: float
    intervals: int
    lanes: int = TOGETHER

    def ours(self, steps: int, merged: int = 1) -> np.ndarray:
        with jax.enable_x64(True):
            starts, keys = self.begun()
            grid = Grid.of(self.spacing, steps, merged)
            return followed(self.model, starts, keys, self.intervals, grid, self.dim)

    def euler(self, steps: int, merged: int = 1) -> np.ndarray:
        """Euler–Maruyama, of first order: the negative control."""
        model, time_step = self.model, self.spacing / steps
        size = (time_step / self.dim / merged) ** 0.5

        @eqx.filter_jit
        def step(vectors: Array, keys: Array, index: Array) -> Array:
            def noise(j: Array, total: Array) -> Array:
                here = jax.vmap(lambda key: jax.random.fold_in(key, index * merged + j))(keys)
                return total + jax.vmap(lambda key: jax.random.normal(key, total.shape[1:]))(here)

            total = jax.lax.fori_loop(0, merged, noise, jnp.zeros_like(vectors))
            roots = square_roots(jax.vmap(model.diffusion)(vectors))
            moved = vectors + time_step * jax.vmap(model.drift)(vectors)
            return jax.vmap(model.retract)(moved + size * jnp.einsum("rij,rj->ri", roots, total))

        with jax.enable_x64(True):
            vectors, keys = self.begun()
            recorded = [np.asarray(vectors)]
            for index in range(self.intervals * steps):
                vectors = step(vectors, keys, jnp.asarray(index))
                if (index + 1) % steps == 0:
                    recorded.append(np.asarray(vectors))
        return np.stack(recorded, axis=1)

    def begun(self) -> tuple[Array, Array]:
        starts = jnp.broadcast_to(self.start, (self.lanes, len(self.start)))
        return starts, path_keys(7, 0, self.lanes)


def order(errors: list[float]) -> float:
    """The slope on a log-log line; every step is half of the one before."""
    return float(-np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0])


def test_without_noise_the_order_is_four() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    scheme = Scheme(limit.model, np.array([0.3, 0.4]), np.inf, spacing=0.2, intervals=1)
    exact = limit.solve({"m": 0.3, "r2": 0.4}, time=0.2, points=2).m.values[-1]
    steps = (4, 8, 16)
    ours, plain = (
        [abs(run(n)[0, -1, 0] - exact) for n in steps] for run in (scheme.ours, scheme.euler)
    )
    assert order(ours) > 3.5
    assert order(plain) < 1.5


def test_order_of_the_error_of_the_noise_is_two() -> None:
    """The growing variance of a linear SDE: the step's effect by paths of the same noise."""
    A, S = np.array([[3.0, 8.0], [0.0, -5.0]]), np.array([[1.0, 0.5], [0.5, 2.0]])
    with jax.enable_x64(True):
        model = Linear(jnp.asarray(A), jnp.asarray(S))
    scheme = Scheme(model, np.zeros(2), 30.0, spacing=0.2, intervals=4, lanes=4096)
    exact = gaussian_step(A, S / 30.0, 0.8).noise[0, 0]
    finest = scheme.ours(16)[:, -1, 0] ** 2
    assert abs(np.mean(finest) - exact) < 4 * np.std(finest) / 64
    ours, plain = (
        [abs(np.mean(run(n, 16 // n)[:, -1, 0] ** 2 - finest)) for n in (1, 2, 4)]
        for run in (scheme.ours, scheme.euler)
    )
    assert order(ours) > 1.7
    assert order(plain) < 1.4


def exit_times(overlaps: np.ndarray, spacing: float) -> np.ndarray:
    """When they reach one half, by interpolation."""
    size = np.abs(overlaps)
    first = np.argmax(size >= 0.5, axis=1)
    runs = np.arange(len(size))
    before, after = size[runs, first - 1], size[runs, first]
    assert np.all(first > 0)
    return spacing * (first - 1 + (0.5 - before) / (after - before))


def test_exits_from_mediocrity_are_on_time() -> None:
    """Phase retrieval from m = 1/√d: at most 0.5 % late, against short steps and against SGD."""
    task, dim, time, points = sl.tasks.PhaseRetrieval(noise=0.5), 1000, 6.0, 121
    start = {"M": [[dim**-0.5]], "R": [[1 - 1 / dim]]}
    limit = sl.effective_dynamics(task, step=0.1)
    paths = limit.sample_paths(start, dim=dim, time=time, runs=256, seed=1, points=points)
    spacing = time / (points - 1)
    steps = round(spacing / paths.attrs["time_step"])
    scheme = Scheme(limit.model, limit.ravel(start), dim, spacing, points - 1)
    true = exit_times(scheme.ours(16 * steps)[:, :, 0], spacing)
    ours, plain = (
        exit_times(run(steps, 16)[:, :, 0], spacing) - true for run in (scheme.ours, scheme.euler)
    )
    assert abs(np.mean(ours)) < 0.005 * np.mean(true)
    assert np.mean(plain) > 0.01 * np.mean(true)  # negative control
    chain = sl.simulate(
        task, dim=dim, time=time, runs=256, step=0.1, init=start, seed=2, points=points
    )
    x, y = (exit_times(result.M.values[:, :, 0, 0], spacing) for result in (paths, chain))
    assert abs(np.mean(x) - np.mean(y)) < 3 * np.hypot(np.std(x), np.std(y)) / 16


def test_a_path_is_the_same_whatever_their_number() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=1.2))
    few, many = (
        limit.sample_paths({"m": 0.3, "r2": 0.7}, dim=500, time=0.2, runs=runs, seed=3, points=3)
        for runs in (2, TOGETHER + 2)
    )
    np.testing.assert_array_equal(few.m, many.m[:2])
    assert few.attrs["step_error"] == many.attrs["step_error"]
    assert len(np.unique(many.m[:, -1])) == TOGETHER + 2


def test_other_sizes_need_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "to_dataset", lambda model, values, times, attrs: values)
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=1.2))
    start = {"m": 0.3, "r2": 0.7}
    limit.sample_paths(start, dim=500, time=0.2, runs=2, points=3)
    with compilations() as seen:
        limit.sample_paths(start, dim=30, time=0.3, runs=70, points=40, seed=1)
    assert seen == []


@pytest.mark.parametrize("rank", [0, 1])
def test_states_of_singular_gram_matrices(rank: int) -> None:
    """From R of less than full rank, in few dimensions, paths stay among the states."""
    task = sl.tasks.PhaseRetrieval(width=2, noise=0.5)
    M = np.array([[0.6], [0.8]]) if rank else np.ones((2, 1))
    root = np.sqrt(1 - M**2)
    limit = sl.effective_dynamics(task, step=0.3)
    paths = limit.sample_paths({"M": M, "R": root @ root.T}, dim=30, time=2.0, runs=8, points=5)
    assert not bool(paths.diverged.any())
    norms = task.squared_norms(paths.M.values, paths.R.values)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(paths.R.values)) > -1e-12
    assert np.std(paths.M.values[:, -1]) > 0.01


def test_few_and_many_dimensions_and_no_noise_at_all() -> None:
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(), step=0.1)
    rest = limit.sample_paths({"M": [[1.0]], "R": [[0.0]]}, dim=30, time=1.0, runs=4, points=3)
    assert np.all(rest.M == 1)
    assert np.all(rest.R == 0)
    start = {"M": [[0.3]], "R": [[1 - 0.3**2]]}
    solution = limit.solve(start, time=2.0, points=5)
    wide = limit.sample_paths(start, dim=10**8, time=2.0, runs=4, points=5)
    assert 0 < np.max(np.abs(wide.M - solution.M)) < 1e-3
    assert wide.attrs["step_error"] < 1e-4


def test_square_roots_of_degenerate_matrices() -> None:
    ones, turn = np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, -1.0]]) / 2**0.5
    indefinite = turn @ np.diag([1.0, -1e-6]) @ turn.T
    cases = [ones, 0 * ones, np.diag([0.0, 4.0]), np.eye(2) + 1, indefinite, np.nan * ones]
    with jax.enable_x64(True):
        roots = np.asarray(square_roots(jnp.asarray(np.stack(cases))))
    expected = [*cases[:-1], 0 * ones]
    np.testing.assert_allclose(roots @ roots.swapaxes(1, 2), np.stack(expected), atol=2e-6)
