"""Synthetic results with known mean and spread."""

import numpy as np
import pytest
import xarray as xr

from sgdlimits.results import build

RUNS, WIDTH = 12, 3
TIME = np.linspace(0.0, 4.0, 41)
DIMS = {"v": ("neuron",), "M": ("neuron", "anchor"), "R": ("neuron", "neuron_")}
SIZES = {"neuron": WIDTH, "neuron_": WIDTH, "anchor": 2}
ATTRS = {
    "task": "XorMixture",
    "parameters": {"width": 3, "precision": 10.0, "ridge": 0.1},
    "dim": 2000,
    "step": 1.0,
}


def make(kind: str, runs: int | None, seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    outer = {"time": TIME} if runs is None else {"run": np.arange(runs), "time": TIME}
    lead = tuple(len(values) for values in outer.values())
    arrays = {
        name: rng.normal(size=lead + tuple(SIZES[axis] for axis in axes))
        for name, axes in DIMS.items()
    }
    coords = {
        **outer,
        "neuron": np.arange(WIDTH),
        "neuron_": np.arange(WIDTH),
        "anchor": ["mu", "nu"],
    }
    dims = {name: (*outer, *axes) for name, axes in DIMS.items()}
    return build(arrays, dims, coords, {"kind": kind, **ATTRS}, symmetric=["R"])


@pytest.fixture
def runs() -> xr.Dataset:
    """Twelve runs; runs 2 and 7 diverged."""
    dataset = make("simulation", RUNS, seed=0)
    diverged = np.isin(np.arange(RUNS), (2, 7))
    dataset["v"].values[diverged, 20:] = np.nan
    dataset["M"].values[diverged, 20:] = np.inf
    return dataset.assign(
        diverged=("run", diverged), diverged_at=("run", np.where(diverged, 2.0, np.nan))
    )


@pytest.fixture
def limit() -> xr.Dataset:
    return make("limit", None, seed=1)


@pytest.fixture
def paths() -> xr.Dataset:
    return make("paths", 5, seed=2)


@pytest.fixture
def pca() -> xr.Dataset:
    rng = np.random.default_rng(3)
    arrays = {"m": rng.normal(size=(4, 41)), "r2": rng.normal(size=(4, 41))}
    dims = {"r2": ("run", "time"), "m": ("run", "time")}
    return build(arrays, dims, {"run": np.arange(4), "time": TIME}, {"kind": "simulation"})
