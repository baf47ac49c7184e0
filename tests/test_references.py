"""Docstrings cite by key, every key is in docs/references.bib, and formulas are in Unicode."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sgdlimits"
ROOMS = [
    *("dynamics", "gaussian", "lectures", "plot", "simulate", "spectra", "tasks", "theory"),
    "triples",
]
FIVE = {"BGJ22": "2206.04030", "BGHJ23": "2310.03010", "AKLS23": "2305.18502", "L23": "", "J24": ""}

KEY = re.compile(r"\b[A-Z]+\d{2}\b")
NUMBER_OF_A_PAPER = re.compile(r"(?<![\w.])00[0-4](?!\w|\.\d)")
ASCII = re.compile(
    r"\b(alpha|beta|gamma|delta|epsilon|eta|theta|lambda|mu|nu|pi|rho|sigma|omega|sqrt|infinity)\b"
    r"|\^[0-9k]|<=|>=|\+-|->"
)


def docstrings(source: str) -> list[str]:
    """The docstrings of a module, its classes and functions, without their doctests."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    texts = [ast.get_docstring(node) or "" for node in nodes]
    without = [re.sub(r"(?m)^ *(>>>|\.\.\. ).*\n.*$", "", text) for text in texts]
    return [re.sub(r'``[^`]*``|"[^"\n]*"', "", text) for text in without]  # names in code


def entries() -> dict[str, dict[str, str]]:
    """Fields of the entries of references.bib, by key."""
    text = (ROOT / "docs" / "references.bib").read_text()
    bodies = dict(re.findall(r"(?ms)^@\w+\{(\w+),\n(.*?)^\}", text))
    assert len(bodies) == len(re.findall(r"(?m)^@", text)), (
        "two entries of one key, or a malformed one"
    )
    return {
        key: {name: " ".join(value.split()) for name, value in fields(body)}
        for key, body in bodies.items()
    }


def fields(body: str) -> list[tuple[str, str]]:
    return re.findall(r"(?ms)^  (\w+) *= \{?(.*?)\}?,$", body)


def files(rooms: list[str]) -> list[Path]:
    return [path for room in rooms for path in sorted((SOURCE / room).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=name_of)
def test_keys_are_in_the_bibliography(path: Path) -> None:
    cited = {key for text in docstrings(path.read_text()) for key in KEY.findall(text)}
    assert cited <= set(entries())


@pytest.mark.parametrize("path", files(ROOMS), ids=name_of)
def test_papers_have_keys_and_formulas_are_in_unicode(path: Path) -> None:
    source = path.read_text()
    assert NUMBER_OF_A_PAPER.findall(source) == []
    assert [match.group() for text in docstrings(source) for match in ASCII.finditer(text)] == []


def test_rooms_cite_the_five_documents() -> None:
    texts = [text for path in files(ROOMS) for text in docstrings(path.read_text())]
    assert set(FIVE) <= {key for text in texts for key in KEY.findall(text)}


@pytest.mark.parametrize("key", entries())
def test_entries_are_complete(key: str) -> None:
    entry = entries()[key]
    assert {"author", "title", "year"} <= set(entry)
    assert key.endswith(entry["year"][-2:])
    assert KEY.fullmatch(key)


@pytest.mark.parametrize(("key", "number"), FIVE.items())
def test_the_five_documents_are_listed(key: str, number: str) -> None:
    assert entries()[key].get("eprint", "") == number
    readme = (ROOT / "README.md").read_text().split("## References")[1]
    assert f"**{key}**" in readme
    assert f"arXiv:{number}" in readme or not number
    title = re.sub(r"[{}]", "", entries()[key]["title"])
    assert title in " ".join(readme.split())
    assert title in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (KEY, "Source: BGJ22 (7.4); Saad and Solla (SS95), I₂; L23.", ["BGJ22", "SS95", "L23"]),
        (KEY, "R₁₁, Q12a, I4, 1995, dim100, R^(2k)", []),
        (NUMBER_OF_A_PAPER, "Source: 000 (7.4); paper 001, 004.", ["000", "001", "004"]),
        (NUMBER_OF_A_PAPER, "200_000, 0.001, 1000, 007", []),
    ],
)
def test_patterns(pattern: re.Pattern[str], text: str, matches: list[str]) -> None:
    assert pattern.findall(text) == matches


def test_ascii_formulas_are_seen() -> None:
    module = (
        '"""With alpha^2."""\ndef f():\n    """Of x.\n\n    >>> sqrt(2) <= 3\n    True\n    """\n'
    )
    assert len(docstrings(module)) == 2
    assert [bool(ASCII.search(text)) for text in docstrings(module)] == [True, False]
    for text in ("sqrt(d)", "m^2", "rho >= 1", "+-mu", "x -> 0", "alpha"):
        assert ASCII.search(text), text
    for text in ("√d", "m²", "ρ ≥ 1", "±μ", "mu_plus", "e^(−C)", "``nu_overlaps``", "alphabet"):
        assert not ASCII.search(text), text
