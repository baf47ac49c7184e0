"""The escape from an unstable rest point: what grows, how fast, and with how much noise."""

import functools
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from sgdlimits import _checks
from sgdlimits._events import EventLike
from sgdlimits._precision import double_precision, staged
from sgdlimits._types import State, StateLike, WholeNumber, Word
from sgdlimits.dynamics.escape.by_step import (
    Rate,
    fastest_step,
    growth_by_step,
    largest_step,
    tangent_at,
)
from sgdlimits.dynamics.escape.exit_time import ExitTime, Leaving, exit_time
from sgdlimits.dynamics.escape.growth import Growth, growth
from sgdlimits.dynamics.model import Limit, Model, Table

AT_REST = 1e-6  # the drift at a rest point is below this where it is exact
FAIR = 5.0  # and otherwise below so many times its error more
REACH = 1e-4  # |z| at which the ODE takes over: its error is of this order, or its square
BEYOND_ERROR = 100.0  # and so many times what the error of the drift makes of a state
STARTS = 2**21  # entries of W in random starts, of which Σ₀ is the covariance
MOST_STARTS = 2**16
AROUND = 0.05  # random starts are further than 1/√dim from the rest point if their mean is


@dataclass(frozen=True, repr=False)
class Escape:
    r"""What grows at a rest point u* to first order: dz = Ωz dt + √(S/dim) dB.

    Time is in units of dim/step samples.

    Attributes:
        state: u*.
        rate: the largest growth rate ω; negative or zero where nothing grows.
        rates: all eigenvalues of the Jacobian that grow, those of Ω.
        directions: for each coordinate of z, the change of the statistics that goes with it.
        noise: S, the covariance per unit of time of √dim times the noise in z.
        step: c, at which all this is.
    """

    state: State
    rate: float
    rates: np.ndarray
    directions: list[dict[str, float]]
    noise: np.ndarray
    step: float
    _limit: Limit
    _model: Model
    _growth: Growth
    _error: float  # of the drift

    @functools.cached_property
    @double_precision
    def largest_step(self) -> float | None:
        """The step at and beyond which nothing grows.

        ``inf`` if growth does not end, None if nothing grows at any step or the rest point, which
        may move with the step, ends first.
        """
        return largest_step(self._rate_at, self.step)

    @functools.cached_property
    @double_precision
    def fastest_step(self) -> float | None:
        """The step that leaves with fewest samples, where c·ω(c) is largest; as the largest one."""
        return fastest_step(self._rate_at, self.largest_step)

    @property
    @double_precision
    def gain(self) -> float | None:
        """How many times fewer samples the fastest step takes than this one, to leading order."""
        if self.fastest_step is None or np.isinf(self.fastest_step) or not self.rate > 0:
            return None
        best = self.fastest_step * self._rate_at(self.fastest_step)
        return best / (self.step * self._rate_at(self.step))

    @functools.cached_property
    def _rate_at(self) -> Rate:
        vector = self._limit.ravel(self.state)
        return growth_by_step(self._limit, self._model, vector, AT_REST + FAIR * self._error)

    @double_precision
    def exit_time(
        self,
        dim: WholeNumber,
        event: EventLike,
        *,
        start: Word = "random",
        directions: WholeNumber = 64,
        seed: WholeNumber = 0,
    ) -> ExitTime:
        """The law of the time at which SGD in dimension dim first meets an event.

        It holds to O(1/dim), with the noise of SGD and the constant of the nonlinear flow, for any
        threshold that the flow crosses. There the random part of the time is that of the start.

        Args:
            dim: the data dimension d.
            event: as of ``first_passage``: ``("M[0,teacher]", ">", 0.3)``, ``("risk", "<", 0.1)``,
                or a function of the state, in which z may have either sign.
            start: "random", the law of ``task.random_state``; or "rest", u* itself, which is left
                by the noise of SGD alone.
            directions: how many directions of escape the flow is followed along, where there are
                more than two.
            seed: of directions and starts.

        >>> import sgdlimits as sl
        >>> limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.5), step=0.05)
        >>> found = limit.escape({"M": [[0.0]], "R": [[1.0]]})
        >>> found.exit_time(3000, ("risk", "<", 0.25 + 0.9 * 2))
        risk < 2.05 in dimension 3,000 from random starts: after 1.221 on average, \
between 0.8091 and 1.745 for the middle 80 %; one unit of time is 6e+04 samples
        """
        dim = self._limit.task.check_dim(dim)
        _checks.choice("start", start, ("random", "rest"))
        if len(self.rates) == 0:
            raise _checks.InputError(
                f"exit_time is not defined at this state: {self._nothing_grows()}"
            )
        spread = scipy.linalg.solve_continuous_lyapunov(self._growth.matrix, self.noise)
        if start == "random":
            spread = spread + self._spread_of_starts(dim, seed)
        if not np.max(np.diagonal(spread)) > 0:
            raise _checks.InputError(
                f"start={start!r} is not allowed: nothing pushes SGD off this rest point, for its "
                "noise vanishes there in all directions that grow"
            )
        vector = self._limit.ravel(self.state)
        leaving = Leaving(self._limit, vector, self._growth, (spread + spread.T) / 2)
        reach = max(REACH, BEYOND_ERROR * self._error / self.rate)
        return exit_time(
            leaving, event, dim, reach=reach, directions=directions, seed=seed, start=start
        )

    def _spread_of_starts(self, dim: int, seed: WholeNumber) -> np.ndarray:
        """Σ₀, the second moments of √dim·z over random starts, from many of them."""
        limit, vector = self._limit, self._limit.ravel(self.state)
        count = min(MOST_STARTS, max(STARTS // len(vector), 1000))
        starts = limit.task.random_state(dim, seed, runs=count)
        apart = np.asarray(limit.task.layout.ravel(starts)) - vector
        off = float(np.max(np.abs(apart.mean(axis=0)) - 4 * apart.std(axis=0) / count**0.5))
        if off > AROUND:
            raise _checks.InputError(
                f"start='random' is not allowed: the mean of random starts is {off:.2g} away from "
                "this rest point, which the flow would have to lead them to first; "
                "start='rest' is the time from the rest point itself"
            )
        z = apart @ self._growth.readings.T
        return np.asarray(dim * z.T @ z / count)

    def _nothing_grows(self) -> str:
        if self.largest_step is None:
            return (
                f"no direction grows at any step (the largest rate is {self.rate:.3g} at step "
                f"{self.step:g}), so that it is not left linearly; where it is left at all, the "
                "information exponent is 3 or more, or noise has to climb"
            )
        return (
            f"no direction grows at step {self.step:g}, since growth ends at step "
            f"{self.largest_step:.4g}"
        )

    def __repr__(self) -> str:
        if len(self.rates) == 0:
            return f"Escape: none, {self._nothing_grows()}"
        count, own = len(self.rates), f"step {self.step:g}"
        grow = "1 direction grows" if count == 1 else f"{count} directions grow"
        rates = (
            f"at rate {self.rate:.4g}" if self._growth.equal else f"at rates up to {self.rate:.4g}"
        )
        noise = float(np.trace(self.noise)) / count
        if self.fastest_step is None:
            steps = "where growth ends with larger steps is not known: the rest point does not last"
        elif np.isinf(self.fastest_step):
            steps = "the larger the step, the fewer samples it takes"
        else:
            steps = (
                f"step {self.fastest_step:.4g} takes {self.gain:.3g} times fewer samples, and from "
                f"step {self.largest_step:.4g} on nothing grows"
            )
        return (
            f"Escape: {grow} {rates} per unit of time at {own}, with noise of variance "
            f"{noise:.4g}/dim; {steps}"
        )


@double_precision
def escape(self: Limit, state: StateLike) -> Escape:  # noqa: D417 - a method: self needs no word
    """How SGD leaves an unstable rest point: rates, noise, best step; and when, by ``exit_time``.

    By automatic differentiation of the drift, for any task and any moves at a constant step.

    Args:
        state: the rest point, such as the equator ``{"M": [[0.0]], "R": [[1.0]]}`` of the sphere.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.5), step=0.05)
    >>> limit.escape({"M": [[0.0]], "R": [[1.0]]})
    Escape: 1 direction grows at rate 2.75 per unit of time at step 0.05, with noise of variance \
2.5/dim; step 0.08 takes 1.16 times fewer samples, and from step 0.16 on nothing grows
    """
    self.check_constant_step("escape")
    checked = self.task.check_state(state)
    vector = np.asarray(self.ravel(checked))
    model, _ = self.suited(staged(vector[None]), smooth=True)
    error = float(np.max(model.errors(vector[None]).drift))
    allowed = AT_REST + FAIR * error
    size = float(np.max(np.abs(Table(model).drift(vector[None]))))
    if size > allowed:
        raise _checks.InputError(
            f"state is not allowed: the drift there is {size:.3g}, and only a rest point, where it "
            f"is below {allowed:.2g}, is escaped from"
        )
    if reason := model.infinite_rates(staged(vector)):
        raise _checks.InputError(f"state is not allowed: {reason}")
    if model.jump_directions(staged(vector)):
        raise _checks.InputError(
            "state is not allowed: the drift jumps there, so that no rate is defined"
        )
    if self.nodes is None:
        model = model.with_slopes(vector[None], self.rtol)
    found = growth(Table(model).jacobian(vector[None])[0], tangent_at(model, vector))
    noise = found.readings @ self.diffusion(checked) @ found.readings.T
    return Escape(
        state=checked,
        rate=found.fastest,
        rates=found.rates,
        directions=[_named(self, column) for column in found.directions.T],
        noise=noise,
        step=self.step,
        _limit=self,
        _model=model,
        _growth=found,
        _error=error,
    )


def _named(limit: Limit, column: np.ndarray) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in zip(limit.coordinates, column, strict=True)
        if abs(value) > 1e-9
    }
