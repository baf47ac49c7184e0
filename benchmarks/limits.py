"""The limits of networks against what one writes without this library: SciPy on Sobol nodes."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax
from scipy.stats import norm, qmc

import sgdlimits as sl
from benchmarks.row import Row

POINTS = 21
WANTED = 1e-4  # error of the solution
COUNTS = [2**k for k in range(12, 18)]  # Sobol nodes for each component
ASKED = (1e-3, 3e-4, 1e-4)  # of the limit
REPEATS = 3  # of every solve, of which the fastest counts

Drift = Callable[[float, np.ndarray], np.ndarray]


def gaussians(dim: int, count: int, seed: int) -> np.ndarray:
    """Sobol nodes of independent normals, (dim, count)."""
    return norm.ppf(qmc.Sobol(dim, seed=seed).random(count)).T


def symmetric(entries: np.ndarray, upper: tuple[np.ndarray, ...]) -> np.ndarray:
    """The matrix with these entries in its upper triangle."""
    size = int(max(upper[0])) + 1
    R = np.zeros((size, size))
    R[upper] = entries
    return R + R.T - np.diag(np.diag(R))


def root_of(R: np.ndarray) -> np.ndarray:
    """C with CCᵀ = R."""
    values, vectors = np.linalg.eigh(R)
    return vectors * np.sqrt(np.maximum(values, 0))


def xor_drift(task: sl.tasks.XorMixture, count: int) -> Drift:
    """Of a ReLU network on the XOR mixture, as a function of (v, M, R) in flat form."""
    K, upper = task.width, np.triu_indices(task.width)
    nodes = [gaussians(2 + K, count, c) for c in range(4)]
    means, labels, spread = np.asarray(task.means), np.asarray(task.labels), task.precision**-0.5

    def drift(_: float, u: np.ndarray) -> np.ndarray:
        v, M, R = u[:K], u[K : 3 * K].reshape(K, 2), symmetric(u[3 * K :], upper)
        root = spread * root_of(R)
        dv, dM, dR = -task.ridge * v, -task.ridge * M, -2 * task.ridge * R
        for mean, label, z in zip(means, labels, nodes, strict=True):
            a, across = mean[:, None] + spread * z[:2], root @ z[2:]
            s = M @ a + across
            active = np.maximum(s, 0)
            e = (1 / (1 + np.exp(-(v @ active))) - label) / (4 * count)
            g = e * v[:, None] * (s > 0)
            dv = dv - active @ e
            dM = dM - g @ a.T
            dR = dR - g @ across.T - across @ g.T + g @ (g.T * (4 * count)) * spread**2
        return np.concatenate([dv, dM.ravel(), dR[upper]])

    return drift


def softmax_drift(task: sl.tasks.GaussianMixture, count: int) -> Drift:
    """Of multinomial regression on classes with orthonormal means, in (M, R)."""
    k, upper, spread = task.classes, np.triu_indices(task.classes), task.precision**-0.5
    nodes = [gaussians(2 * k, count, c) for c in range(k)]

    def drift(_: float, u: np.ndarray) -> np.ndarray:
        M, R = u[: k * k].reshape(k, k), symmetric(u[k * k :], upper)
        root = spread * root_of(R)
        dM, dR = -task.ridge * M, -2 * task.ridge * R
        for c, z in enumerate(nodes):
            a, across = spread * z[:k], root @ z[k:]
            a[c] += 1
            g = softmax(M @ a + across, axis=0)
            g[c] -= 1
            g /= k * count
            dM = dM - g @ a.T
            dR = dR - g @ across.T - across @ g.T + g @ (g.T * (k * count)) * spread**2
        return np.concatenate([dM.ravel(), dR[upper]])

    return drift


def against_solve_ivp() -> Iterator[Row]:
    """Both by the fastest of the settings tried that reaches the error wanted, or the most exact.

    Settings are ``rtol`` here, and the number of Sobol nodes there.
    """
    xor = sl.tasks.XorMixture(precision=10.0)
    yield _row("XOR, width 4", xor, lambda count: xor_drift(xor, count), 100.0, 20.0)
    ten = sl.tasks.GaussianMixture(classes=10)
    yield _row("ten classes", ten, lambda count: softmax_drift(ten, count), 10.0, 10.0)


class _Way(NamedTuple):
    """A setting, how long a solution takes with it, and the largest error of any statistic."""

    setting: float
    seconds: float
    error: float


def _row(
    name: str, task: sl.tasks.Task, drift: Callable[[int], Drift], end: float, target: float
) -> Row:
    start = task.random_state(dim=1000, seed=1)
    times = np.linspace(0.0, end, POINTS)

    def here(rtol: float) -> Callable[[], np.ndarray]:
        limit = sl.effective_dynamics(task, rtol=rtol)

        def solve() -> np.ndarray:
            path = limit.solve(start, times=times)
            states = [{part: path[part].values[k] for part in start} for k in range(POINTS)]
            return np.stack([limit.ravel(state) for state in states])

        solve()  # compile
        return solve

    def there(count: int) -> Callable[[], np.ndarray]:
        plain, flat = drift(count), sl.effective_dynamics(task).ravel(start)

        def solve() -> np.ndarray:
            path = solve_ivp(plain, (0, end), flat, t_eval=times, rtol=WANTED, atol=1e-2 * WANTED)
            return path.y.T

        return solve

    true = here(1e-2 * WANTED)()
    ours = _fastest([_tried(rtol, here(rtol), true) for rtol in ASKED])
    for count in COUNTS:
        theirs = _tried(count, there(count), true)
        if theirs.error <= WANTED:
            break
    what = (
        f"{name}, to time {end:g}: solve_ivp, {theirs.setting:.0f} nodes ({theirs.error:.0e}) / "
        f"ours, rtol={ours.setting:g} ({ours.error:.0e})"
    )
    return Row(what, theirs.seconds / ours.seconds, target, True)


def _fastest(ways: list[_Way]) -> _Way:
    """Of those that are accurate enough; if none is, the most accurate one."""
    enough = [way for way in ways if way.error <= WANTED]
    if not enough:
        return min(ways, key=lambda way: way.error)
    return min(enough, key=lambda way: way.seconds)


def _tried(setting: float, solve: Callable[[], np.ndarray], true: np.ndarray) -> _Way:
    """The fastest of a few times."""
    spent = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        path = solve()
        spent.append(time.perf_counter() - begun)
    return _Way(setting, min(spent), float(np.max(np.abs(path - true))))
