"""The limit of a network against what one writes without this library: SciPy on Sobol nodes."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.integrate import solve_ivp
from scipy.stats import norm, qmc

import sgdlimits as sl
from benchmarks.row import Row

WIDTH, PRECISION, TIME, POINTS = 4, 10.0, 100.0, 21
WANTED = 1e-4  # error of the solution
COUNTS = [2**k for k in range(13, 18)]  # Sobol nodes for each component
MEANS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
LABELS = np.array([1.0, 1.0, 0.0, 0.0])
UPPER = np.triu_indices(WIDTH)

Drift = Callable[[float, np.ndarray], np.ndarray]


def numpy_drift(count: int, ridge: float) -> Drift:
    """Of a ReLU network on the XOR mixture, as a function of (v, M, R) in flat form."""
    nodes = [norm.ppf(qmc.Sobol(2 + WIDTH, seed=c).random(count)).T for c in range(4)]

    def drift(_: float, u: np.ndarray) -> np.ndarray:
        v, M, R = u[:WIDTH], u[WIDTH : 3 * WIDTH].reshape(WIDTH, 2), np.zeros((WIDTH, WIDTH))
        R[UPPER] = u[3 * WIDTH :]
        R = R + R.T - np.diag(np.diag(R))
        values, vectors = np.linalg.eigh(R)
        root = vectors * np.sqrt(np.maximum(values, 0) / PRECISION)
        dv, dM, dR = -ridge * v, -ridge * M, -2 * ridge * R
        for mean, label, z in zip(MEANS, LABELS, nodes, strict=True):
            a, across = mean[:, None] + z[:2] / PRECISION**0.5, root @ z[2:]
            s = M @ a + across
            active = np.maximum(s, 0)
            e = (1 / (1 + np.exp(-(v @ active))) - label) / (4 * count)
            g = e * v[:, None] * (s > 0)
            dv = dv - active @ e
            dM = dM - g @ a.T
            dR = dR - g @ across.T - across @ g.T + g @ (g.T * (4 * count)) / PRECISION
        return np.concatenate([dv, dM.ravel(), dR[UPPER]])

    return drift


def against_solve_ivp() -> Iterator[Row]:
    """As many Sobol nodes as the error needs, or the most that are tried if none is enough."""
    task = sl.tasks.XorMixture(width=WIDTH, precision=PRECISION)
    start = task.random_state(dim=1000, seed=1)
    times = np.linspace(0.0, TIME, POINTS)

    def solved(rtol: float) -> tuple[np.ndarray, float]:
        limit = sl.effective_dynamics(task, rtol=rtol)
        limit.solve(start, times=times)  # compile
        begun = time.perf_counter()
        path = limit.solve(start, times=times)
        spent = time.perf_counter() - begun
        states = [{name: path[name].values[k] for name in "vMR"} for k in range(POINTS)]
        return np.stack([limit.ravel(state) for state in states]), spent

    true, _ = solved(1e-6)
    ours, seconds = solved(WANTED)
    error = np.max(np.abs(ours - true))
    flat = sl.effective_dynamics(task).ravel(start)
    for count in COUNTS:
        drift = numpy_drift(count, task.ridge)
        begun = time.perf_counter()
        plain = solve_ivp(drift, (0, TIME), flat, t_eval=times, rtol=WANTED, atol=1e-2 * WANTED)
        theirs, gap = time.perf_counter() - begun, np.max(np.abs(plain.y.T - true))
        if gap <= WANTED:
            break
    what = f"XOR, width 4, to time 100: solve_ivp, {count} nodes ({gap:.0e}) / ours ({error:.0e})"
    yield Row(what, theirs / seconds, 20.0, True)
