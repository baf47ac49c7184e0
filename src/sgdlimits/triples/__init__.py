"""The limit theorem for any loss: its generator, and whether its conditions hold."""

from sgdlimits.triples.closability import Closability, closability
from sgdlimits.triples.critical_step import CriticalStep, critical_step
from sgdlimits.triples.generator import Generator, generator
from sgdlimits.triples.localizability import Localizability, localizability
from sgdlimits.triples.triple import Triple

__all__ = [
    "Closability",
    "CriticalStep",
    "Generator",
    "Localizability",
    "Triple",
    "closability",
    "critical_step",
    "generator",
    "localizability",
]
