"""Which exit time to trust: SGD of phase retrieval from random starts, and from m = 0."""

import math

import numpy as np

import sgdlimits as sl

DIM, THRESHOLD, STEP, NOISE, RUNS = 300, 0.1, 0.05, 0.5, 800
RETRIEVAL = sl.theory.phase_retrieval


def exit_times(overlap: float | None) -> tuple[float, float]:
    """Mean exit time of SGD and its error; the excess risk of one neuron is 2(1 − m²)."""
    task = sl.tasks.PhaseRetrieval(noise=NOISE)
    init = task.random_state(DIM, seed=1, runs=RUNS, overlap=overlap)
    runs = sl.simulate(task, DIM, runs=RUNS, time=4.0, step=STEP, seed=1, init=init, points=401)
    left = 1 - runs.M.values[:, :, 0, 0] ** 2
    below = left <= (1 - THRESHOLD) * left[:, :1]
    assert np.all(below.any(axis=1))
    times = runs.time.values[below.argmax(axis=1)] - 0.005  # between two recorded times
    return float(times.mean()), float(times.std() / RUNS**0.5)


def test_exit_times_of_sgd() -> None:
    rate = RETRIEVAL.growth_rate(1, STEP, NOISE)
    annealed = RETRIEVAL.exit_time_annealed(DIM, THRESHOLD, 1, STEP, NOISE)
    quenched = RETRIEVAL.exit_time_quenched(DIM, THRESHOLD, STEP, NOISE)
    diffusive = RETRIEVAL.exit_time_diffusive(DIM, THRESHOLD, STEP, NOISE)
    noise = math.log(1 + STEP * (48 + 4 * NOISE) / (2 * rate)) / (2 * rate)
    mean, error = exit_times(None)
    assert annealed + 5 * error < mean < quenched - error
    # growth slows down towards the threshold, which is of order T of 1/rate
    assert abs(mean - (quenched - noise)) < 4 * error + THRESHOLD / 2 / rate
    mean, error = exit_times(0.0)
    assert abs(mean - diffusive) < 4 * error + THRESHOLD / 2 / rate
    assert mean > quenched + 5 * error  # control: random starts are ahead
