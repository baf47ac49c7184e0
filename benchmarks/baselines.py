"""SGD as one writes it in NumPy, one run at a time: what the chain is measured against."""

import time
from collections.abc import Callable

import numpy as np


def per_step(function: Callable[[int], None], steps: int, repeats: int) -> float:
    """Median over repeats of the seconds that one step takes."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(steps)
        seconds.append((time.perf_counter() - start) / steps)
    return float(np.median(seconds))


def xor_loop(dim: int, steps: int) -> None:
    """A two-layer ReLU network of width 4 on the XOR mixture, precision 10, ridge 0.1."""
    width, precision, ridge, delta = 4, 10.0, 0.1, 1 / dim
    rng = np.random.default_rng(0)
    W, v = rng.normal(size=(width, dim)) / dim**0.5, rng.normal(size=width)
    means = np.zeros((4, dim))
    means[[0, 1, 2, 3], [0, 0, 1, 1]] = [1, -1, 1, -1]
    labels = [1.0, 1.0, 0.0, 0.0]
    for _ in range(steps):
        c = rng.integers(4)
        x = means[c] + rng.normal(size=dim) / precision**0.5
        s = W @ x
        a = np.maximum(s, 0)
        e = 1 / (1 + np.exp(-(v @ a))) - labels[c]
        gradient_W = e * np.outer(v * (s > 0), x) + ridge * W
        gradient_v = e * a + ridge * v
        W = W - delta * gradient_W
        v = v - delta * gradient_v


def phase_retrieval_loop(dim: int, steps: int) -> None:
    """One squared neuron on the sphere, label noise 0.5, step 0.05."""
    delta = 0.05 / dim
    rng = np.random.default_rng(0)
    w = rng.normal(size=dim)
    w /= np.linalg.norm(w)
    for _ in range(steps):
        x = rng.normal(size=dim)
        y = x[0] ** 2 + 0.5**0.5 * rng.normal()
        s = w @ x
        w = w + delta * (y - s**2) * 2 * s * x
        w /= np.linalg.norm(w)
