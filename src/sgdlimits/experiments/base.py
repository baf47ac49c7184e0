"""What an experiment is: its source in the papers, computation, scorecard and picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits.experiments.checks import Check
from sgdlimits.experiments.settings import Settings, setting

# Axes and Figure are matplotlib's: what an experiment draws in, and what it returns
__all__ = [
    "PRESETS",
    "Axes",
    "Check",
    "Data",
    "Experiment",
    "Figure",
    "Settings",
    "experiment",
    "setting",
]

PRESETS = ("tiny", "quick", "paper")
Data = dict[str, xr.Dataset]


@runtime_checkable
class Runnable(Protocol):
    """The settings of an experiment, with what it does: what :func:`experiment` decorates."""

    def compute(self, seed: int) -> Data:
        """Labelled data, by name."""

    def check(self, data: Data) -> Sequence[Check]:
        """The scorecard; its docstring says what is checked, for ``sgdlimits show``."""

    def draw(self, data: Data) -> Figure:
        """The picture."""


P = TypeVar("P", bound=Settings)
R = TypeVar("R", bound=Runnable)


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """One claim of a paper, made something that can be run.

    Args:
        paper: citation key such as ``"BGJ22"``, or ``"ours"``.
        figure: figure or equation, such as ``"Fig. 1"`` or ``"(3.4)"``.
        claim: what the paper says, or the theory, on one line.
        parameters: the class of its settings, whose defaults are the paper's own values.
        tiny: what differs from the paper's values in a run of a few seconds, for tests.
        quick: what differs from the paper's values in a run of at most half a minute.
        compute: from settings and seed to labelled data, by name.
        check: from settings and data to the scorecard.
        draw: from settings and data to the picture.
        headline: whether it is one of the few that tell the story.
        cost: how long it takes, in units of a usual one: the longest are started first.
    """

    paper: str
    figure: str
    claim: str
    parameters: type[P]
    tiny: Mapping[str, Any]
    quick: Mapping[str, Any]
    compute: Callable[[P, int], Data]
    check: Callable[[P, Data], Sequence[Check]]
    draw: Callable[[P, Data], Figure]
    headline: bool = False
    cost: float = 1.0

    def preset(self, name: str) -> dict[str, Any]:
        """The values of a preset, to be completed by the defaults."""
        return dict({"tiny": self.tiny, "quick": self.quick, "paper": {}}[name])


def experiment(
    *,
    paper: str,
    figure: str,
    claim: str,
    tiny: Mapping[str, Any],
    quick: Mapping[str, Any],
    headline: bool = False,
    cost: float = 1.0,
) -> Callable[[type[R]], type[R]]:
    """Make a class of settings with ``compute``, ``check`` and ``draw`` an experiment.

    The class stays as it is, so that others can inherit from it; the :class:`Experiment` is its
    attribute ``experiment``, where the registry finds it. The arguments are those of
    :class:`Experiment`.

    >>> @experiment(paper="ours", figure="—", claim="Zero is zero.", tiny={"size": 2}, quick={})
    ... class Zeros(Settings):
    ...     size: int = setting(100, "how many", least=1)
    ...
    ...     def compute(self, seed: int) -> Data:
    ...         return {"zeros": xr.Dataset({"x": ("run", [0.0] * self.size)})}
    ...
    ...     def check(self, data: Data) -> list[Check]:
    ...         return [Check("largest", 0.0, float(data["zeros"].x.max()), 0.0, 1e-9)]
    ...
    ...     def draw(self, data: Data) -> Figure:
    ...         return Figure()
    >>> zeros = Zeros.experiment
    >>> settings = zeros.parameters(**zeros.preset("tiny"))
    >>> zeros.check(settings, zeros.compute(settings, 0))[0].status
    'passed'
    """

    def decorate(cls: type[R]) -> type[R]:
        settings: Any = cls
        settings.experiment = Experiment(
            paper=paper,
            figure=figure,
            claim=claim,
            parameters=settings,
            tiny=tiny,
            quick=quick,
            compute=settings.compute,
            check=settings.check,
            draw=settings.draw,
            headline=headline,
            cost=cost,
        )
        return cls

    return decorate
