"""The mean field against the ODE of all overlaps and against SGD, as width and dimension grow."""

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.theory.mean_field import MeanField

GRAM = np.array([[1.0, 0.5], [0.5, 2.0]])
TIME = 2.0  # t/p


def task(width: int, activation: str = "square") -> sl.tasks.TeacherStudent:
    return sl.tasks.TeacherStudent(
        activation=activation, student_width=width, teacher_gram=GRAM, scale="mean"
    )


def gram_of_weights(path: xr.Dataset) -> np.ndarray:
    """Q = MP⁻¹Mᵀ + R at every time."""
    M = path.M.values
    return M @ np.linalg.inv(GRAM) @ np.swapaxes(M, -1, -2) + path.R.values


def diagonal(path: xr.Dataset) -> np.ndarray:
    return path.q.values[..., None] * np.eye(path.sizes["particle"])


@pytest.fixture(scope="module")
def pairs() -> dict[int, tuple[xr.Dataset, xr.Dataset]]:
    """The ODE without corrector and the mean field from the same start, by width.

    Each particle is there several times, so that the mean field is the same for all widths.
    """
    flow = MeanField(activation="square", teacher_gram=GRAM)
    base, found = flow.random_particles(4, dim=8, seed=3), {}
    for width in (8, 16, 32):
        start = {name: np.repeat(x, width // 4, axis=0) for name, x in base.items()}
        init = {"M": start["M"], "R": np.diag(start["q"])}
        limit = sl.effective_dynamics(task(width), step=1e-9)
        full = limit.solve(init, times=np.linspace(0, TIME * width, 9))
        found[width] = full, flow.solve(start, time=TIME, points=9)
    return found


def exponents(gaps: dict[int, float]) -> np.ndarray:
    """From each width to the next, twice as large."""
    return np.diff(np.log2(list(gaps.values())))


def test_distances_to_the_ode_fall_as_one_over_the_width(
    pairs: dict[int, tuple[xr.Dataset, xr.Dataset]],
) -> None:
    """Better than the theorem's p^(−½), from starts with diagonal R."""
    overlaps, grams = {}, {}
    for width, (full, wide) in pairs.items():
        M = wide.M.values
        closed = M @ np.linalg.inv(GRAM) @ np.swapaxes(M, -1, -2) + diagonal(wide)
        overlaps[width] = np.abs(full.M.values - M).max()
        grams[width] = np.abs(gram_of_weights(full) - closed).max()
    for gaps in (overlaps, grams):
        first, second = exponents(gaps)
        assert -1.1 < second < -0.8
        assert abs(second + 1) < abs(first + 1)


@pytest.mark.parametrize("printed", ["Q = MP⁻¹Mᵀ − diag Q⊥", "Q = MPMᵀ + diag Q⊥"])
def test_the_printed_formulas_stay_away(
    pairs: dict[int, tuple[xr.Dataset, xr.Dataset]], printed: str
) -> None:
    gaps = {}
    for width, (full, wide) in pairs.items():
        M, sign, middle = wide.M.values, 1.0, np.linalg.inv(GRAM)
        if "MPM" in printed:
            middle = GRAM
        else:
            sign = -1.0
        closed = M @ middle @ np.swapaxes(M, -1, -2) + sign * diagonal(wide)
        gaps[width] = np.abs(gram_of_weights(full) - closed).max()
    assert min(gaps.values()) > 0.5
    assert np.all(exponents(gaps) > -0.2)


def test_sgd_from_random_weights_comes_near() -> None:
    """Gaps of order 1/p, d^(−½) and √(step/(dp)): a fourth for 4p and 16d."""
    flow, gaps = MeanField(activation="erf", teacher_gram=GRAM), []
    base = flow.random_particles(4, dim=8, seed=4)
    for width, dim in ((4, 50), (16, 800)):
        start = {name: np.repeat(x, width // 4, axis=0) for name, x in base.items()}
        rows = np.random.default_rng(0).normal(size=(width, dim)) / dim**0.5
        R = np.sqrt(np.outer(start["q"], start["q"])) * (rows @ rows.T)
        times = np.array([0.0, TIME])
        init = {"M": start["M"], "R": R}
        sgd = sl.simulate(task(width, "erf"), dim, init=init, runs=8, step=1.0, times=width * times)
        wide = flow.solve({"M": start["M"], "q": np.diag(R)}, times=times)
        # the mean over runs and neurons: the largest of more neurons is larger
        gaps.append(float(np.abs(sgd.M - wide.M.values).isel(time=-1).mean()))
    assert gaps[1] < 0.4 * gaps[0]
