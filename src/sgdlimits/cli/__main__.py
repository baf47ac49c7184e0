"""``python -m sgdlimits.cli`` is ``sgdlimits``."""

from sgdlimits.cli import app

if __name__ == "__main__":  # not in the processes that it starts
    app(prog_name="sgdlimits")
