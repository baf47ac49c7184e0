"""However SGD moves: the exact chain and SGD on all coordinates have the same law."""

import dataclasses
import functools
import importlib
from typing import Any

import jax.numpy as jnp
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.simulate import multi_index_moves
from sgdlimits.simulate.multi_index_moves import MultiIndexMoved, Sums
from sgdlimits.simulate.rows import square
from sgdlimits.tasks import Task
from tests.agreement.test_chain_and_direct import distances

DIM, RUNS, POINTS = 40, 1500, 4

TASKS: dict[str, tuple[Task, float]] = {
    "XOR": (sl.tasks.XorMixture(width=3, precision=4.0), 1.0),
    "softmax": (sl.tasks.GaussianMixture(classes=3), 1.0),
    "erf": (sl.tasks.TeacherStudent(noise=0.1, scale="sum", readout="trained"), 0.5),
    "squares": (sl.tasks.PhaseRetrieval(width=2, noise=0.3), 0.2),
    "tensor": (sl.tasks.SpikedTensor(order=3, snr=4.0, ridge=0.3), 0.2),
}
MOVES: dict[str, dict[str, Any]] = {
    "few": {"batch": 2, "momentum": 0.6},
    "slow": {"batch": 5, "momentum": ("slow", 3.0), "decay": True},
    "many": {"batch": 64, "normalised": True, "size": 0.5, "steps": 12},
}


def simulate(name: str, method: str, seed: int, **options: Any) -> xr.Dataset:
    """A few dozen steps; the size of a step is that at which SGD is stable."""
    task, step = TASKS[name]
    step = step * options.pop("size", 1.0)
    time = options.pop("steps", 24) * step / DIM
    schedule: Any = [(0.0, step), (time / 3, step / 2)] if options.pop("decay", False) else step
    return sl.simulate(
        task,
        dim=DIM,
        runs=RUNS,
        time=time,
        step=schedule,
        seed=seed,
        init=task.random_state(DIM, seed=5),
        method=method,
        points=POINTS,
        **options,
    )


@functools.cache  # the negative controls compare with the same runs
def direct(name: str, moves: str) -> xr.Dataset:
    return simulate(name, "direct", seed=2, **MOVES[moves])


def agree(first: xr.Dataset, second: xr.Dataset) -> None:
    means, deviations, least = distances(first, second)
    assert means < 4.5
    assert deviations < 4.5
    assert least > 1e-4


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("name", TASKS)
def test_same_law(name: str, moves: str) -> None:
    agree(simulate(name, "chain", seed=1, **MOVES[moves]), direct(name, moves))


def test_fewer_samples_than_neurons_but_more_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some neurons are copies of others, so that gradients are singular as well."""
    monkeypatch.setattr(multi_index_moves, "block_of", lambda width: 4)
    task = sl.tasks.XorMixture(width=8, precision=4.0)
    start = task.random_state(DIM, seed=5)
    copies = [0, 1, 2, 3, 0, 1, 4, 5]
    start = {"v": start["v"][copies], "M": start["M"][copies], "R": start["R"][copies][:, copies]}
    chain, other = (
        sl.simulate(task, dim=DIM, runs=RUNS, time=0.5, seed=seed, init=start, method=method,
                    points=POINTS, batch=6)
        for seed, method in ((1, "chain"), (2, "direct"))
    )  # fmt: skip
    agree(chain, other)


def test_a_readout_with_a_step_of_its_own_and_momentum() -> None:
    options = {"readout_step": 0.3, "momentum": 0.8}
    chain, other = (simulate("XOR", m, 1, **options) for m in ("chain", "direct"))
    agree(chain, other)
    assert distances(simulate("XOR", "chain", seed=1, momentum=0.8), other)[0] > 8


def test_tangential_gradients_at_a_large_step() -> None:
    """Negative control: the other convention on the sphere."""
    options: dict[str, Any] = {"size": 5.0, "steps": 60}
    chain, other = (
        simulate("squares", m, 1, sphere="tangential", **options) for m in ("chain", "direct")
    )
    agree(chain, other)
    means, deviations, least = distances(simulate("squares", "chain", 1, **options), other)
    assert max(means, deviations) > 8
    assert least < 1e-6


def test_samples_taken_for_one_with_all_their_noise_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the same sums of g zᵀ, but beyond them the noise of one mean gradient."""

    class Wrong(MultiIndexMoved):
        def _sums(self, *arguments: Any) -> Sums:
            sums = super()._sums(*arguments)
            factor = square(sums.factor)
            mean = jnp.mean(factor, axis=1, keepdims=True)
            return sums._replace(factor=(jnp.broadcast_to(mean, factor.shape),))

    reference = direct("XOR", "few")
    module = importlib.import_module("sgdlimits.simulate.setting")  # simulate is a function as well
    process_of = module.process_of

    def wrong(task: Task, **options: Any) -> Any:
        process = process_of(task, **options)
        fields = (field.name for field in dataclasses.fields(process))
        return Wrong(**{name: getattr(process, name) for name in fields})

    monkeypatch.setattr(module, "process_of", wrong)
    means, _, least = distances(simulate("XOR", "chain", 1, **MOVES["few"]), reference)
    assert means > 8
    assert least < 1e-6


def test_momentum_without_its_velocity_fails() -> None:
    """Negative control: SGD with the step of the limit, c/(1 − β)."""
    chain = simulate("XOR", "chain", 1, batch=2, size=1 / 0.4, steps=9.6)
    means, _, least = distances(chain.isel(time=[0, 3]), direct("XOR", "few").isel(time=[0, 3]))
    assert means > 8
    assert least < 1e-6


def test_the_chain_for_moves_is_the_plain_one_where_nothing_is_done() -> None:
    agree(simulate("XOR", "chain", seed=1, momentum=1e-300), simulate("XOR", "chain", seed=2))
