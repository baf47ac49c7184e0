"""What a network at one state is worth: its population means, with their errors."""

import dataclasses

import numpy as np

from sgdlimits._precision import double_precision
from sgdlimits._types import Metric, StateLike
from sgdlimits.dynamics.model import COARSE_NODES, Limit, model_of, name_of

WORK = 9e8  # random nodes that take some ten seconds of one core


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A population mean, and the estimated error that quadrature leaves in it: zero if exact.

    >>> Measurement("risk", 0.25, 1e-6)
    risk 0.25 ± 1e-06
    >>> float(Measurement("error", 0.5, 0.0))
    0.5
    """

    name: str
    value: float
    error: float

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.name} {self.value:.8g} " + (f"± {self.error:.2g}" if self.error else "exact")


@double_precision
def measure_at(self: Limit, state: StateLike, metric: Metric) -> Measurement:  # noqa: D417
    """What a metric is on average over fresh samples of the data, E q(s, v, y).

    Args:
        state: of the network.
        metric: "risk", "error", or a JAX function ``metric(fields, readout, label)`` that gives a
            number for one sample; its kinks and jumps are found, as those of a loss are. Write it
            once, outside of loops: a function that is made again compiles again. Where a metric is
            infinite, as log|s| is, its mean is known less well than its error says.

    Returns:
        A ``Measurement``: ``name``, ``value``, ``error``. The error is one standard deviation, the
        spread over quadrature rules that have little in common, 0 where the value is exact.

    >>> import jax.numpy as jnp
    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval())
    >>> def distance(s, v, y):
    ...     return (jnp.sum(s**2) - y) ** 2
    >>> round(limit.measure({"M": [[0.6]], "R": [[0.64]]}, distance).value, 6)
    2.56
    """
    name = name_of(metric)
    values = self.task.check_state(state)
    own = {part: values[part] for part in self.learned.shapes}  # without velocities
    vector = np.asarray(self.learned.layout.ravel(own))
    mean = model_of(self.learned, step=self.step, nodes=self.nodes or COARSE_NODES).mean(metric)
    if self.nodes is None:
        mean = mean.suited(vector[None], self.rtol, WORK)
    return Measurement(name, *mean.estimate(vector))


def risk(self: Limit, state: StateLike) -> Measurement:  # noqa: D417
    """The population loss without the ridge, E ℓ(s, v, y), of the loss that the task trains by.

    Exact for committees of erf, square and ReLU units, and without noise. Of a spiked tensor it is
    E‖Y − x^{⊗k}‖² − E‖Y‖² = R²ᵏ − 2 snr mᵏ, R² = m² + r2.

    Args:
        state: of the network.

    Returns:
        A ``Measurement``, as of ``measure``.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.5))
    >>> limit.risk({"M": [[0.0]], "R": [[1.0]]})  # ½E(y − f)²
    risk 2.25 exact
    """
    return measure_at(self, state, "risk")


def error(self: Limit, state: StateLike) -> Measurement:  # noqa: D417
    """The 0–1 error: how likely the network decides for a wrong label, by the task's own rule.

    The rule is ``task.decide(fields, readout)``: σ(v·relu(s)) > ½, the largest field of a softmax,
    or what ``MultiIndexTask(decide=...)`` says. Decisions between equal neurons are ties.

    Args:
        state: of the network.

    Returns:
        A ``Measurement``, as of ``measure``.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.GaussianMixture(classes=2, precision=4.0))
    >>> print(round(limit.error({"M": [[1, 0], [0, 1]], "R": [[0, 0], [0, 0]]}).value, 6))  # Φ(−√2)
    0.07865
    """
    return measure_at(self, state, "error")
