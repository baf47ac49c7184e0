"""The command line: ``sgdlimits list | show | run | report | predict``."""

from sgdlimits.cli.commands import app

__all__ = ["app"]
