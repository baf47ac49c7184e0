"""What the experiments on XOR share: its task, where its limit rests, and what end points are."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.experiments.base import setting
from sgdlimits.experiments.catalogue._noise_levels import NO_NOISE, NoiseLevels
from sgdlimits.experiments.shared import Sgd

# readout and overlaps of neurons that are aligned with +μ, −μ, +ν and −ν
ROLES = np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]])
SMALL = 10**6  # dimension of random starts of the limit: their overlaps are signs, 0+ or 0−


class Xor(Sgd):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a network of ReLU neurons."""

    ridge: float = setting(0.1, "ridge α, below 1/8", above=0, most=0.11)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", above=0)

    def task(self, precision: float = NO_NOISE, width: int = 4) -> sl.tasks.XorMixture:
        """At one noise level."""
        return sl.tasks.XorMixture(width=width, precision=precision, ridge=self.ridge)

    @property
    def radius_squared(self) -> float:
        """C: Σ v² over each set of aligned neurons, at a rest point without noise."""
        return sl.theory.xor.ring_radius_squared(self.ridge)

    def small_starts(self, seed: int, width: int = 4) -> State:
        """Random starts of the limit without noise, as many as runs."""
        return self.task(width=width).random_state(SMALL, seed, runs=self.runs)

    def at_rest(self, starts: State, width: int = 4) -> xr.Dataset:
        """Where the limit without noise comes to rest; its slowest rate is 1/8 − ridge."""
        limit = sl.effective_dynamics(self.task(width=width))
        enough = round(37.5 / (1 / 8 - self.ridge))
        return limit.solve(starts, time=enough, points=2).isel(time=-1)


class NoisyXor(Xor, NoiseLevels):
    """XOR at several noise levels, and without noise."""


def aligned(state: State) -> np.ndarray:
    """Which neurons are aligned with +μ, −μ (v > 0), +ν and −ν (v < 0), along a last axis of 4."""
    v, mu, nu = state["v"], state["M"][..., 0], state["M"][..., 1]
    up, down = v > 0, v < 0
    return np.stack([up & (mu > 0), up & (mu < 0), down & (nu > 0), down & (nu < 0)], axis=-1)


def optimal_signs(state: State) -> np.ndarray:
    """Whether some neuron is aligned with each of the four means, as in an optimal network."""
    return np.asarray(aligned(state).any(axis=-2).all(axis=-1))


def classifies(state: State, margin: float = 0.0) -> np.ndarray:
    """Whether v · relu(Wx) is above ``margin`` at x = ±μ, and below −``margin`` at x = ±ν."""
    v, m = state["v"][..., None], state["M"]
    outputs = np.array([np.sum(v * np.maximum(sign * m, 0), axis=-2) for sign in (1, -1)])
    return np.min(outputs * [1, -1], axis=(0, -1)) > margin
