"""Your own task: any loss of a few local fields, on any Gaussian mixture."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Flag, Index, Matrix, Number, Numbers, Real, WholeNumber, Word
from sgdlimits.tasks.multi_index import MultiIndexFamily

Loss = Callable[..., Any]
Label = Callable[..., Any]


class MultiIndexTask(MultiIndexFamily):
    r"""A task of your own: data x = means[c] · A + z/√precision and a loss ℓ(s, v, y), s = Wx.

    Args:
        loss: ``loss(fields, readout, label)`` for one sample, in JAX: fields s of shape (width,),
            readout v of shape (width,) or None, a scalar label; returns a scalar.
        width: number of neurons K (rows of W).
        anchors: names of the directions that means and labels are made of.
        labels: one number per component, or a function ``labels(component, anchors, noise)`` of the
            component's index, the anchor fields Ax (shape (r,)) and a standard normal number.
        gram: Gram matrix of the anchors; the identity by default.
        means: one row per component, in units of the anchors; a single centred component by
            default.
        weights: probabilities of the components; equal by default.
        precision: λ; every direction has noise of variance 1/λ. ``math.inf`` for no noise.
        ridge: α; adds (α/2)(‖v‖² + ‖W‖²) to the loss.
        readout: "trained" to make v a statistic, "fixed" for none.
        spherical: rows of W are rescaled to norm 1 after every step.
        kinks: where the loss is not analytic: "none", "zero" (only where a field or an anchor field
            is zero, as for ReLU) or "anywhere". The more is known, the more accurate the limit.

    >>> import jax
    >>> hinge = lambda s, v, y: jax.nn.relu(1 - y * s[0])
    >>> task = MultiIndexTask(loss=hinge, anchors=["mu"], means=[[1.0], [-1.0]], labels=[1, -1])
    >>> task.shapes
    {'M': (1, 1), 'R': (1, 1)}
    """

    _loss: Loss = eqx.field(static=True)
    _label: Label | None = eqx.field(static=True)

    def __init__(
        self,
        *,
        loss: Loss,
        width: WholeNumber = 1,
        anchors: Sequence[str] = ("anchor",),
        labels: Numbers | Label,
        gram: Matrix | None = None,
        means: Matrix | None = None,
        weights: Numbers | None = None,
        precision: Number = 1.0,
        ridge: Number = 0.0,
        readout: Word = "fixed",
        spherical: Flag = False,
        kinks: Word = "anywhere",
    ):
        if not callable(loss):
            raise _checks.InputError(
                f"loss={loss!r} is not allowed: loss must be a function of (fields, readout, label)"
            )
        if labels is None:
            raise _checks.InputError(
                "labels=None is not allowed: labels must be one number per component or a function"
            )
        self._loss = loss
        self._label = labels if callable(labels) else None
        super().__init__(
            width=width,
            anchors=anchors,
            gram=gram,
            means=means,
            weights=weights,
            labels=None if callable(labels) else labels,
            precision=precision,
            ridge=ridge,
            trained=_checks.choice("readout", readout, ("fixed", "trained")) == "trained",
            spherical=spherical,
            kinks=kinks,
        )
        with jax.enable_x64(True):
            if self._label is not None:
                _check_scalar("labels", self._output_of_label)
            loss_type = _check_scalar("loss", self._output_of_loss)
        if not jnp.issubdtype(loss_type, jnp.floating):
            raise _checks.InputError(
                f"loss returns {loss_type} for one sample, which is not allowed: "
                "loss must return a real number"
            )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """The loss given to the constructor."""
        return self._loss(fields, readout, label)

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The labels given to the constructor, where they are a function."""
        assert self._label is not None
        return jnp.asarray(self._label(component, anchors, noise), anchors.dtype)

    @property
    def affine_label_noise(self) -> bool:
        """Unknown for a function that the caller wrote."""
        return False

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, the caller's functions among them."""
        functions: dict[str, Any] = {"loss": self._loss}
        if self._label is not None:
            functions["labels"] = self._label
        return super().arguments() | functions

    @property
    def readout(self) -> str:
        """Whether the readout is trained."""
        return "trained" if self.trained else "fixed"

    def _output_of_label(self) -> Any:
        assert self._label is not None
        return self._label(jnp.asarray(0), jnp.zeros(len(self.anchors)), jnp.zeros(()))

    def _output_of_loss(self) -> Any:
        fields = jnp.zeros(self.width)
        return self._loss(fields, fields if self.trained else None, jnp.zeros(()))


def _check_scalar(name: str, function: Callable[[], Any]) -> Any:
    """Return the type of the number that ``function`` gives; ValueError if it gives no number."""
    try:
        output = jax.eval_shape(function)
    except Exception as error:
        raise _checks.InputError(
            f"{name} fails for one sample, which is not allowed: {name} must be a JAX function of "
            f"the documented arguments ({type(error).__name__}: {str(error).splitlines()[0]})"
        ) from error
    shape = getattr(output, "shape", None)
    if shape != ():
        described = f"shape {shape}" if shape is not None else f"a {type(output).__name__}"
        raise _checks.InputError(
            f"{name} returns {described} for one sample, which is not allowed: "
            f"{name} must return a scalar"
        )
    return output.dtype
