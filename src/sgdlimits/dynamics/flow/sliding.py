"""Solutions of a drift that jumps at switches: smooth in between, sliding along the jump.

Without noise (precision = ∞) the gradient of a ReLU network jumps where a field changes sign: each
field of a component's mean is a switch. A solution may cross such a surface, or be pushed onto it
from both sides and stay there. An adaptive solver that does not know this takes ever smaller steps.
"""

import numpy as np
from jaxtyping import Bool, Float

from sgdlimits.dynamics.flow.methods import EIGHTH
from sgdlimits.dynamics.model import Table

LANDED = 1e-11  # a switch this close to zero is on the surface
FIRST_STEP = 1e-3
MAX_STEPS = 100_000


def sliding_solutions(
    table: Table,
    starts: Float[np.ndarray, "runs n"],
    times: Float[np.ndarray, " t"],
    rtol: float,
    atol: float,
) -> tuple[Float[np.ndarray, "runs t n"], Bool[np.ndarray, " runs"]]:
    """Solve du/dt = h(u) from every start; switches that start at zero stay there (sign(0) = 0).

    Each step is one of Runge and Kutta with the signs of all switches held. Where one of them would
    change, the step is cut short until it ends on the surface.
    """
    values = np.full((len(starts), len(times), starts.shape[1]), np.nan)
    values[:, 0] = starts
    t, u, signs = np.full(len(starts), times[0]), starts.copy(), np.sign(table.switches(starts))
    step, record = np.full(len(starts), FIRST_STEP), np.ones(len(starts), int)
    usual = step.copy()  # the step before one was cut short to end on a surface
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(MAX_STEPS):
            rows = np.flatnonzero((record < len(times)) & np.all(np.isfinite(u), axis=1))
            if len(rows) == 0:
                break
            end = times[record[rows]]
            h = np.minimum(step[rows], end - t[rows])
            tried = _Attempt(table, u[rows], signs[rows], h, rtol, atol)
            moved = tried.moved
            # a step cut short by the time of a record says nothing about the next one
            kept = moved & (h < step[rows])
            step[rows] = np.where(kept, np.maximum(tried.next_step, step[rows]), tried.next_step)
            step[rows] = np.where(tried.landed, np.maximum(usual[rows], step[rows]), step[rows])
            usual[rows] = np.where(tried.early, np.maximum(usual[rows], h), step[rows])
            t[rows] = np.where(moved, np.where(h >= end - t[rows], end, t[rows] + h), t[rows])
            u[rows[moved]], signs[rows[moved]] = tried.vectors[moved], tried.signs[moved]
            arrived = rows[moved & (t[rows] >= end)]
            values[arrived, record[arrived]] = u[arrived]
            record[arrived] += 1
    return values, record == len(times)


class _Attempt:
    """A step from every row, and what became of the switches.

    Attributes:
        moved: which rows may take it: those whose error is small and that end on no wrong side.
        early: which would, but have passed a surface.
        landed: which end on one.
        vectors: where it leads.
        signs: of the switches there, 0 for those that stay on their surface.
        next_step: the step to take after it, or in its place.
    """

    def __init__(
        self,
        table: Table,
        u: np.ndarray,
        signs: np.ndarray,
        h: np.ndarray,
        rtol: float,
        atol: float,
    ):
        def rates(vectors: np.ndarray) -> np.ndarray:
            return table.held(vectors, signs)

        k, new = EIGHTH.step(rates, u, rates(u), h)
        error = EIGHTH.error(k, h, u, new, rtol, atol)
        accurate = (error <= 1) & np.all(np.isfinite(new), axis=1)
        before, now = table.switches(u), table.switches(new)
        crossed = (signs != 0) & (now * signs < 0)
        others = tuple(range(1, signs.ndim))
        self.early = accurate & np.any(crossed & (np.abs(now) > LANDED), axis=others)
        self.moved = accurate & ~self.early
        landed = crossed & self.moved.reshape(-1, *[1] * (signs.ndim - 1))
        self.landed = np.any(landed, axis=others)
        # the other side either carries a switch away, or pushes it back: then it stays
        other = np.where(landed, -signs, signs)
        stays = np.zeros_like(landed)
        if np.any(landed):
            stays = landed & (table.switching(new, table.held(new, other)) * other <= 0)
        self.signs = np.where(stays, 0.0, other)
        self.vectors = table.onto_switches(new, stays)
        share = np.where(crossed, np.abs(before) / (np.abs(before) + np.abs(now)), 1.0)
        aimed = h * np.min(share, axis=others, initial=1.0) * (1 + 1e-9) + 1e-14
        growth = np.where(np.isfinite(error), 0.9 * (error + 1e-12) ** EIGHTH.exponent, 0.2)
        self.next_step = np.where(self.early, aimed, h * np.clip(growth, 0.2, 5.0))
