"""Population means of multi-index tasks: in closed form, or as sums over quadrature nodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits._compiled import compiled
from sgdlimits.dynamics.model.accuracy import average_error, survey
from sgdlimits.dynamics.model.by_rule import ByRule
from sgdlimits.dynamics.model.choice import chosen
from sgdlimits.dynamics.model.committee import committee_risk
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.kinks import field_count
from sgdlimits.dynamics.model.mean import Given, Mean, Rows, Vector
from sgdlimits.dynamics.model.quadrature import Quadrature, variants
from sgdlimits.dynamics.model.samples import Samples
from sgdlimits.tasks.multi_index import MultiIndexFamily

EQUAL = 1e-14  # squared distances of neurons, relative to their squared lengths, that are rounding
ROOM = 2e6  # coordinates of the nodes of a rule, of which there are nine: 150 MB
ROUNDING = 2.0**-52
RARE = 5.0  # deviations beyond which a sample is rare and large


class CommitteeRisk(Mean):
    """The risk of a squared loss between committees, exactly."""

    task: MultiIndexFamily

    def at(self, vector: Vector) -> Float[Array, ""]:
        """½ times the mean square of the residual."""
        return committee_risk(self.task, unraveled(self.task, vector))


class RuledMean(ByRule, Mean):
    """The mean of the loss of a task over its samples, by a rule."""

    task: MultiIndexFamily
    rule: Quadrature
    still: Bool[Array, ""]
    counts: bool = eqx.field(static=True)  # whether it is how often something is the case

    @property
    def exact(self) -> bool:
        """Whether there is nothing to average over."""
        return self.rule.placing == "none"

    def at(self, vector: Vector) -> Float[Array, ""]:
        """The sum over the nodes of all components."""
        state = self.unravel(vector)

        def part(samples: Samples) -> Array:
            return self._values(state, samples) @ samples.weights

        return self.over_mixture(state, self._frame(state), part)

    def suited(self, vectors: Rows, rtol: float, nodes: float) -> "RuledMean":
        """The first rule whose error is at most rtol."""
        if self.exact:
            return self
        components = len(self.task.weights)
        most = int(min(nodes, ROOM / field_count(self.task)) / components)
        return chosen(self, vectors, rtol, smooth=False, most=most)[0]

    def errors(self, vectors: Rows) -> Float[np.ndarray, " q"]:
        """The distance from rules unlike this one."""
        if self.exact:
            return super().errors(vectors)
        return np.array([self._error(jnp.asarray(row)) for row in np.asarray(vectors)])

    def _error(self, vector: Vector) -> float:
        """Not below what is rare enough to fall between all nodes, nor below rounding."""
        spread = average_error(self, vector, survey(self, vector))[0]
        averages = self.by_every_rule(vector)
        between = self.counts and self.size.kind == "sobol"  # others know where decisions change
        hidden = 1 / (len(averages) * self.size.nodes) if between else 0.0
        return float(max(spread, hidden, ROUNDING * abs(averages[0, 0])))

    def estimate(self, vector: Given) -> tuple[float, float]:
        """By the program that tells the error."""
        if self.exact:
            return super().estimate(vector)
        return float(self.by_every_rule(vector)[0, 0]), float(self.errors(vector[None])[0])

    # --- what the choice of a rule asks for -----------------------------------------------------

    def by_every_rule(self, vector: Given) -> Float[np.ndarray, "rules 1"]:
        """The mean by every variant of the rule."""
        rules = variants(self.task, self.size)
        return np.asarray(_by_rules(self, rules, jnp.asarray(vector)))[:, None]

    def averages(self, vector: Vector) -> tuple[Float[Array, " 1"], Float[Array, " 2"]]:
        """The mean, and those of second and fourth powers."""
        state = self.unravel(vector)

        def part(samples: Samples) -> Array:
            values = self._values(state, samples)
            return jnp.stack([values, values**2, values**4]) @ samples.weights

        mean, *powers = self.over_mixture(state, self._frame(state), part)
        return mean[None], jnp.stack(powers)

    def scale(self, vector: Vector) -> Float[Array, ""]:
        """That of absolute values."""
        state = self.unravel(vector)

        def part(samples: Samples) -> Array:
            return jnp.abs(self._values(state, samples)) @ samples.weights

        return self.over_mixture(state, self._frame(state), part)

    def rare(self, vector: Vector) -> Float[Array, " 1"]:
        """The root of the mean square of values that are rare and large."""
        state = self.unravel(vector)
        frame = self._frame(state)

        def square(beyond: Array) -> Array:
            def part(samples: Samples) -> Array:
                values = self._values(state, samples)
                return jnp.where(jnp.abs(values) > beyond, values**2, 0.0) @ samples.weights

            return self.over_mixture(state, frame, part)

        usual = jnp.sqrt(jnp.maximum(square(jnp.asarray(-1.0)), 0.0))
        return jnp.sqrt(jnp.maximum(square(RARE * usual), 0.0))[None]

    def unravel(self, vector: Vector) -> JaxState:
        """The state with this vector."""
        return unraveled(self.task, vector)

    def frame(self, vector: Vector) -> Frame:
        """How the fields depend on independent normals."""
        return self._frame(self.unravel(vector))

    def _values(self, state: JaxState, samples: Samples) -> Float[Array, " q"]:
        """The loss at every node; equal neurons have equal fields, to the last bit."""
        fields = samples.fields[_first_of_equals(state)]
        loss = jax.vmap(self.task.loss, (1, None, 0))
        return loss(fields, state.get("v"), samples.labels)


def unraveled(task: MultiIndexFamily, vector: Vector) -> JaxState:
    """The state of a task with this vector."""
    return {name: jnp.asarray(value) for name, value in task.layout.unravel(vector).items()}


def _first_of_equals(state: JaxState) -> Array:
    """Of every neuron, the first that has the same weights: a decision between them is a tie."""
    M, R = state["M"], state["R"]
    norms = jnp.diagonal(R)
    apart = norms[:, None] + norms[None, :] - 2 * R
    equal = jnp.abs(apart) <= EQUAL * (norms[:, None] + norms[None, :])
    return jnp.argmax(equal & jnp.all(M[:, None] == M[None, :], axis=-1), axis=1)


@compiled
def _by_rules(mean: RuledMean, rules: Quadrature, vector: Vector) -> Float[Array, " rules"]:
    return jax.lax.map(lambda rule: mean.ruled(rule).at(vector), rules)
