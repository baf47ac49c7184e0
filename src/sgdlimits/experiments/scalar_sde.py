"""The law of a scalar SDE on a grid, for limits that no closed form covers."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import expm


class ScalarSde(NamedTuple):
    """dx = drift dt + noise dB on an even grid, absorbed at its last point.

    The generator is taken by central differences; a grid that is fine against noise²/|drift| and
    that starts where the law does not go is assumed.

    Brownian motion from 0 has reached 1 by the time t with probability 2(1 − Φ(1/√t)):

    >>> grid = np.linspace(-6, 1, 281)
    >>> brownian = ScalarSde(grid, np.zeros(281), np.ones(281))
    >>> [round(share, 3) for share in brownian.absorbed(1.0 * (grid == 0), np.array([0.0, 1.0]))]
    [0.0, 0.317]
    """

    grid: np.ndarray
    drift: np.ndarray
    noise: np.ndarray

    def transition(self, time: float) -> np.ndarray:
        """Probabilities to be at each point of the grid after some time, one row for each start."""
        width = self.grid[1] - self.grid[0]
        drift, noise = self.drift / (2 * width), self.noise**2 / (2 * width**2)
        rates = np.diag((noise + drift)[:-1], 1) + np.diag((noise - drift)[1:], -1)
        rates[-1] = 0.0
        return np.asarray(expm((rates - np.diag(rates.sum(axis=1))) * time))

    def absorbed(self, law: np.ndarray, times: np.ndarray) -> list[float]:
        """The share that has come to the end of the grid at each of even times, from some law."""
        step, shares = self.transition(times[1] - times[0]), []
        for _ in times:
            shares.append(float(law[-1]))
            law = law @ step
        return shares
