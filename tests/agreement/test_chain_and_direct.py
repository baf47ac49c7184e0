"""The exact chain and SGD on all coordinates have the same law, in the same dimension."""

import functools
import importlib
from typing import Any

import equinox as eqx
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import sgdlimits as sl
from sgdlimits.tasks import Task
from tests.cases import CASES, DIRECT_DIM, Case

DIM, RUNS, TIME, POINTS = DIRECT_DIM, 512, 1.5, 4
STEPS = 900  # at most: direct SGD with a tiny step takes minutes


def simulate(case: Case, method: str, seed: int) -> xr.Dataset:
    start = case.task.random_state(DIM, seed=5)
    return sl.simulate(
        case.task,
        dim=DIM,
        runs=RUNS,
        time=min(TIME, STEPS * case.step / DIM),
        step=case.step,
        seed=seed,
        init=start,
        method=method,
        points=POINTS,
    )


@functools.cache  # the negative controls compare with the same runs
def direct(index: int) -> xr.Dataset:
    return simulate(CASES[index], "direct", seed=2)


def samples(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """Values over runs of every statistic at every recorded time after the start."""
    return {
        f"{name} at record {record}": sl.results.select(dataset, name).values[:, record]
        for name in sl.results.statistics(dataset)
        for record in range(1, dataset.sizes["time"])
    }


def deviation_error(x: np.ndarray) -> float:
    """Standard error of the standard deviation of x."""
    centred = x - x.mean()
    return float(np.sqrt(((centred**4).mean() - x.var() ** 2) / len(x)) / (2 * x.std()))


def distances(first: xr.Dataset, second: xr.Dataset) -> tuple[float, float, float]:
    """Largest gap of means and of deviations in standard errors, and the least KS p-value."""
    means, deviations, values = [], [], []
    for x, y in zip(samples(first).values(), samples(second).values(), strict=True):
        if x.std() < 1e-12 and y.std() < 1e-12:  # no noise reaches this statistic
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
            continue
        means.append(abs(x.mean() - y.mean()) / np.hypot(x.std(), y.std()) * len(x) ** 0.5)
        error = np.hypot(deviation_error(x), deviation_error(y))
        deviations.append(abs(x.std() - y.std()) / error)
        values.append(scipy.stats.ks_2samp(x, y).pvalue)
    return max(means), max(deviations), min(values)


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda index: repr(CASES[index]))
def test_same_law(index: int) -> None:
    means, deviations, least = distances(simulate(CASES[index], "chain", seed=1), direct(index))
    assert means < 4
    assert deviations < 4
    assert least > 1e-4


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("index", [1, 3, 8, 14])
def test_without_the_orthogonal_part_it_fails(
    index: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: no noise, or half of it, in the directions that nothing spans."""

    reference = direct(index)
    module = importlib.import_module("sgdlimits.simulate.setting")  # simulate is a function as well
    process_of = module.process_of

    def with_less(task: Task, **options: Any) -> Any:
        process = process_of(task, **options)
        return eqx.tree_at(lambda chain: chain.freedom, process, share * process.freedom)

    monkeypatch.setattr(module, "process_of", with_less)
    means, _, least = distances(simulate(CASES[index], "chain", seed=1), reference)
    assert means > 8
    assert least < 1e-6


@pytest.mark.parametrize("order", [2, 3])
def test_spiked_tensor_noise_is_that_of_explicit_tensors(order: int) -> None:
    """One step with every entry of W drawn: the gradient noise has the covariance we draw from."""
    n, draws = 12, 20_000
    generator = np.random.default_rng(7)
    x = generator.normal(size=n)
    x /= np.linalg.norm(x)
    x *= 1.3
    noise = np.zeros((draws, n))
    tensors = generator.normal(size=(draws,) + (n,) * order)
    for slot in range(order):  # ∂/∂x of −2⟨W, x⊗…⊗x⟩ has one term for every slot of W
        contracted = np.moveaxis(tensors, slot + 1, 1)
        for _ in range(order - 1):
            contracted = contracted @ x
        noise += -2 * contracted
    isotropic, radial = sl.tasks.SpikedTensor(order=order).noise_variances(float(x @ x))
    expected = isotropic * np.eye(n) + radial * np.outer(x, x)
    products = noise[:, :, None] * noise[:, None, :]
    error = products.std(0) / draws**0.5
    assert np.max(np.abs(products.mean(0) - expected) / error) < 4.5
    assert np.max(np.abs(products.mean(0) - isotropic * np.eye(n)) / error) > 8
