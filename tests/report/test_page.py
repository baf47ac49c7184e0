"""The page: complete, readable without a network, and safe with any text."""

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sgdlimits.experiments import Job, Outcome
from sgdlimits.experiments.papers import PAPERS
from sgdlimits.report import write_page


def check(**changes: Any) -> dict[str, Any]:
    usual = {
        "name": "overlap < 1",
        "expected": 0.5,
        "measured": 0.52,
        "error": 0.01,
        "tolerance": 0.04,
        "note": "a & b",
        "printed": None,
        "status": "passed",
    }
    return usual | changes


def outcome(folder: Path, name: str, *checks: dict[str, Any]) -> Outcome:
    folder.mkdir()
    Image.new("RGB", (3000, 1500), "white").save(folder / "picture.png")
    record = {
        "name": name,
        "paper": "BGJ22",
        "figure": "Fig. 1",
        "claim": "<script>alert(1)</script> holds.",
        "preset": "tiny",
        "parameters": {"dim": 12345, "snrs": [0.8, 1.2], "precision": "inf", "exact": True},
        "seed": 0,
        "checks": list(checks),
        "seconds": {"compute": 1.0, "all": 2.0},
        "started": "2026-01-01T00:00:00+00:00",
        "code": "0.1.0+abc",
        "versions": {"jax": "0.10"},
        "warnings": ["one run diverged"],
    }
    return Outcome(Job(name, "tiny", {}, 0, folder), record)


class Reader(HTMLParser):
    """Tags that are open, and what the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asked: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.asked += [str(found[name]) for name in ("src", "href") if name in found]
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def text(tmp_path: Path) -> str:
    outcomes = [
        outcome(tmp_path / "a", "first", check(), check(status="failed", measured="nan")),
        outcome(tmp_path / "b", "second", check(printed=0.7, status="erratum")),
        Outcome(Job("third", "tiny", {}, 0, tmp_path / "c"), error="third is damaged"),
    ]
    write_page(outcomes, tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_it_is_complete(text: str) -> None:
    for word in (
        "2 experiments",
        "3 checks",
        "✓ 1 passed",
        "✎ 1 errata",
        "✗ 1 failed",
        "printed: <s>0.7</s>",
        "third is damaged",
        "one run diverged",
        "0.8, 1.2",
        "dim <b>12345</b>",
        "exact <b>true</b>",
        "jax 0.10",
    ):
        assert word in text


def test_pictures_come_first_and_the_table_last(text: str) -> None:
    order = ["<h2>Failed</h2>", "<figure>", 'id="errata"', 'id="checks"', "<h2>References</h2>"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert "overlap &lt; 1 is nan, 0.5 was expected" in text
    assert '<a href="#checks">3 checks</a>' in text


def test_papers_are_cited(text: str) -> None:
    assert text.count('<p class="place"><a href="#paper-BGJ22">BGJ22</a> · Fig. 1</p>') == 2
    assert f'<li id="paper-BGJ22"><b>BGJ22</b>: {PAPERS["BGJ22"]}</li>' in text
    assert "AKLS23" not in text  # nothing here is of that paper


def test_other_papers_and_mixed_versions(tmp_path: Path) -> None:
    first, second = outcome(tmp_path / "a", "first"), outcome(tmp_path / "b", "second")
    assert first.record is not None
    assert second.record is not None
    first.record["paper"] = "<b>000"  # of another version of the catalogue
    second.record["versions"] = {"jax": "0.11"}
    write_page([first, second], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<p class="place">&lt;b&gt;000 · Fig. 1</p>' in text
    assert "jax 0.10, 0.11" in text


def test_it_is_well_formed_and_needs_no_network(text: str) -> None:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    inside = [target for target in reader.asked if target.startswith("#")]
    assert {target[1:] for target in inside} <= reader.ids
    rest = [target for target in reader.asked if target not in inside]
    assert all(target.startswith("data:image/png;base64,") for target in rest)
    assert "http" not in text


def test_colours_of_a_narrow_scale_survive(tmp_path: Path) -> None:
    lines = np.random.default_rng(0).uniform(0, 255, (400, 1000, 1)) * [0.4, 0.7, 1.0]
    scale = np.linspace([255, 140, 0], [45, 0, 75], 400)[:, None].repeat(10, axis=1)
    drawn = np.concatenate([lines, scale], axis=1).astype(np.uint8)
    one = outcome(tmp_path / "a", "first")
    Image.fromarray(drawn).save(tmp_path / "a" / "picture.png")
    write_page([one], tmp_path / "report.html")
    found = re.search('base64,([^"]*)"', (tmp_path / "report.html").read_text(encoding="utf-8"))
    assert found is not None
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGB"))
    assert np.abs(shown.astype(int) - drawn).max() < 20


def test_text_cannot_become_code(text: str) -> None:
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; holds." in text
    assert "overlap &lt; 1" in text
    assert "a &amp; b" in text
