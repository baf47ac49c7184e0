"""Your own task: any loss of a few local fields, on any Gaussian mixture."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Flag, Index, Matrix, Number, Numbers, Numeric, Real, WholeNumber, Word
from sgdlimits.tasks.callables import keywords_of, named_numbers
from sgdlimits.tasks.multi_index import MultiIndexFamily
from sgdlimits.tasks.trial import try_functions

Loss = Callable[..., Any]
Label = Callable[..., Any]
Decision = Callable[..., Any]

_POSITIONAL = {"loss": 3, "labels": 3, "decide": 2}

# statistics, their axes, and what stands beside a parameter in a bifurcation diagram
_TAKEN = {"step", "v", "M", "R", "neuron", "neuron_", "anchor", "run", "time", "branch", "point"}
_TAKEN |= {"growth", "stability", "special", "kernel_dimension"}


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
            is zero, as for ReLU) or "anywhere": then kinks are looked for in the loss itself. Jumps
            of labels are looked for whatever is said here.
        decide: ``decide(fields, readout)``, the label that the network gives a sample, for its
            error: such as ``lambda s, v: jnp.sign(s[0])`` where labels are ±1.
        parameters: numbers (or arrays of them) by name, which these functions take as keyword
            arguments; each function gets those that it names. They are parameters like
            ``ridge``: ``replace(flip=0.2)`` changes one, ``bifurcations("flip", …)`` moves it,
            ``model.task.flip`` is where derivatives are taken, results note them.

    Programs are compiled once for a pair of functions, whatever the values of ``parameters``. A
    function that is made again is another function to JAX, be its text the same: a ``lambda`` or
    a ``def`` inside of a loop, closing over a number, compiles in every round. Write the function
    once, outside, and hand the number over in ``parameters``.

    A parameter may be where a loss or a label jumps, as in ``where(ndtr(z) < flip, -1.0, 1.0)``:
    the jump is located, and derivatives of the limit see it move.

    >>> import jax
    >>> hinge = lambda s, v, y: jax.nn.relu(1 - y * s[0])
    >>> task = MultiIndexTask(loss=hinge, anchors=["mu"], means=[[1.0], [-1.0]], labels=[1, -1])
    >>> task.shapes
    {'M': (1, 1), 'R': (1, 1)}
    >>> def flipped(component, anchors, noise, flip):  # a share ``flip`` of the labels is wrong
    ...     sign = 1.0 - 2.0 * component
    ...     return jnp.where(jax.scipy.special.ndtr(noise) < flip, -sign, sign)
    >>> options = {"anchors": ["mu"], "means": [[1.0], [-1.0]], "labels": flipped}
    >>> task = MultiIndexTask(loss=hinge, **options, parameters={"flip": 0.1})
    >>> task.flip, task.replace(flip=0.2).parameters()["flip"]
    (0.1, 0.2)
    """

    _loss: Loss = eqx.field(static=True)
    _label: Label | None = eqx.field(static=True)
    _values: dict[str, Any]  # parameters of the caller's functions: leaves, as real numbers are
    _loss_takes: tuple[str, ...] = eqx.field(static=True)  # names of those that it is given
    _label_takes: tuple[str, ...] = eqx.field(static=True)
    _decision: Decision | None = eqx.field(static=True)
    _decision_takes: tuple[str, ...] = eqx.field(static=True)

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
        decide: Decision | None = None,
        parameters: Mapping[str, Numeric] | None = None,
    ):
        if not callable(loss):
            raise _checks.InputError(
                f"loss={loss!r} is not allowed: loss must be a function of (fields, readout, label)"
            )
        if labels is None:
            raise _checks.InputError(
                "labels=None is not allowed: labels must be one number per component or a function"
            )
        if decide is not None and not callable(decide):
            raise _checks.InputError(
                f"decide={decide!r} is not allowed: decide must be a function of (fields, readout)"
            )
        self._loss = loss
        self._decision = decide
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
        given = {"loss": loss, "labels": labels, "decide": decide}
        functions = {name: function for name, function in given.items() if callable(function)}
        self._values = named_numbers(parameters, _names_in_use(type(self)))
        takes = keywords_of(functions, _POSITIONAL, self._values)
        self._loss_takes, self._label_takes = takes["loss"], takes.get("labels", ())
        self._decision_takes = takes.get("decide", ())
        labelled = MultiIndexTask._raw_label if self._label is not None else None
        decided = MultiIndexTask._raw_decision if decide is not None else None
        try_functions(self, MultiIndexTask._raw_loss, labelled, decided)

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """The loss given to the constructor."""
        return self._raw_loss(fields, readout, label)

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """The labels given to the constructor, be they numbers or a function."""
        if self._label is None:
            return super().label(component, anchors, noise)
        return jnp.asarray(self._raw_label(component, anchors, noise), float)

    def decide(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None
    ) -> Float[Array, ""]:
        """The decision given to the constructor."""
        if self._decision is None:
            raise _checks.InputError(
                "metric='error' is not allowed: this MultiIndexTask has no decision rule; give it "
                "one, MultiIndexTask(decide=...), a function of (fields, readout) that returns the "
                "label which the network gives the sample"
            )
        return jnp.asarray(self._raw_decision(fields, readout), float)

    @property
    def affine_label_noise(self) -> bool:
        """Unknown for a function that the caller wrote."""
        return False

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, the caller's functions among them."""
        own: dict[str, Any] = {"loss": self._loss, "parameters": dict(self._values)}
        own["decide"] = self._decision
        if self._label is not None:
            own["labels"] = self._label
        return super().arguments() | own

    def parameters(self) -> dict[str, Any]:
        """Every parameter by its name, those of the caller's functions among the others."""
        every = super().parameters()
        return every | every.pop("parameters")

    def replace(self, **changes: Any) -> "MultiIndexTask":
        """The same task with some parameters changed, validated as on construction.

        Those of the caller's functions may be given by name, or all of them as ``parameters``.

        >>> def loss(s, v, y, scale):
        ...     return (y - scale * s[0]) ** 2
        >>> task = MultiIndexTask(loss=loss, labels=[1.0], parameters={"scale": 2.0})
        >>> task.replace(scale=3.0, ridge=0.1).parameters()["scale"]
        3.0
        """
        own = {name: changes.pop(name) for name in self._values if name in changes}
        if own:
            given = changes.get("parameters", self._values)
            changes["parameters"] = {**given, **own} if isinstance(given, Mapping) else given
        task = super().replace(**changes)
        assert isinstance(task, MultiIndexTask)
        return task

    def __getattr__(self, name: str) -> Any:
        """A parameter of the caller's functions; called for what is no other attribute."""
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def readout(self) -> str:
        """Whether the readout is trained."""
        return "trained" if self.trained else "fixed"

    # what the caller's functions return, right or wrong

    def _raw_loss(self, *sample: Any) -> Any:
        return self._loss(*sample, **self._chosen(self._loss_takes))

    def _raw_label(self, *sample: Any) -> Any:
        assert self._label is not None
        return self._label(*sample, **self._chosen(self._label_takes))

    def _raw_decision(self, *sample: Any) -> Any:
        assert self._decision is not None
        return self._decision(*sample, **self._chosen(self._decision_takes))

    def _chosen(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: jnp.asarray(self._values[name]) for name in names}


def _names_in_use(task: type) -> set[str]:
    """What no parameter can be called: attributes of the task, names in limits and results."""
    arguments = inspect.signature(task.__init__).parameters  # type: ignore[misc]
    fields = {field.name for field in dataclasses.fields(task)}
    return {*dir(task), *fields, *arguments, *_TAKEN}
