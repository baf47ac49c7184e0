"""Risk, 0–1 error and metrics of one's own: at one state, and along results."""

from sgdlimits.dynamics.measures.along import measure
from sgdlimits.dynamics.measures.at_state import Measurement, error, measure_at, risk

__all__ = ["Measurement", "error", "measure", "measure_at", "risk"]
