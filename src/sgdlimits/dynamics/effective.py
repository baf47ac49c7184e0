"""The effective dynamics of a task: the limit of its summary statistics as the dimension grows."""

from sgdlimits import _checks
from sgdlimits._moves import MomentumLike, Moves, StepLike, moves
from sgdlimits._names import explained
from sgdlimits._types import Flag, Number, WholeNumber
from sgdlimits.dynamics import branches, escape, flow, measures, noise, plane, rest
from sgdlimits.dynamics.model import Limit
from sgdlimits.tasks import Task


class EffectiveDynamics(Limit):
    r"""du = h(u) dt + √(Σ(u)/dim) dB, h = −f + g (BGJ22, Theorem 2.2).

    f is the population drift, g the corrector, Σ the diffusion. States are dicts of arrays. Frozen;
    made by ``effective_dynamics``. ``model`` is the same in JAX, as functions of the flat
    statistics: differentiate it, vmap it (under ``jax.enable_x64(True)``).
    """

    def __init__(self, task: Task, moves: Moves, rtol: Number, nodes: WholeNumber | None):
        super().__init__(task, moves, rtol, nodes)

    # each is a function of a limit, documented where it is written

    solve = flow.solve
    first_passage = flow.first_passage
    sample_paths = noise.sample_paths
    fluctuations = noise.fluctuations
    rescaled = noise.rescaled
    escape = escape.escape
    fixed_points = rest.fixed_points
    basins = rest.basins
    bifurcations = branches.bifurcations
    drift_in_plane = plane.drift_in_plane
    risk = measures.risk
    error = measures.error
    measure = measures.measure_at


@explained
def effective_dynamics(
    task: Task,
    step: StepLike = 1.0,
    *,
    batch: WholeNumber = 1,
    momentum: MomentumLike = 0.0,
    readout_step: Number = 1.0,
    normalised: Flag = False,
    rtol: Number = 1e-5,
    nodes: WholeNumber | None = None,
) -> EffectiveDynamics:
    r"""The effective dynamics of a task at learning rate δ = step/dim.

    Args:
        task: what is learned.
        step: c in δ = c/dim; one unit of time is dim/step steps. A function of time, or pairs
            (time, step) from each of which on that step is taken, the first at time 0: then drift
            and diffusion depend on time.
        batch: how many fresh samples a gradient is averaged over.
        momentum: β in [0, 1): as step/(1 − β), and 1/(1 − β) times as fast. Or ("slow", κ) for
            β = 1 − κδ: then the velocity of the weights has statistics of its own, which are zero
            in states that leave them out: ``velocity_v``, ``velocity_M`` = UAᵀ, ``velocity_R`` =
            U⊥U⊥ᵀ and ``cross_R`` = W⊥U⊥ᵀ for U ← (1 − κδ)U + δ·gradient, W ← W − δU. On the sphere
            rows of W are divided by their norms after it, as by ``simulate(sphere="rescaled")``.
        readout_step: ε ≥ 0; the readout moves with εδ, and with 0 stays.
        normalised: whether gradients are divided by their norm over √dim.
        rtol: error of expectations that have no closed form, relative to the statistics and to the
            terms that drive them. At every state a rule is chosen that reaches it by its own
            estimate. Where none does within 2¹⁴ nodes for each component (2¹⁶ if rtol < 1e-5), the
            best is taken, and a warning tells its error if that is 100 times larger.
        nodes: so many quadrature nodes of one rule for all states, whatever the error.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> limit.drift({"m": 1.0, "r2": 1.0})
    {'m': array(0.), 'r2': array(0.)}
    """
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    moved = moves(
        step=step,
        batch=batch,
        momentum=momentum,
        readout_step=readout_step,
        normalised=normalised,
    )
    return EffectiveDynamics(task, moved, rtol, nodes)
