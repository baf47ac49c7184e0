"""The mean field as particles: one (m, q) for each neuron, and its readout if that is trained."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Activation, Flag, Matrix, Number, Numbers, State, WholeNumber, Word
from sgdlimits._warn import warn
from sgdlimits.theory.mean_field.particles import Particles, residual, velocity
from sgdlimits.theory.mean_field.targets import Targets, targets_of
from sgdlimits.theory.mean_field.units import Smooth, unit_of

TIGHT = 1e-7  # relative tolerance of solutions
POOR = 1e-4  # error of drifts, relative to the largest, that is worth a warning


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanField:
    r"""The limit p → ∞ of SGD on ``TeacherStudent(scale="mean")`` at fixed step.

    With ψ(a) = f*(a) − ⟨v σ̄⟩(a), where ⟨·⟩ is the mean over particles, and σ̄(a) = E_η σ(s) of the
    particle's own field s = mᵀP⁻¹a + √q η,

        dm/dτ = v E[ψ E_η σ'(s) a],   dq/dτ = 2v E[ψ E_η σ'(s) √q η],   dv/dτ = ε E[ψ σ̄]

    in the slides' time τ = t/p. This is the gradient flow of the excess risk ½E[ψ²], which never
    increases. No term of order 1/p is kept, for there are three of them and none is larger than the
    others: the own term −(v²/p) Cov_η(σ', σ) of a particle; the correlations R_ij = O(1/p) that the
    flow makes between particles, which act on each through the sum over all others; and the
    corrector (step/p) E[σ'(s)² (y − f)²] of q. That is the only place where label noise enters, so
    that it drops out. Where step/p is not small the corrector makes correlations of that size too,
    and no diagonal R is right.

    Args:
        activation: σ: "erf" (erf(x/√2)), "relu", "square", "tanh" or an elementwise JAX function.
        teacher_width: number of teacher neurons, anchors r.
        teacher_gram: P, the identity by default.
        teacher_readout: b; ones by default.
        teacher_activation: τ, given as σ is; σ itself by default.
        readout: "trained" to move v; with "fixed" all v = 1.
        readout_step: ε; a trained readout moves with ε times the step.
        spherical: the particles keep mᵀP⁻¹m + q.
        nodes: largest number of nodes of the teacher's fields, the same for the whole solution.

    Source: L23, mean-field slides, with the signs corrected; ASKL23.

    >>> flow = MeanField(activation="square", teacher_width=1)
    >>> path = flow.solve({"M": [[0.5], [-0.5]], "q": [0.5, 0.5]}, time=20.0, points=2)
    >>> float(path.M[-1, 0, 0].round(4)), float(path.q[-1, 0].round(4))  # on the way to (1, 0)
    (0.9969, 0.0185)
    """

    activation: Word | Activation = "erf"
    teacher_width: WholeNumber = 2
    teacher_gram: Matrix | None = None
    teacher_readout: Numbers | None = None
    teacher_activation: Word | Activation | None = None
    readout: Word = "fixed"
    readout_step: Number = 1.0
    spherical: Flag = False
    nodes: WholeNumber = 400

    def __post_init__(self) -> None:
        unit_of("activation", self.activation)
        if self.teacher_activation is not None:
            unit_of("teacher_activation", self.teacher_activation)
        r = _checks.integer("teacher_width", self.teacher_width, least=1)
        if self.teacher_gram is not None:
            _checks.gram("teacher_gram", self.teacher_gram, r)
        if self.teacher_readout is not None:
            _checks.array("teacher_readout", self.teacher_readout, (r,))
        _checks.choice("readout", self.readout, ("fixed", "trained"))
        _checks.nonnegative("readout_step", self.readout_step)
        _checks.flag("spherical", self.spherical)
        _checks.integer("nodes", self.nodes, least=8)

    @property
    def gram(self) -> np.ndarray:
        """P."""
        return (
            np.eye(int(self.teacher_width))
            if self.teacher_gram is None
            else np.asarray(self.teacher_gram, float)
        )

    @double_precision
    def drift(self, state: Mapping[str, Any]) -> State:
        """Time derivatives in the slides' time, by name."""
        return _named(self._moves(_vectors(self._start("state", state)), self.targets()))

    @double_precision
    def excess_risk(self, state: Mapping[str, Any]) -> float:
        """½E[ψ²]: the risk without the label noise's Δ/2, and without variances of order 1/p."""
        start = _vectors(self._start("state", state))
        return float(_risk(self.unit, start, self.targets()))

    def random_particles(
        self, count: WholeNumber, dim: WholeNumber, *, seed: WholeNumber, law: Word = "gaussian"
    ) -> State:
        """Independent particles of random weights in dimension ``dim``.

        Args:
            count: number of particles p.
            dim: of the weights; m ~ N(0, P/dim) and dim·q is chi-square with dim − r degrees of
                freedom.
            seed: of the draw.
            law: "gaussian", W ~ N(0, I/dim), or "sphere", its rows divided by their norms.

        >>> particles = MeanField(teacher_width=1).random_particles(4, dim=100, seed=0)
        >>> {name: x.shape for name, x in particles.items()}
        {'M': (4, 1), 'q': (4,)}
        """
        p, r = _checks.integer("count", count, least=1), int(self.teacher_width)
        d = _checks.integer("dim", dim, least=r + 1)
        generator = np.random.default_rng(_checks.integer("seed", seed, least=0))
        z = generator.normal(size=(p, r)) / np.sqrt(d)
        q = generator.chisquare(d - r, size=p) / d
        if _checks.choice("law", law, ("gaussian", "sphere")) == "sphere" or self.spherical:
            norms = np.sum(z**2, axis=1) + q
            z, q = z / np.sqrt(norms)[:, None], q / norms
        state = {"M": z @ np.linalg.cholesky(self.gram).T, "q": q}
        return state | ({"v": generator.normal(size=p)} if self.readout == "trained" else {})

    @double_precision
    def solve(
        self,
        init: Mapping[str, Any],
        time: Number = 10.0,
        *,
        points: WholeNumber = 201,
        times: Numbers | None = None,
    ) -> xr.Dataset:
        """Move the particles for a while.

        Args:
            init: "M" of shape (p, r), "q" of shape (p,) and, if the readout is trained, "v".
            time: duration in the slides' time, t/p.
            points: number of equally spaced times in the result.
            times: the times themselves, increasing from 0, in place of ``time`` and ``points``.

        Returns:
            A Dataset with "M", "q" (and "v") over ``time``, ``particle`` and ``anchor``, and
            ``excess_risk``. Its attribute ``drift_error`` is the largest error of a drift from the
            nodes, relative to the largest drift, at the start, halfway and at the end.
        """
        start, grid = self._start("init", init), times_of(time, points, times)
        targets, shapes = self.targets(), {name: x.shape for name, x in start.items()}

        def moved(_: float, flat: np.ndarray) -> np.ndarray:
            return _flat(_named(self._moves(_vectors(_split(flat, shapes)), targets)))

        span, tolerances = (0.0, max(float(grid[-1]), 1e-300)), {"rtol": TIGHT, "atol": TIGHT / 100}
        # a trial step may overflow: the solver refuses it and takes a smaller one
        with np.errstate(invalid="ignore", over="ignore"):
            found = solve_ivp(moved, span, _flat(start), method="DOP853", t_eval=grid, **tolerances)
        if not found.success:
            raise FloatingPointError(f"the mean field was not solved: {found.message}")
        states = [_split(column, shapes) for column in found.y.T]
        checked = [states[k] for k in sorted({0, len(grid) // 2, len(grid) - 1})]
        error = self._drift_error(checked)
        if error > POOR:
            warn(f"drifts of the mean field are off by {error:.1g} of the largest: raise nodes")
        data: dict[str, Any] = {
            name: (("time", *_AXES[name]), np.stack([state[name] for state in states]))
            for name in start
        }
        risks = [float(_risk(self.unit, _vectors(state), targets)) for state in states]
        names = [f"teacher{n}" for n in range(int(self.teacher_width))]
        coords = {"time": grid, "particle": np.arange(len(start["q"])), "anchor": names}
        attrs = {"kind": "mean field", "time_unit": "step * samples / (dim * width)"}
        data["excess_risk"] = ("time", risks)
        return xr.Dataset(data, coords, attrs | {"drift_error": error})

    @property
    def unit(self) -> Smooth:
        """Averages of the student's units."""
        return unit_of("activation", self.activation).smoothed

    def _moves(self, state: Particles, targets: Targets) -> Particles:
        moved = _velocity(self.unit, state, targets, spherical=bool(self.spherical))
        return moved if moved.v is None else moved._replace(v=self.readout_step * moved.v)

    def _drift_error(self, states: Sequence[State]) -> float:
        """How far drifts are from those with twice the nodes for each field, over the largest."""
        rough, fine = (
            np.array([_flat(_named(self._moves(_vectors(x), self.targets(k)))) for x in states])
            for k in (1, 2)
        )
        return float(np.max(np.abs(rough - fine)) / max(np.max(np.abs(fine)), POOR))

    def targets(self, finer: int = 1) -> Targets:
        """Nodes of the teacher's fields, ``finer`` times as many along each."""
        return _targets(self, finer)

    def _start(self, argument: str, state: Mapping[str, Any]) -> State:
        """The state as arrays, of shapes that fit; q must not be negative."""
        wanted = ["M", "q"] + (["v"] if self.readout == "trained" else [])
        if not isinstance(state, Mapping | xr.Dataset) or set(state) - {"excess_risk"} != {*wanted}:
            shown = list(state) if isinstance(state, Mapping | xr.Dataset) else state
            raise _checks.InputError(
                f"{argument}={shown!r} is not allowed: {argument} must have {', '.join(wanted)}"
            )
        given = {name: getattr(state[name], "values", state[name]) for name in wanted}
        count = len(np.atleast_1d(np.asarray(given["q"], dtype=object)))
        q = _checks.array("q", given["q"], (count,))
        if np.any(q < 0) or count == 0:
            raise _checks.InputError(
                f"q={_checks.shown(q)} is not allowed: q must be squared norms, one or more"
            )
        start = {"M": _checks.array("M", given["M"], (count, int(self.teacher_width))), "q": q}
        return start | ({"v": _checks.array("v", given["v"], (count,))} if "v" in wanted else {})


_AXES = {"M": ("particle", "anchor"), "q": ("particle",), "v": ("particle",)}


def _vectors(state: State) -> Particles:
    # a solver's trial step may overshoot zero by rounding
    return Particles(state["M"], np.maximum(state["q"], 0.0), state.get("v"))


def _named(particles: Particles) -> State:
    return {
        name: np.asarray(x)
        for name, x in zip(particles._fields, particles, strict=True)
        if x is not None
    }


def _flat(state: State) -> np.ndarray:
    return np.concatenate([x.ravel() for x in state.values()])


def _split(flat: np.ndarray, shapes: Mapping[str, tuple[int, ...]]) -> State:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = zip(shapes.items(), np.split(flat, ends[:-1]), strict=True)
    return {name: part.reshape(shape) for (name, shape), part in parts}


@functools.partial(jax.jit, static_argnums=0, static_argnames="spherical")
def _velocity(
    unit: Smooth, particles: Particles, targets: Targets, *, spherical: bool
) -> Particles:
    psi = residual(unit, particles, _equal(particles), targets)
    return velocity(unit, particles, psi, targets, spherical=spherical)


@functools.partial(jax.jit, static_argnums=0)
def _risk(unit: Smooth, particles: Particles, targets: Targets) -> Float[Array, ""]:
    psi = residual(unit, particles, _equal(particles), targets)
    return jnp.asarray(targets.weights) @ psi**2 / 2


def _equal(particles: Particles) -> Float[Array, " p"]:
    return jnp.full_like(particles.q, 1 / len(particles.q))


@functools.lru_cache(maxsize=8)
def _targets(flow: MeanField, finer: int) -> Targets:
    own = unit_of("activation", flow.activation)
    other = flow.teacher_activation
    teacher = own if other is None else unit_of("teacher_activation", other)
    b = np.ones(len(flow.gram)) if flow.teacher_readout is None else flow.teacher_readout
    return targets_of(own, teacher, flow.gram, np.asarray(b, float), int(flow.nodes), finer)


def times_of(time: Any, points: Any, times: Any) -> np.ndarray:
    """Recorded times, from a duration and their number, or as they are given."""
    if times is None:
        last = _checks.positive("time", time)
        return np.linspace(0.0, last, _checks.integer("points", points, least=1))
    grid = _checks.array("times", getattr(times, "values", times), None)
    if grid.ndim != 1 or grid.size == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(grid)} is not allowed: times must increase from 0 or later"
        )
    return grid
