"""What an experiment is: its place in the papers, computation, scorecard and picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import xarray as xr
from matplotlib.figure import Figure

from sgdlimits.experiments.checks import Check
from sgdlimits.experiments.settings import Settings

PRESETS = ("tiny", "quick", "paper")
P = TypeVar("P", bound=Settings)
Data = dict[str, xr.Dataset]


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """One claim of a paper, made something that can be run.

    Args:
        paper: number of the paper, ``"000"`` to ``"004"``, or ``"ours"``.
        figure: figure or equation, such as ``"Fig. 1"`` or ``"(3.4)"``.
        claim: what the paper says, or the theory, on one line.
        parameters: the class of its settings, whose defaults are the paper's own values.
        tiny: what differs from the paper's values in a run of a few seconds, for tests.
        quick: what differs from the paper's values in a run of at most half a minute.
        compute: from settings and seed to labelled data, by name.
        check: from settings and data to the scorecard.
        draw: from settings and data to the picture.
        headline: whether it is one of the few that tell the story.
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

    def preset(self, name: str) -> dict[str, Any]:
        """The values of a preset, to be completed by the defaults."""
        return dict({"tiny": self.tiny, "quick": self.quick, "paper": {}}[name])
