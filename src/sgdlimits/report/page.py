"""The page: a summary, each experiment with its picture, the errata, all checks, references."""

import base64
import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from PIL import Image

from sgdlimits.experiments import Outcome
from sgdlimits.experiments.exact import exact
from sgdlimits.experiments.papers import PAPERS
from sgdlimits.results import replacing

TITLE = "sgdlimits: theory and simulation of SGD, checked"
WIDEST = 1400  # pixels of a picture on the page
CSS_PIXELS = 0.6  # per pixel of the file, which has 200 to the inch: type of its usual size
MARKS = {"passed": "✓ passed", "failed": "✗ failed", "erratum": "✎ erratum"}


def write_page(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write everything that is finished to one HTML file that needs nothing else."""
    finished = [(outcome.job.folder, outcome.record) for outcome in outcomes if outcome.record]
    records = [record for _, record in finished]
    body = "\n".join(
        [
            f"<header><h1>{TITLE}</h1>{_summary(records)}</header>",
            _problems([outcome.error for outcome in outcomes if outcome.error]),
            _failures(records),
            *(_section(folder, record) for folder, record in finished),
            _errata(records),
            _all_checks(records),
            _references(records),
            _footer(records),
        ]
    )
    look = resources.files("sgdlimits.report").joinpath("style.css").read_text()
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{look}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _summary(records: Sequence[dict[str, Any]]) -> str:
    count = Counter(check["status"] for record in records for check in record["checks"])
    seconds = sum(record["seconds"]["all"] for record in records)
    told = [f"{len(records)} experiments", f'<a href="#checks">{count.total()} checks</a>']
    errata = ' · <a href="#errata">misprints in the papers</a>' if count["erratum"] else ""
    verdicts = "".join(
        f'<span class="{status if count[status] else "none"}">'
        f"{MARKS[status].split()[0]} {count[status]} {word}</span>"
        for status, word in (("passed", "passed"), ("erratum", "errata"), ("failed", "failed"))
    )
    return (
        f'<p class="told">{" · ".join(told)}{errata} · {seconds:.0f} s of work</p>'
        f'<p class="verdicts">{verdicts}</p>'
        "<p>Each check compares a number that a paper claims or the theory predicts with one that "
        "was measured. The tolerance is such that a true statement fails once in ten thousand "
        "times. An <em>erratum</em> is a formula whose printed form the measurement contradicts, "
        "while it agrees with the corrected one.</p>"
    )


def _problems(errors: Sequence[str]) -> str:
    if not errors:
        return ""
    items = "".join(f"<li>{escape(error)}</li>" for error in errors)
    return f'<section class="problems"><h2>Not shown</h2><ul>{items}</ul></section>'


def _failures(records: Sequence[dict[str, Any]]) -> str:
    """What is looked for first, and would be far below."""
    items = [
        f'<li><a href="#{escape(record["name"])}">{escape(record["name"])}</a>: '
        f"{escape(check['name'])} is {_number(check['measured'])}, "
        f"{_number(check['expected'])} was expected</li>"
        for record in records
        for check in record["checks"]
        if check["status"] == "failed"
    ]
    if not items:
        return ""
    return f'<section class="problems"><h2>Failed</h2><ul>{"".join(items)}</ul></section>'


def _all_checks(records: Sequence[dict[str, Any]]) -> str:
    rows = "".join(_row(check, record) for record in records for check in record["checks"])
    return f'<section id="checks"><h2>All checks</h2>{_table(rows, with_name=True)}</section>'


def _table(rows: str, *, with_name: bool) -> str:
    names = ["check", "expected", "measured", "tolerance", "verdict"]
    head = "".join(f"<th>{name}</th>" for name in (["experiment"] if with_name else []) + names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(check: dict[str, Any], record: dict[str, Any] | None = None) -> str:
    note = f"<small>{escape(check['note'])}</small>" if check["note"] else ""
    printed = check["printed"]
    expected = _number(check["expected"])
    if printed is not None:
        expected += f" <small>printed: <s>{_number(printed)}</s></small>"
    measured = _number(check["measured"])
    if check["error"]:
        measured += f" ± {_number(check['error'], 2)}"
    cells = [
        ("check", f"{escape(check['name'])} {note}"),
        ("expected", expected),
        ("measured", measured),
        ("tolerance", _number(check["tolerance"], 2)),
        ("verdict", f'<span class="{check["status"]}">{MARKS[check["status"]]}</span>'),
    ]
    if record is not None:
        name = escape(record["name"])
        cells.insert(0, ("experiment", f'<a href="#{name}">{name}</a>'))
    inner = "".join(f'<td data-label="{label}">{text}</td>' for label, text in cells)
    return f"<tr>{inner}</tr>"


def _errata(records: Sequence[dict[str, Any]]) -> str:
    items = [
        f'<li>{_cited(record["paper"])} <a href="#{escape(record["name"])}">'
        f"{escape(record['figure'])}</a>: "
        f"{escape(check['name'])} is {_number(check['expected'])}, printed "
        f"<s>{_number(check['printed'])}</s>; measured {_number(check['measured'])} ± "
        f"{_number(check['error'], 2)}</li>"
        for record in records
        for check in record["checks"]
        if check["status"] == "erratum"
    ]
    if not items:
        return ""
    return (
        '<section id="errata"><h2>Where the papers misprint</h2>'
        f"<ul>{''.join(items)}</ul></section>"
    )


def _section(folder: Path, record: dict[str, Any]) -> str:
    name = escape(record["name"])
    facts = record["parameters"] | {"preset": record["preset"], "seed": record["seed"]}
    said = " · ".join(f"{escape(key)} <b>{escape(exact(x))}</b>" for key, x in facts.items())
    rows = "".join(_row(check) for check in record["checks"])
    warned = "".join(f'<p class="warned">{escape(text)}</p>' for text in record["warnings"])
    return (
        f'<section class="experiment" id="{name}"><h2>{name}</h2>'
        f'<p class="place">{_cited(record["paper"])} · {escape(record["figure"])}</p>'
        f"<p>{escape(record['claim'])}</p>"
        f"<figure>{_picture(folder / 'picture.png', record['claim'])}</figure>"
        f"{_table(rows, with_name=False)}{warned}"
        f'<p class="facts">{said} · {record["seconds"]["all"]:.1f} s · {escape(folder.name)}</p>'
        "</section>"
    )


def _cited(key: str) -> str:
    """The key of a paper, which leads to its line in the references."""
    name = escape(key)
    return f'<a href="#paper-{name}">{name}</a>' if key in PAPERS else name


def _references(records: Sequence[dict[str, Any]]) -> str:
    cited = [key for key in PAPERS if any(record["paper"] == key for record in records)]
    if not cited:
        return ""
    items = "".join(
        f'<li id="paper-{escape(key)}"><b>{escape(key)}</b>: {escape(PAPERS[key])}</li>'
        for key in cited
    )
    return f"<section><h2>References</h2><ul>{items}</ul></section>"


def _footer(records: Sequence[dict[str, Any]]) -> str:
    if not records:
        return ""
    found: dict[str, list[str]] = {}
    for record in records:  # not all of them need be of one run
        for name, version in record["versions"].items():
            found[name] = sorted({*found.get(name, []), version})
    versions = " · ".join(f"{escape(name)} {escape(', '.join(v))}" for name, v in found.items())
    last = max(record["started"] for record in records)
    return f"<footer>{versions} · last run started {escape(last)}</footer>"


def _picture(path: Path, text: str) -> str:
    """The picture inside the page: at most so wide, and with 256 colours, a fifth of the size.

    The colours cover all that there are, for the most frequent ones would turn a scale into grey;
    then they are moved to the means of what they stand for, so that grey stays grey.
    """
    with Image.open(path) as picture:
        small = picture.convert("RGB")
        width = round(small.width * CSS_PIXELS)
        if small.width > WIDEST:
            height = round(small.height * WIDEST / small.width)
            small = small.resize((WIDEST, height), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        few = small.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
        few.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(text)}" width="{width}" src="data:image/png;base64,{data}">'


def _number(value: Any, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, int | float) else escape(str(value))
