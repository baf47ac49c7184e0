"""One look for all pictures: palette, sizes, captions."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from sgdlimits.results import parameters

PALETTE = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky blue": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
}
"""The palette of Okabe and Ito, told apart with any colour vision."""

SIMULATION = PALETTE["blue"]
LIMIT = PALETTE["black"]
PATHS = PALETTE["vermillion"]

TIME_LABEL = "time $t$ (= step × samples / dim)"

_RC: Any = {
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelsize": 13,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": cycler(
        color=[PALETTE[c] for c in ("blue", "vermillion", "green", "orange", "purple", "sky blue")]
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.dpi": 100,
    "font.size": 10.5,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "mathtext.fontset": "cm",
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "sgdlimits",  # the same figure, the same file
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw with the style of the library inside a ``with`` block; the caller's comes back after.

    >>> with figure_style():
    ...     matplotlib.rcParams["legend.frameon"]
    False
    """
    with matplotlib.rc_context(_RC):
        yield


def caption(dataset: xr.Dataset) -> str:
    """Return a one-line text of what a result is, from its attributes.

    >>> attrs = {"task": "SpikedTensor", "parameters": '{"order": 2, "snr": 1.2}', "dim": 1000}
    >>> caption(xr.Dataset(attrs=attrs))
    'SpikedTensor · order 2, snr 1.2 · dim 1000'
    """
    words = [_setting(name, value) for name, value in parameters(dataset).items()]
    scales = [_setting(name, dataset.attrs.get(name)) for name in ("dim", "step")]
    if "run" in dataset.dims:
        count = dataset.sizes["run"]
        scales.append(f"{count} run{'' if count == 1 else 's'}")
    parts = [str(dataset.attrs.get("task", "")), _commas(words), _commas(scales)]
    return " · ".join(part for part in parts if part)


def put_caption(figure: Figure, text: str) -> None:
    """Write ``text`` small at the top left of a figure, on as many lines as its width asks for."""
    width = int(figure.get_figwidth() * 14.5)  # characters of 9 points in an inch, with a margin
    lines: list[str] = []
    for part in text.split(" · "):
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += " · " + part
        else:
            lines.append(part)
    figure.suptitle(
        "\n".join(line for long in lines for line in _fold(long, width)),
        x=0.02,
        ha="left",
        fontsize=9,
        color="0.35",
    )


def number(value: Any) -> str:
    """Return a parameter as it is written in a picture.

    >>> number(0.25), number(1000.0), number(math.inf), number("relu")
    ('0.25', '1000', '∞', 'relu')
    """
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _fold(line: str, width: int) -> list[str]:
    folded = [""]
    for word in line.split(", "):
        joined = f"{folded[-1]}, {word}" if folded[-1] else word
        if folded[-1] and len(joined) > width:
            folded[-1] += ","
            folded.append(word)
        else:
            folded[-1] = joined
    return folded


def _commas(words: list[str]) -> str:
    return ", ".join(word for word in words if word)


def _setting(name: str, value: Any) -> str:
    """Return 'name value' in words, '' for a parameter that was left out."""
    word = name.replace("_", " ")
    if value is None or value == "null":
        return ""
    if isinstance(value, bool):
        return word if value else f"not {word}"
    if isinstance(value, list):
        nested = any(isinstance(entry, list) for entry in value)
        return f"{word} given" if nested else f"{word} ({', '.join(map(number, value))})"
    return f"{word} {number(value)}"
