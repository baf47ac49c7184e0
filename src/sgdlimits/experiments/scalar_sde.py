"""Laws of scalar SDEs: of linear ones, of the growing direction of a saddle, and on a grid."""

from typing import Any, NamedTuple

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


def linear_variance(time: Any, rate: float, start: float = 0.0, noise: float = 1.0) -> np.ndarray:
    """At some time or times, the variance of dx = rate · x dt + √noise dB.

        V(t) = e^{2 rate t} V(0) + noise (e^{2 rate t} − 1) / (2 rate)

    Args:
        time: from the start.
        rate: negative for a stable process, zero for Brownian motion.
        start: V(0).
        noise: the diffusion coefficient.

    >>> float(linear_variance(3.0, 0.0)), round(float(linear_variance(100.0, -2.0, noise=8.0)), 9)
    (3.0, 2.0)
    """
    times = np.asarray(time, dtype=float)
    grown = times if rate == 0 else np.expm1(2 * rate * times) / (2 * rate)
    return np.asarray(start * np.exp(2 * rate * times) + noise * grown)


def deciding_noise(limit: Any, saddle: Any) -> float:
    """Standard deviation of the noise that decides on which side of a saddle a run ends.

    Along the left eigenvector l of the growing rate a, x = √dim·(u − u†) becomes e^{at}·(l·x + ξ),
    where ξ is Gaussian with variance l·Σl/2a. It is in units of √dim times the first statistic,
    whose coefficient in l is 1.

    Args:
        limit: made by ``effective_dynamics``.
        saddle: a rest point u† with one growing direction.

    At the equator of matrix PCA √n·m is a process of rate 4(λ − 1) with noise 8:

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=1.5))
    >>> round(deciding_noise(limit, {"m": 0.0, "r2": 1.0}) ** 2, 9)
    2.0
    """
    rates, vectors = np.linalg.eig(limit.jacobian(saddle).T)
    left = vectors[:, np.argmax(rates)] / vectors[0, np.argmax(rates)]
    return float(np.sqrt(left @ limit.diffusion(saddle) @ left / (2 * np.max(rates))))
