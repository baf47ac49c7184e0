"""How long SGD takes to leave an unstable rest point, and at which step."""

from sgdlimits.dynamics.escape.escape import Escape, escape
from sgdlimits.dynamics.escape.exit_time import ExitTime

__all__ = ["Escape", "ExitTime", "escape"]
