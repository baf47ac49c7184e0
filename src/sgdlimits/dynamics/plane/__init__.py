"""The drift in a plane of two statistics."""

from sgdlimits.dynamics.plane.field import drift_in_plane

__all__ = ["drift_in_plane"]
