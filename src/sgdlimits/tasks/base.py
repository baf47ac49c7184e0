"""What every task is: a learning problem that SGD sees through a few summary statistics."""

import abc
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._names import did_you_mean, explain, explained
from sgdlimits._types import Number, Numeric, State, StateLike, WholeNumber
from sgdlimits.tasks.initial import InitialLaw
from sgdlimits.tasks.layout import Layout

BLOCK = 512  # random states that are drawn together


class _Quiet(type(eqx.Module)):  # type: ignore[misc]
    """Leaves the machinery of equinox out of ``help(task)``, which lists what ``dir`` does.

    A call with arguments that the task does not have says which were meant.
    """

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name == "__init__" or name[0] != "_"]

    if not TYPE_CHECKING:  # static checkers read the arguments of __init__

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """Make a task."""
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                explain(cls.__init__, cls.__name__, (cls, *args), kwargs)
                raise


class Task(eqx.Module, metaclass=_Quiet):
    """A learning problem together with the summary statistics that describe SGD on it.

    Tasks are frozen. Their real parameters (precision, snr, ridge, ...) are leaves of a pytree, so
    one compilation serves all values; widths, orders and names are part of the structure.
    """

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def layout(self) -> Layout:
        """Every summary statistic: its axes, their labels, and what makes it part of a state."""

    @property
    @abc.abstractmethod
    def least_dim(self) -> int:
        """The smallest data dimension in which every state exists."""

    @abc.abstractmethod
    def draw_states(self, dim: int, generator: np.random.Generator, count: int) -> State:
        """The statistics of weights with independent N(0, 1/dim) entries, ``count`` times.

        Draws lie along a leading axis.
        """

    # --- only needed where the task exists in fewer dimensions ----------------------------------

    @property
    def smallest_dim(self) -> int:
        """The smallest data dimension in which there is any state."""
        return self.least_dim

    # --- only needed where the statistics obey a constraint -------------------------------------

    def constraint(self, state: Mapping[str, Any]) -> Float[Array | np.ndarray, " m"]:
        """What vanishes at every state, such as squared norms minus one on the sphere."""
        return np.zeros(0)

    def project(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The nearest state, for arrays of NumPy or JAX, with leading axes or without."""
        return self.layout.clip(state)

    def check_values(self, state: State, argument: str) -> None:
        """Raise InputError if a state with the right names and shapes cannot occur."""
        self.layout.check(state, argument)

    # --- only needed where random states may have another law -----------------------------------

    def with_law(self, states: State, law: InitialLaw) -> State:
        """What the draws of :meth:`draw_states` are under another law; refuse what is not there."""
        reasons = dict.fromkeys(law._fields, "draws its random states with one law only")
        law.without(reasons, type(self).__name__)
        return states

    # --- only needed where random states do not lead to all rest points -------------------------

    def search_states(self, count: int, seed: int) -> State:
        """States from which rest points are searched, along a leading axis.

        Random ones, with overlaps from microscopic to of order one.
        """
        dims = (self.least_dim + 1, self.least_dim + 10, 1000)
        generators = [np.random.default_rng([seed, i]) for i in range(count)]
        parts = [self.draw_states(dims[i % 3], g, 1) for i, g in enumerate(generators)]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.shapes}

    # --- given ----------------------------------------------------------------------------------

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each summary statistic, by name, in the order of the flat coordinates."""
        return self.layout.shapes

    @explained
    def random_state(
        self,
        dim: WholeNumber,
        seed: WholeNumber,
        *,
        runs: WholeNumber | range | None = None,
        readout: Numeric | None = None,
        scale: Number | None = None,
        overlap: Numeric | None = None,
    ) -> State:
        """Draw the statistics of random weights: W ~ N(0, I/dim), v ~ N(0, I).

        On the sphere the rows of W are uniform. The same seed gives the states from which the runs
        of ``simulate(..., seed=seed)`` start, and the same randomness whatever law is asked for.

        Args:
            dim: the data dimension d.
            seed: a whole number.
            runs: how many states, along a leading axis, or the numbers of some of them as a range.
                State i is the same whatever the others are. By default one state without that axis,
                which is state 0.
            readout: where the readout starts, a number or one for each neuron, in place of N(0, I):
                1 in appendix I of AKLS23.
            scale: W ~ N(0, scale·I/dim): 1/precision in Proposition 4.2 of BGJ22.
            overlap: the overlaps with the anchors, M or m, or a number for all of them: an aligned
                start. What is orthogonal to the anchors is random as before; on the sphere its
                directions are, and norms are what is left of 1.

        Returns:
            The state, a dict of float64 arrays.

        >>> import sgdlimits as sl
        >>> task = sl.tasks.PhaseRetrieval(width=2, readout="trained")
        >>> starts = task.random_state(1000, seed=0, runs=3, readout=1.0, overlap=0.1)
        >>> starts["v"].tolist(), starts["M"].shape, starts["R"][:, 0, 0].round(12)
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], (3, 2, 1), array([0.99, 0.99, 0.99]))
        """
        several = runs is not None
        if not isinstance(runs, range):
            runs = range(_checks.integer("runs", runs, least=1) if several else 1)
        if len(runs) == 0 or min(runs) < 0:
            raise _checks.InputError(
                f"runs={runs!r} is not allowed: a range must have numbers, and none below 0"
            )
        states = self.random_states(dim, seed, runs)
        law = InitialLaw(readout, scale, overlap)
        states = states if law.usual else self.with_law(states, law)
        return states if several else {name: value[0] for name, value in states.items()}

    def random_states(self, dim: WholeNumber, seed: WholeNumber, runs: range) -> State:
        """Draw one state for each run; run i is the same whatever the other runs are.

        Run 0 is drawn by itself; those after it are drawn in blocks, always whole ones.
        """
        dim, seed = self.check_dim(dim), _checks.integer("seed", seed, least=0)
        if len(runs) == 0:
            return {name: np.empty((0, *shape)) for name, shape in self.shapes.items()}
        blocks = range(-(-min(runs) // BLOCK), -(-max(runs) // BLOCK) + 1)
        parts = [
            self.draw_states(dim, np.random.default_rng([seed, b]), BLOCK if b else 1)
            for b in blocks
        ]
        first = (blocks[0] - 1) * BLOCK + 1 if blocks[0] else 0  # of the runs that are drawn
        wanted = np.asarray(runs) - first
        return {name: np.concatenate([part[name] for part in parts])[wanted] for name in parts[0]}

    def check_dim(self, dim: WholeNumber) -> int:
        """Return ``dim`` if this task exists in that dimension, else raise InputError."""
        if _checks.is_whole(dim) and dim < self.smallest_dim:
            raise _checks.InputError(
                f"dim={dim} is not allowed: {type(self).__name__} needs dim >= {self.smallest_dim}"
            )
        return _checks.integer("dim", dim, least=self.smallest_dim)

    def check_state(
        self, state: StateLike, runs: int | None = None, *, argument: str = "state"
    ) -> State:
        """Return ``state`` as float64 arrays if it is a state of this task, else raise InputError.

        Args:
            state: values by name.
            runs: if given, arrays may carry a leading axis of this length (one state per run).
            argument: what the caller calls it, for the error message.
        """
        result = self.check_shapes(state, runs, argument=argument)
        self.check_values(result, argument)
        return result

    def check_shapes(
        self, state: StateLike, runs: int | None = None, *, argument: str = "state"
    ) -> State:
        """The same for values that need not be those of a state, as those of a drift."""
        if "time" in getattr(state, "dims", ()):
            raise _checks.InputError(
                f"{argument} is a Dataset over time, which is not allowed: "
                "dataset.isel(time=-1) is its end, and sgdlimits.results.state(dataset, time=...) "
                "takes a state out of it"
            )
        if isinstance(state, xr.Dataset) and set(self.shapes) <= set(state.data_vars):
            order = self.layout.dims  # whatever else it holds, such as `diverged`, is no statistic
            state = {
                name: state[name].transpose("run", *dims, missing_dims="ignore")
                for name, dims in order.items()
            }
        if not isinstance(state, Mapping) or set(state) != set(self.shapes):
            given = list(state) if isinstance(state, Mapping) else type(state).__name__
            raise _checks.InputError(
                f"{argument}={given} is not allowed: a state of {type(self).__name__} "
                f"must be a dict with exactly the names {list(self.shapes)}"
            )
        names = {name: f"{argument}[{name!r}]" for name in self.shapes}
        arrays = {name: _checks.array(names[name], state[name], None) for name in self.shapes}
        batched = any(arrays[name].ndim == len(shape) + 1 for name, shape in self.shapes.items())
        prefix = (runs,) if batched and runs is not None else ()
        result = {
            name: _checks.array(names[name], arrays[name], (*prefix, *shape))
            for name, shape in self.shapes.items()
        }
        if runs == 0:
            raise _checks.InputError(f"{argument} is not allowed: it must hold at least one state")
        return result

    def arguments(self) -> dict[str, Any]:
        """What the constructor makes this task from; functions are functions here."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def parameters(self) -> dict[str, Any]:
        """Every parameter by its name, those of a caller's own functions among them.

        As JSON can hold them, for provenance.
        """
        return {name: plain(value) for name, value in self.arguments().items()}

    def replace(self, **changes: Any) -> "Task":
        """The same task with some parameters changed, validated as on construction.

        >>> import sgdlimits as sl
        >>> sl.tasks.SpikedTensor(order=3, snr=4.0).replace(snr=5.0)
        SpikedTensor(order=3, snr=5.0, ridge=0.0)
        """
        arguments = self.arguments()
        for name, value in changes.items():
            if name not in arguments:
                known = dict.fromkeys([*arguments, *self.parameters()])
                told = f"the parameters of {type(self).__name__} are {', '.join(known)}"
                hint = did_you_mean(name, known)
                raise _checks.InputError(
                    f"{name}={value!r} is not allowed: " + "; ".join(filter(None, [told, hint]))
                )
        return type(self)(**(arguments | changes))

    def __repr__(self) -> str:
        values = {name: plain(value) for name, value in self.arguments().items()}
        inside = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({inside})"


def plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it: arrays as lists, functions by their name."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return value
