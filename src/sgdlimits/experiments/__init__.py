"""The papers' figures and claims as experiments that anyone can run."""

from sgdlimits.experiments.base import Experiment
from sgdlimits.experiments.registry import get, names
from sgdlimits.experiments.run import Job, Outcome, execute, execute_all, plan
from sgdlimits.experiments.store import open_store, plain

__all__ = [
    "Experiment",
    "Job",
    "Outcome",
    "execute",
    "execute_all",
    "get",
    "names",
    "open_store",
    "plain",
    "plan",
]
