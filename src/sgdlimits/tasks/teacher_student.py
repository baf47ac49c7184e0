"""Teacher and student committees (L23; Saad and Solla)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Activation, Index, Matrix, Number, Real, WholeNumber, Word
from sgdlimits.tasks.activations import NamedActivation, resolve
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily


class TeacherStudent(MultiIndexFamily):
    r"""x ~ N(0, I), y = Σ_n σ(a_n) + √noise ε, student Σ_i v_i σ(s_i), loss ½(y − f)².

    Args:
        activation: σ: "erf" (erf(x/√2)), "relu", "square", "tanh" or an elementwise JAX function.
        teacher_width: number of teacher neurons.
        student_width: number of student neurons K.
        noise: variance of the label noise.
        teacher_gram: Gram matrix of the teacher's directions; the identity by default.
        readout: "trained" to make v a statistic; with "fixed" all v_i = 1.
        scale: "mean" divides both sums by their widths (L23), "sum" does not (Saad and Solla).

    >>> TeacherStudent(teacher_width=1).anchors
    ('teacher0',)
    """

    teacher_width: int = eqx.field(static=True)
    noise: float
    scale: str = eqx.field(static=True)
    _activation: NamedActivation = eqx.field(static=True)

    def __init__(
        self,
        *,
        activation: Word | Activation = "erf",
        teacher_width: WholeNumber = 2,
        student_width: WholeNumber = 2,
        noise: Number = 0.0,
        teacher_gram: Matrix | None = None,
        readout: Word = "fixed",
        scale: Word = "mean",
    ):
        self._activation = resolve("activation", activation)
        self.teacher_width = _checks.integer("teacher_width", teacher_width, least=1)
        self.noise = _checks.nonnegative("noise", noise)
        self.scale = _checks.choice("scale", scale, ("mean", "sum"))
        if teacher_gram is not None:
            teacher_gram = _checks.gram("teacher_gram", teacher_gram, self.teacher_width)
        super().__init__(
            width=_checks.integer("student_width", student_width, least=1),
            anchors=tuple(f"teacher{n}" for n in range(self.teacher_width)),
            gram=teacher_gram,
            trained=_checks.choice("readout", readout, ("fixed", "trained")) == "trained",
            kinks=self._activation.kinks,
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """½(y − f)² with f = scale · Σ v_i σ(s_i)."""
        units = self._activation.function(fields)
        f = self._scales[0] * jnp.sum(units if readout is None else readout * units)
        return (label - f) ** 2 / 2

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The teacher's output plus noise of variance ``noise``."""
        clean = self._scales[1] * jnp.sum(self._activation.function(anchors))
        return clean + jnp.sqrt(self.noise) * noise

    @property
    def committee(self) -> Committee | None:
        """Exact for erf and the square."""
        if not self._activation.exact:
            return None
        student, teacher = self._scales
        return Committee(self._activation.name, student, teacher, self.noise)

    @property
    def _scales(self) -> tuple[float, float]:
        mean = self.scale == "mean"
        return (1 / self.width, 1 / self.teacher_width) if mean else (1.0, 1.0)

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, a caller's own activation among them."""
        return super().arguments() | {"activation": self._activation.argument}

    # the constructor's words, for provenance
    @property
    def activation(self) -> str:
        """Name of the activation."""
        return self._activation.name

    @property
    def student_width(self) -> int:
        """Number of student neurons."""
        return self.width

    @property
    def teacher_gram(self) -> Any:
        """Gram matrix of the teacher's directions."""
        return self.gram

    @property
    def readout(self) -> str:
        """Whether the readout is trained."""
        return "trained" if self.trained else "fixed"
