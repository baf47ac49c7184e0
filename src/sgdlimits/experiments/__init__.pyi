from .base import Experiment
from .existing import existing
from .plain import plain
from .registry import get, names
from .run import Job, Outcome, execute, execute_all, plan
from .store import open_store
from .summary import Summary, summary

__all__ = [
    "Experiment",
    "Job",
    "Outcome",
    "Summary",
    "execute",
    "execute_all",
    "existing",
    "get",
    "names",
    "open_store",
    "plain",
    "plan",
    "summary",
]
