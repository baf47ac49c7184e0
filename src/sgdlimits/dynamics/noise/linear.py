"""Linear SDEs: Gaussian steps, exact in law, with constant coefficients or along a path."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import Matrix, Number, Numbers, WholeNumber

# eigenvalues this close to the imaginary axis, relative to the largest, do not decay
NEUTRAL = 1e-9


class GaussianStep(NamedTuple):
    """How a linear SDE moves over some time: x becomes flow·x plus noise of this covariance."""

    flow: np.ndarray
    noise: np.ndarray


def gaussian_step(
    drift_matrix: np.ndarray, diffusion_matrix: np.ndarray, time: float
) -> GaussianStep:
    """e^{At} and ∫₀ᵗ e^{As} Σ e^{Aᵀs} ds: a block exponential (Van Loan) and doublings."""
    A, S = drift_matrix, diffusion_matrix
    size = len(A)
    doublings = max(0, math.ceil(math.log2(max(float(np.linalg.norm(A, 2)) * time, 1e-300))))
    short = time / 2**doublings  # longer times would overflow in the block of −A
    block = scipy.linalg.expm(np.block([[-A, S], [np.zeros_like(A), A.T]]) * short)
    flow = block[size:, size:].T
    noise = flow @ block[:size, size:]
    for _ in range(doublings):
        noise = noise + flow @ noise @ flow.T
        flow = flow @ flow
    return GaussianStep(flow, (noise + noise.T) / 2)


def steps_along(
    times: np.ndarray, drift_matrices: np.ndarray, diffusion_matrices: np.ndarray
) -> list[GaussianStep]:
    """Steps of dx = A(t) x dt + √Σ(t) dB from each time to the next, given A and Σ at the times.

    Between two times A and Σ are their means at both ends: an error of second order in the spacing.
    """
    A = (drift_matrices[1:] + drift_matrices[:-1]) / 2
    S = (diffusion_matrices[1:] + diffusion_matrices[:-1]) / 2
    return [gaussian_step(*step) for step in zip(A, S, np.diff(times).tolist(), strict=True)]


def covariances(steps: Sequence[GaussianStep], initial: np.ndarray) -> np.ndarray:
    """The covariance before the first step and after each of them, along a leading axis."""
    values = [initial]
    for flow, noise in steps:
        values.append(flow @ values[-1] @ flow.T + noise)
    return np.stack(values)


def gaussian_paths(
    coordinates: Sequence[str],
    steps: Sequence[GaussianStep],
    times: np.ndarray,
    runs: WholeNumber,
    seed: WholeNumber,
    init: Any,
) -> xr.DataArray:
    """Paths through the steps one after the other, over ``run``, ``time`` and ``statistic``."""
    runs, vectors = start_of_paths(coordinates, runs, init)
    generator = np.random.default_rng(_checks.integer("seed", seed, least=0))
    paths = [vectors]
    for flow, noise in steps:
        values, directions = np.linalg.eigh(noise)
        spread = directions * np.sqrt(np.maximum(values, 0.0))
        vectors = vectors @ flow.T + generator.normal(size=vectors.shape) @ spread.T
        paths.append(vectors)
    return xr.DataArray(
        np.stack(paths, axis=1),
        dims=("run", "time", "statistic"),
        coords={"run": np.arange(runs), "time": times, "statistic": list(coordinates)},
    )


def start_of_paths(
    coordinates: Sequence[str], runs: WholeNumber, init: Any
) -> tuple[int, np.ndarray]:
    """The number of runs, and where each starts: one vector for all, or one for each; or zero."""
    size = len(coordinates)
    runs = _checks.integer("runs", runs, least=1)
    start = np.zeros(size) if init is None else _checks.array("init", init, None)
    shape = (size,) if start.ndim <= 1 else (runs, size)
    return runs, np.broadcast_to(_checks.array("init", start, shape), (runs, size))


class StationaryCovariance(NamedTuple):
    """The stationary covariance, and the directions that have none.

    ``covariance`` is NaN in the rows and columns of statistics that take part in a direction which
    noise excites and the drift does not contract; ``unbounded`` lists a basis of these directions,
    each as a dict from statistic to component.
    """

    covariance: np.ndarray
    unbounded: list[dict[str, float]]


class LinearSDE:
    r"""dx = A x dt + √Σ dB for x = √dim·(u − u*): Ornstein–Uhlenbeck, possibly degenerate.

    A is the Jacobian of the drift and Σ the diffusion matrix at u* (BGJ22, (2.9)).

    >>> sde = LinearSDE(["m"], [[-2.0]], [[8.0]])
    >>> sde.stationary_covariance().covariance
    array([[2.]])
    """

    def __init__(self, coordinates: Sequence[str], drift_matrix: Matrix, diffusion_matrix: Matrix):
        size = len(coordinates)
        self.coordinates = list(coordinates)
        self.drift_matrix = _checks.array("drift_matrix", drift_matrix, (size, size))
        self.diffusion_matrix = _checks.array("diffusion_matrix", diffusion_matrix, (size, size))

    @property
    def rank(self) -> int:
        """Number of independent directions of noise."""
        scale = max(np.trace(self.diffusion_matrix), 1e-300)
        return int(np.linalg.matrix_rank(self.diffusion_matrix, tol=1e-9 * scale, hermitian=True))

    def stationary_covariance(self) -> StationaryCovariance:
        """Solve A C + C Aᵀ + Σ = 0 on the directions that the drift contracts."""
        A, S = self.drift_matrix, self.diffusion_matrix
        stable = contracting_projector(A)
        basis = scipy.linalg.orth(stable, rcond=1e-9)
        inside = basis.T @ A @ basis
        noise = basis.T @ stable @ S @ stable.T @ basis
        covariance = basis @ scipy.linalg.solve_continuous_lyapunov(inside, -noise) @ basis.T
        excited = _reachable(A, (np.eye(len(A)) - stable) @ S)
        touched = np.linalg.norm(excited, axis=1) > 1e-7
        covariance[touched, :] = np.nan
        covariance[:, touched] = np.nan
        directions = [
            {
                name: float(value)
                for name, value in zip(self.coordinates, column, strict=True)
                if abs(value) > 1e-7
            }
            for column in excited.T
        ]
        return StationaryCovariance(covariance, directions)

    def covariance(self, time: Number, init: Matrix | None = None) -> np.ndarray:
        """Covariance at a time, from ``init`` (zero by default): exact, stable or not."""
        size = len(self.coordinates)
        start = np.zeros((size, size)) if init is None else init
        start = _checks.array("init", start, (size, size))
        step = self._step(_checks.nonnegative("time", time))
        return covariances([step], start)[-1]

    def sample(
        self,
        time: Number,
        runs: WholeNumber = 64,
        *,
        seed: WholeNumber = 0,
        init: Numbers | Matrix | None = None,
        points: WholeNumber = 201,
    ) -> xr.DataArray:
        """Paths by exact Gaussian transitions, over ``run``, ``time`` and ``statistic``.

        Args:
            time: where to stop.
            runs: number of paths.
            seed: of the noise.
            init: a vector, or one for each run; zero by default.
            points: number of equally spaced times, 0 and ``time`` included.
        """
        time = _checks.positive("time", time)
        points = _checks.integer("points", points, least=2)
        steps = [self._step(time / (points - 1))] * (points - 1)
        times = np.linspace(0, time, points)
        return gaussian_paths(self.coordinates, steps, times, runs, seed, init)

    def _step(self, time: float) -> GaussianStep:
        return gaussian_step(self.drift_matrix, self.diffusion_matrix, time)

    def __repr__(self) -> str:
        return f"LinearSDE({len(self.coordinates)} statistics, noise of rank {self.rank})"


def contracting_projector(A: np.ndarray) -> np.ndarray:
    """The projector onto the directions that e^{At} contracts, along those that it does not."""
    scale = NEUTRAL * max(np.max(np.abs(np.linalg.eigvals(A))), 1e-300)
    T, Q, count = scipy.linalg.schur(A, output="complex", sort=lambda x: x.real < -scale)
    # T = [[T₁, T₁₂], [0, T₂]]: a projector [[I, Y], [0, 0]] commutes with T if T₁Y − YT₂ = T₁₂
    Y = scipy.linalg.solve_sylvester(T[:count, :count], -T[count:, count:], T[:count, count:])
    upper = np.concatenate([np.eye(count), Y], axis=1)
    return (Q[:, :count] @ upper @ Q.conj().T).real


def _reachable(A: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the smallest A-invariant subspace that contains the noise."""
    scale = max(np.max(np.abs(noise)), 1e-300)
    if scale < 1e-9:
        return np.zeros((len(A), 0))
    powers, block = [], noise / scale
    norm = max(np.linalg.norm(A, 2), 1e-300)
    for _ in range(len(A)):
        powers.append(block)
        block = A @ block / norm
    U, s, _ = np.linalg.svd(np.concatenate(powers, axis=1))
    return U[:, : int(np.sum(s > 1e-7))]
