"""What an experiment is about, read off its source: a list of them all need not run them."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sgdlimits.experiments import registry


class Summary(NamedTuple):
    """Where a claim is from, and what it says."""

    paper: str
    figure: str
    claim: str
    headline: bool = False


def summary(name: str) -> Summary:
    """What ``@experiment`` says in the file of one experiment.

    The file is parsed, not imported, unless it computes what it says.

    >>> summary("pca_overview").figure
    'Fig. 1'
    """
    spec = importlib.util.find_spec(registry.module_of(name))
    if spec is not None and spec.origin is not None:
        found = list(_written(Path(spec.origin).read_bytes()))
        if len(found) == 1:
            return found[0]
    experiment = registry.get(name)
    return Summary(*(getattr(experiment, field) for field in Summary._fields))


def _written(source: bytes) -> Iterator[Summary]:
    """The arguments of every ``@experiment`` that are written out as they are."""
    for node in ast.walk(ast.parse(source)):
        for call in node.decorator_list if isinstance(node, ast.ClassDef) else []:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "experiment":
                said: dict[str, Any] = {
                    word.arg: word.value for word in call.keywords if word.arg in Summary._fields
                }
                try:
                    yield Summary(**{key: ast.literal_eval(said[key]) for key in said})
                except (ValueError, TypeError):  # computed, or from a dictionary
                    continue
