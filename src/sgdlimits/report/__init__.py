"""Finished experiments on one static page."""

from sgdlimits.report.page import write_page

__all__ = ["write_page"]
