"""A task learned with slow momentum: the velocity of the weights has statistics of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Number, State, StateLike
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.layout import Layout, Statistic, clipped
from sgdlimits.tasks.multi_index import MultiIndexFamily

_NEGATIVE = 1e-9  # a smallest eigenvalue above minus this, relative to the size, is rounding


class WithVelocity(Task):
    r"""The statistics of a multi-index task and of the velocity U of its weights.

    U ← (1 − κδ)U + δG, W ← W − δU. Beside v, M and R there are ``velocity_v``, the velocity of the
    readout, ``velocity_M`` = UAᵀ, ``velocity_R`` = U⊥U⊥ᵀ and ``cross_R`` = W⊥U⊥ᵀ. A state without
    them is one at rest: they are zero.

    Args:
        base: what is learned.
        friction: κ.
        readout_step: ε; the readout moves with ε times its velocity.
    """

    base: MultiIndexFamily
    friction: float
    readout_step: float

    def __init__(self, base: MultiIndexFamily, friction: Number, readout_step: Number = 1.0):
        self.base = base
        self.friction = _checks.positive("friction", friction)
        self.readout_step = _checks.nonnegative("readout_step", readout_step)

    @property
    def layout(self) -> Layout:
        """Those of the task, and behind them those of the velocity."""
        statistics = {statistic.name: statistic for statistic in self.base.layout.statistics}
        M, R = statistics["M"], statistics["R"]
        readout = [statistics["v"]] if self.base.trained else []
        added = [
            *(Statistic("velocity_v", v.dims, v.labels) for v in readout),
            Statistic("velocity_M", M.dims, M.labels),
            Statistic("velocity_R", R.dims, R.labels, symmetric=True, nonnegative=True),
            Statistic("cross_R", R.dims, R.labels),
        ]
        return Layout((*statistics.values(), *added))

    @property
    def least_dim(self) -> int:
        """Weights, velocities and anchors must fit side by side."""
        return self.base.least_dim + self.base.width

    def draw_states(self, dim: int, generator: np.random.Generator, count: int) -> State:
        """Random weights at rest."""
        return self._at_rest(self.base.draw_states(dim, generator, count))

    def search_states(self, count: int, seed: int) -> State:
        """Where a search for rest points of the task starts, at rest."""
        return self._at_rest(self.base.search_states(count, seed))

    def constraint(self, state: Mapping[str, Any]) -> Float[Array | np.ndarray, " m"]:
        """That of the task."""
        return self.base.constraint(state)

    def project(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """[R, X; Xᵀ, S] is positive semidefinite, X = cross_R and S = velocity_R."""
        joint, K = clipped(_joint(state)), self.base.width
        inside = {"R": joint[..., :K, :K], "cross_R": joint[..., :K, K:]}
        nearest = dict(state) | inside | {"velocity_R": joint[..., K:, K:]}
        if not self.base.spherical:
            return nearest
        scale = 1 / self.base.squared_norms(nearest["M"], nearest["R"])[..., None] ** 0.5
        scaled = {name: nearest[name] * scale for name in ("M", "cross_R")}
        return nearest | scaled | {"R": nearest["R"] * scale * scale.swapaxes(-1, -2)}

    def check_shapes(
        self, state: StateLike, runs: int | None = None, *, argument: str = "state"
    ) -> State:
        """Velocities may be left out where all are zero."""
        if isinstance(state, Mapping) and set(state) == set(self.base.shapes):
            return self._at_rest(self.base.check_shapes(state, runs, argument=argument))
        return super().check_shapes(state, runs, argument=argument)

    def check_values(self, state: State, argument: str) -> None:
        """That of the task; weights and velocities have one Gram matrix."""
        self.base.check_values({name: state[name] for name in self.base.shapes}, argument)
        super().check_values(state, argument)
        joint = _joint(state)
        smallest = np.min(np.linalg.eigvalsh(joint))
        if smallest < -_NEGATIVE * max(1e-3, np.max(np.abs(joint))):
            raise _checks.InputError(
                f"{argument}['cross_R']={_checks.shown(state['cross_R'])} is not allowed: "
                "[R, cross_R; cross_Rᵀ, velocity_R] must be positive semidefinite (its smallest "
                f"eigenvalue is {smallest:.3g})"
            )

    def _at_rest(self, state: State) -> State:
        some = state["R"]
        lead = some.shape[: some.ndim - 2]
        zeros = {name: np.zeros((*lead, *shape)) for name, shape in self.shapes.items()}
        return zeros | state


def _joint(state: Mapping[str, Any]) -> Any:
    """The Gram matrix of W⊥ and U⊥ together."""
    R, X, S = state["R"], state["cross_R"], state["velocity_R"]
    xp = R.__array_namespace__()
    rows = [xp.concatenate([R, X], -1), xp.concatenate([xp.swapaxes(X, -1, -2), S], -1)]
    return xp.concatenate(rows, -2)
