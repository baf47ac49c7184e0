"""Where the effective dynamics comes to rest, how stably, and from which starts."""

from sgdlimits.dynamics.rest.basins import basins
from sgdlimits.dynamics.rest.search import FixedPoint, FixedPoints, fixed_points

__all__ = ["FixedPoint", "FixedPoints", "basins", "fixed_points"]
