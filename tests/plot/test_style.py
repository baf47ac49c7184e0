"""Palette, captions, symbols and files."""

import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from sgdlimits.plot import compare, save, style, symbol
from sgdlimits.results import build


def test_the_style_of_the_caller_comes_back() -> None:
    before = dict(matplotlib.rcParams)
    with style.figure_style():
        assert matplotlib.rcParams["font.size"] != before["font.size"]
    assert dict(matplotlib.rcParams) == before


def test_drawing_leaves_the_style_of_the_caller(runs: xr.Dataset) -> None:
    before = dict(matplotlib.rcParams)
    compare(runs, None, ["v[0]"])
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, "1 run"),
        (
            {"task": "OnlinePCA", "dim": 10**9, "step": 0.5},
            "OnlinePCA · dim 1000000000, step 0.5, 1 run",
        ),
        (
            {
                "task": "T",
                "parameters": {"precision": math.inf, "weights": None, "teacher_width": 2},
            },
            "T · precision ∞, teacher width 2 · 1 run",
        ),
        (
            {"parameters": {"weights": [0.25, 0.75], "means_gram": [[1.0]], "spherical": True}},
            "weights (0.25, 0.75), means gram given, spherical · 1 run",
        ),
        (
            {"parameters": {"spherical": False, "activation": "erf"}},
            "not spherical, activation erf · 1 run",
        ),
    ],
)
def test_caption_says_what_a_result_is(attrs: dict[str, Any], expected: str) -> None:
    dims = {"m": ("run", "time")}
    assert style.caption(build({"m": np.zeros((1, 2))}, dims, {}, attrs)) == expected


def test_a_solution_has_no_runs_in_its_caption() -> None:
    result = build({"m": np.zeros(2)}, {"m": ("time",)}, {}, {"task": "T", "step": 1.0})
    assert style.caption(result) == "T · step 1"


def test_long_captions_are_broken_to_fit() -> None:
    parameters = {f"parameter_{i}": float(i) for i in range(9)}
    attrs = {"task": "XorMixture", "parameters": parameters, "dim": 2000, "step": 1.0}
    figure = Figure(figsize=(4.4, 4.0), layout="constrained")
    figure.subplots()
    with style.figure_style():
        style.put_caption(figure, style.caption(xr.Dataset(attrs=attrs)))
    figure.draw_without_rendering()
    (title,) = [text for text in figure.texts if text.get_text()]
    assert title.get_text().count("\n") >= 2
    assert title.get_text().replace("\n", " ").count("parameter") == 9
    assert title.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m", "$m$"),
        ("r2", r"$r_\perp^2$"),
        ("v[0]", "$v_{0}$"),
        ("M[0,mu]", r"$M_{0,\mu}$"),
        ("M[3, nu]", r"$M_{3,\nu}$"),
        ("M[0,mu1]", r"$M_{0,\mu_{1}}$"),
        ("M[0,mu_12]", r"$M_{0,\mu_{12}}$"),
        ("M[0,teacher0]", r"$M_{0,\mathrm{teacher}_{0}}$"),
        ("R[0,1]", "$R_{01}$"),
        ("R[10,2]", "$R_{10,2}$"),
        ("loss", r"$\mathrm{loss}$"),
        ("M[0,a_b $c%]", r"$M_{0,\mathrm{a\_b\ \$c\%}}$"),
    ],
)
def test_symbols_are_valid_mathtext(name: str, expected: str) -> None:
    assert symbol(name) == expected
    MathTextParser("agg").parse(expected)


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_pictures_are_written_whole_and_the_same_each_time(
    tmp_path: Path, runs: xr.Dataset, limit: xr.Dataset, suffix: str, start: bytes
) -> None:
    first, second = tmp_path / "new" / f"a{suffix}", tmp_path / "new" / f"b{suffix}"
    for path in (first, second, second):
        save(compare(runs, limit, ["v[0]"]), path)
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, second.name]


def test_a_failed_write_keeps_the_old_picture(
    tmp_path: Path, runs: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def write_half(figure: Figure, target: Path, **options: object) -> None:
        target.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(Figure, "savefig", write_half)
    with pytest.raises(OSError, match="no space"):
        save(compare(runs, None, ["v[0]"]), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path=.*must end in \.png, \.pdf or \.svg"):
        save(Figure(), tmp_path / "a.jpg")
