"""Teacher and student committees (L23; Saad and Solla)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import (
    Activation,
    Index,
    Matrix,
    Number,
    Numbers,
    Real,
    Reals,
    WholeNumber,
    Word,
)
from sgdlimits.tasks.activations import NamedActivation, resolve, roughest
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily


class TeacherStudent(MultiIndexFamily):
    r"""x ~ N(0, I), y = Σ_n b_n τ(a_n) + √noise ε, student f = Σ_i v_i σ(s_i), loss ½(y − f)².

    Averages are closed forms where both activations are erf or both the square.

    Args:
        activation: σ: "erf" (erf(x/√2)), "relu", "square", "tanh" or an elementwise JAX function.
        teacher_width: number of teacher neurons.
        student_width: number of student neurons K.
        noise: variance of the label noise.
        teacher_gram: Gram matrix of the teacher's directions; the identity by default.
        readout: "trained" to make v a statistic; with "fixed" all v_i = 1.
        scale: "mean" divides both sums by their widths (L23), "sum" does not (Saad and Solla).
        teacher_readout: b, one number for each teacher neuron (a* in L23); ones by default.
        teacher_activation: τ, given as σ is; σ itself by default.

    >>> TeacherStudent(teacher_width=1).anchors
    ('teacher0',)
    >>> TeacherStudent(activation="relu", teacher_activation="erf", teacher_readout=[1.0, -1.0])
    ...     # doctest: +ELLIPSIS
    TeacherStudent(activation='relu', ... teacher_readout=[1.0, -1.0], teacher_activation='erf')
    """

    teacher_width: int = eqx.field(static=True)
    noise: float
    scale: str = eqx.field(static=True)
    teacher_readout: np.ndarray | None
    _activation: NamedActivation = eqx.field(static=True)
    _teacher_activation: NamedActivation | None = eqx.field(static=True)  # None: the same

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
        teacher_readout: Numbers | None = None,
        teacher_activation: Word | Activation | None = None,
    ):
        self._activation = resolve("activation", activation)
        self._teacher_activation = (
            None
            if teacher_activation is None
            else resolve("teacher_activation", teacher_activation)
        )
        self.teacher_width = _checks.integer("teacher_width", teacher_width, least=1)
        self.noise = _checks.nonnegative("noise", noise)
        self.scale = _checks.choice("scale", scale, ("mean", "sum"))
        self.teacher_readout = (
            None
            if teacher_readout is None
            else _checks.array("teacher_readout", teacher_readout, (self.teacher_width,))
        )
        if teacher_gram is not None:
            teacher_gram = _checks.gram("teacher_gram", teacher_gram, self.teacher_width)
        super().__init__(
            width=_checks.integer("student_width", student_width, least=1),
            anchors=tuple(f"teacher{n}" for n in range(self.teacher_width)),
            gram=teacher_gram,
            trained=_checks.choice("readout", readout, ("fixed", "trained")) == "trained",
            kinks=roughest(self._activation, self._teacher),
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
        clean = jnp.sum(self._scales[1] * self._teacher.function(anchors))
        return clean + jnp.sqrt(self.noise) * noise

    @property
    def noisy(self) -> bool:
        """Where their variance is not zero."""
        return self.noise > 0

    @property
    def committee(self) -> Committee | None:
        """Exact for erf and the square, if student and teacher have the same."""
        return self.squared if self._activation.exact else None

    @property
    def squared(self) -> Committee | None:
        """The risk is known for ReLU too."""
        if not self._activation.paired or self._teacher != self._activation:
            return None
        student, teacher = self._scales
        return Committee(self._activation.name, student, teacher, self.noise)

    @property
    def _teacher(self) -> NamedActivation:
        return self._activation if self._teacher_activation is None else self._teacher_activation

    @property
    def _scales(self) -> tuple[float, Reals]:
        """What the student's sum is multiplied by, and what each of the teacher's units is."""
        mean = self.scale == "mean"
        student, teacher = (1 / self.width, 1 / self.teacher_width) if mean else (1.0, 1.0)
        if self.teacher_readout is None:
            return student, teacher
        return student, teacher * jnp.asarray(self.teacher_readout)

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, a caller's own activations among them."""
        teacher = self._teacher_activation
        own = {
            "activation": self._activation.argument,
            "teacher_activation": None if teacher is None else teacher.argument,
        }
        return super().arguments() | own

    # the constructor's words, for provenance
    @property
    def activation(self) -> str:
        """Name of the activation."""
        return self._activation.name

    @property
    def teacher_activation(self) -> str | None:
        """Name of the teacher's activation, None if it is the student's."""
        return None if self._teacher_activation is None else self._teacher_activation.name

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
