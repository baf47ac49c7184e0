"""However SGD moves, the exact chain approaches the limit of that move like 1/dim."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._types import StateLike
from sgdlimits.tasks import Task

DIMS = np.array([50, 150])
RUNS = 10_240
TIME = 0.3


class Move(NamedTuple):
    """How SGD moves, and words for another move, which must not agree."""

    task: Task
    state: StateLike
    words: dict[str, Any]
    wrong: dict[str, Any]

    def __repr__(self) -> str:
        told = [f"{name}" for name in self.words if name != "step" or len(self.words) == 1]
        return "-".join([type(self.task).__name__, *told])


PCA, AT = sl.tasks.SpikedTensor(order=2, snr=2.0), {"m": 0.5, "r2": 0.6}
SPHERE, ON = sl.tasks.PhaseRetrieval(noise=0.3), {"M": [[0.5]], "R": [[0.75]]}
TRAINED = sl.tasks.PhaseRetrieval(noise=0.1, spherical=False, readout="trained")
NEAR = {"v": [0.8], "M": [[0.5]], "R": [[0.4]]}
SOFTMAX = sl.tasks.GaussianMixture(classes=2, precision=2.0, ridge=0.05)
MEANS = {"M": [[0.5, 0.0], [-0.2, 0.3]], "R": [[0.6, 0.1], [0.1, 0.4]]}


def decaying(time: Any) -> Any:
    return 0.2 / (1 + 10 * jnp.asarray(time))


MOVES = [
    Move(PCA, AT, {"step": 1.0, "batch": 2}, {"batch": 1}),
    Move(SPHERE, ON, {"step": 0.2, "batch": 2}, {"batch": 1}),
    Move(PCA, AT, {"step": 0.3, "momentum": 0.5}, {"momentum": 0.0}),
    Move(SPHERE, ON, {"step": 0.08, "momentum": 0.4, "batch": 2}, {"batch": 1}),
    Move(SPHERE, ON, {"step": [(0.0, 0.1), (0.1, 0.03)]}, {"step": 0.1}),
    Move(PCA, AT, {"step": decaying}, {"step": 0.2}),
    Move(TRAINED, NEAR, {"step": 0.05, "readout_step": 0.3}, {"readout_step": 1.0}),
    Move(PCA, AT, {"step": 0.5, "normalised": True, "batch": 2}, {"step": 1e-6}),
    Move(SOFTMAX, MEANS, {"step": 0.5, "normalised": True}, {"step": 1e-6}),
    Move(SPHERE, ON, {"step": 0.5, "momentum": ("slow", 3.0)}, {"step": 1e-6}),
    Move(
        TRAINED,
        NEAR,
        {"step": 0.5, "momentum": ("slow", 3.0), "batch": 2, "readout_step": 0.3},
        {"batch": 1},
    ),
]


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_mean_approaches_the_limit_of_the_move(move: Move) -> None:
    limit = sl.effective_dynamics(move.task, **move.words)
    wrong = sl.effective_dynamics(move.task, **(move.words | move.wrong))
    targets = [one.solve(move.state, TIME, points=2) for one in (limit, wrong)]
    gaps: list[list[float]] = []
    errors: list[float] = []
    for dim in DIMS:
        runs = sl.simulate(
            move.task, int(dim), runs=RUNS, time=TIME, init=move.state, points=2, **move.words
        )
        ends = np.stack([sl.results.select(runs, name).values[:, -1] for name in limit.coordinates])
        errors.append(float(np.linalg.norm(ends.std(1)) / RUNS**0.5))
        # a schedule of steps of δ ends a little early or late
        late = float(runs.time[-1]) - TIME
        gaps.append([])
        for target, one in zip(targets, (limit, wrong), strict=True):
            state = sl.results.state(target, time=TIME)
            end = one.ravel(state) + late * one.ravel(one.drift(state, TIME))
            gaps[-1].append(float(np.linalg.norm(ends.mean(1) - end)))
    right, other = np.transpose(gaps)
    assert right[-1] < 0.3 * other[-1]
    assert other[-1] > 10 * errors[-1]
    # what is left falls like 1/dim, within the errors of the means
    shrunk = right * DIMS
    slack = 4 * np.array(errors) * DIMS
    assert np.all(np.abs(shrunk - shrunk[0]) < 0.3 * shrunk[0] + slack + slack[0])


@pytest.mark.parametrize("move", [MOVES[k] for k in (3, 4, 7, 9)], ids=repr)
def test_runs_spread_as_the_move_does(move: Move) -> None:
    """Standard deviations at the end, up to errors of 4096 runs and effects of order 1/dim."""
    dim, runs = 1000, 4096
    limit = sl.effective_dynamics(move.task, **move.words)
    solution = limit.solve(move.state, TIME, points=7)
    spread = limit.fluctuations(solution)
    chain = sl.simulate(
        move.task, dim, runs=runs, time=TIME, init=move.state, points=2, **move.words
    )
    for name in limit.coordinates:
        found = dim**0.5 * float(sl.results.select(chain, name).values[:, -1].std())
        predicted = float(sl.results.select(spread, name)[-1])
        assert abs(found / predicted - 1) < 4 / (2 * runs) ** 0.5 + 0.04, name
