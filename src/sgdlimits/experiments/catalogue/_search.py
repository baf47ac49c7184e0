"""What the experiments on sample complexity share: a task for each exponent, and when it passes."""

from typing import Any

import numpy as np
from scipy.linalg import solve_banded
from scipy.stats import norm

import sgdlimits as sl
from sgdlimits.experiments import picture

SCALE = 0.1  # of the student of exponent 3: a weak one has far less noise for its signal
STEPS = {1: 0.5, 2: 0.2, 3: 4.0}  # c, in units of 1/√N for exponent 3
NAMES = {1: "mixture of weight 0.8", 2: "online PCA, λ = 2", 3: "link h₃"}
LAWS = {1: "N", 2: "N log N", 3: "N²"}
COLOURS = dict(zip(NAMES, picture.COLOURS, strict=False))


def third(z: Any) -> Any:
    """The orthonormal Hermite polynomial h₃."""
    return (z**3 - 3 * z) / np.sqrt(6)


def weak_third(z: Any) -> Any:
    """A student that learns h₃."""
    return SCALE * third(z)


def task_of(exponent: int) -> Any:
    """One of the three problems of J24 section 11.2 with this information exponent."""
    if exponent == 1:
        return sl.tasks.MixtureLikelihood(0.8)
    if exponent == 2:
        return sl.tasks.OnlinePCA(2.0)
    return sl.tasks.SingleIndex(third, student=weak_third)


def loss_of(exponent: int) -> Any:
    """Its population loss."""
    theory = sl.theory.hermite
    if exponent == 1:
        return theory.mixture_likelihood(0.8)
    if exponent == 2:
        return theory.online_pca(2.0)
    return theory.teacher_student(third, weak_third)


def step_of(exponent: int, dim: int) -> float:
    """δ_N: constant for k ≤ 2, of the order 1/√α_c, the largest of the theorems, for k = 3."""
    return STEPS[exponent] / (np.sqrt(dim) if exponent == 3 else 1.0)


def overlap(state: dict[str, Any]) -> Any:
    """m, of a state of the chain."""
    return state["M"][0, 0]


def size(state: dict[str, Any]) -> Any:
    """|m|, where the sign does not matter."""
    return abs(state["M"][0, 0])


def upper_starts(task: Any, dim: int, seed: int, runs: int) -> dict[str, np.ndarray]:
    """Uniform on the upper half of the sphere."""
    states = task.random_state(dim, seed=seed, runs=runs)
    return states | {"M": np.abs(states["M"])}


def moments_of(task: Any, step: float, overlaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drift of the overlap, with its corrector, and the diffusion of √dim times it."""
    limit = sl.effective_dynamics(task, step=step)
    states = [{"M": [[m]], "R": [[1 - m**2]]} for m in overlaps]
    drift = [float(limit.drift(state)["M"][0, 0]) for state in states]
    return np.array(drift), np.array([limit.diffusion(state)[0, 0] for state in states])


def predicted_median(task: Any, dim: int, step: float, level: float) -> float:
    """The time by which half of the runs from the upper half sphere should be above a level."""
    return Passage(task, dim, step, level).median()


class Passage:
    """First passage through a level of dm = drift dt + √(diffusion/dim) dB from the upper half.

    Reflected far below the equator, or at it if ``even``, for |m| where the sign does not matter.
    Its generator on a grid that is fine near the equator, advanced by Crank and Nicolson over
    growing times.
    """

    def __init__(self, task: Any, dim: int, step: float, level: float, even: bool = False):
        width = 1 / np.sqrt(dim)
        knots = np.linspace(-level, level, 13)  # of polynomials of degree 9, near enough between
        drift, diffusion = moments_of(task, step, knots)
        low = 0.0 if even else -min(level, 40 * width)
        grid = np.unique(np.concatenate([_sinh(low, width), _sinh(level, width)]))
        b = np.polynomial.Polynomial.fit(knots, drift, 9)(grid)
        a = np.maximum(np.polynomial.Polynomial.fit(knots, diffusion, 9)(grid), 1e-12) / dim
        self._rates = _rates(grid, b, a)
        edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
        law = np.where(grid < 0, 0.0, np.diff(norm.cdf(edges / width)))
        law[-1] = 0.0
        self._law = law / law.sum()

    def median(self) -> float:
        """The time by which half are through."""
        law, time, before = self._law, 1e-4, 1.0
        while True:
            law = _advanced(law, *self._rates, 0.01 * time)
            left = float(law[:-1].sum())
            if left <= 0.5:
                return float(time * (1 + 0.01 * (before - 0.5) / (before - left)))
            before, time = left, 1.01 * time

    def probability(self, time: float) -> float:
        """The part that is through by a time."""
        law, now = self._law, 1e-4
        while now < time:
            ahead = min(0.01 * now, time - now)
            law, now = _advanced(law, *self._rates, ahead), now + ahead
        return float(np.clip(law[-1], 0.0, 1.0))  # rounding may take it above 1


def _sinh(end: float, width: float, count: int = 300) -> np.ndarray:
    """From 0 to an end, with steps that grow from a thirtieth of the width."""
    ratio = np.arcsinh(abs(end) / width)
    return np.sign(end) * width * np.sinh(np.linspace(0, ratio, count))


def _rates(grid: np.ndarray, b: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of jumps down and up, absorbed at the last point; upwind where the drift is too large."""
    left, right = np.diff(grid, prepend=2 * grid[0] - grid[1]), np.diff(grid, append=np.inf)
    right[-1] = left[-1]
    down = (a - b * right) / (left * (left + right))
    up = (a + b * left) / (right * (left + right))
    wrong = (down < 0) | (up < 0)
    down = np.where(wrong, a / (left * (left + right)) + np.maximum(-b, 0) / left, down)
    up = np.where(wrong, a / (right * (left + right)) + np.maximum(b, 0) / right, up)
    down[0] = down[-1] = up[-1] = 0.0
    return down, up


def _advanced(law: np.ndarray, down: np.ndarray, up: np.ndarray, time: float) -> np.ndarray:
    """The law after some time: (1 − tQᵀ/2)⁻¹ (1 + tQᵀ/2)."""
    half = time / 2
    moved = law - half * (down + up) * law
    moved[1:] += half * (up * law)[:-1]
    moved[:-1] += half * (down * law)[1:]
    bands = np.stack([-half * down, 1 + half * (down + up), -half * up])
    return np.asarray(solve_banded((1, 1), bands, moved))
