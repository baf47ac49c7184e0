"""All experiments: one per file of the catalogue; files named ``_…`` hold what several share."""

import importlib
import pkgutil
from typing import TYPE_CHECKING

from sgdlimits._errors import InputError
from sgdlimits._names import did_you_mean
from sgdlimits.experiments import catalogue

if TYPE_CHECKING:  # names are asked for in the shell, by completion, which must not wait
    from sgdlimits.experiments.base import Experiment


def names() -> list[str]:
    """Names of all experiments, which are those of their files.

    >>> "pca_overview" in names()
    True
    """
    modules = pkgutil.iter_modules(catalogue.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def module_of(name: str) -> str:
    """The module of one experiment, which need not be imported yet."""
    known = names()
    if name not in known:
        hint = did_you_mean(name, known) or "`sgdlimits list` shows all"
        raise InputError(f"{name!r} is no experiment: {hint}")
    return f"{catalogue.__name__}.{name}"


def get(name: str) -> "Experiment":
    """Return one experiment by its name.

    >>> get("pca_overview").figure
    'Fig. 1'
    >>> get("critical_stp")
    Traceback (most recent call last):
    ...
    sgdlimits.InputError: 'critical_stp' is no experiment: did you mean critical_step?
    """
    module = importlib.import_module(module_of(name))
    experiments: list[Experiment] = [
        vars(value)["experiment"]
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__  # not one that it inherits from
        and "experiment" in vars(value)
    ]
    if len(experiments) != 1:
        raise TypeError(
            f"{module.__name__} has {len(experiments)} classes under @experiment: it must have one"
        )
    return experiments[0]
