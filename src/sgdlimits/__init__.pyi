from . import experiments, lectures, plot, results, spectra, tasks, theory
from ._cache import use_cache
from ._errors import InputError
from ._version import __version__
from .dynamics import EffectiveDynamics, Measurement, effective_dynamics, measure
from .named_means import first_passage, simulate
from .simulate import extend
from .theory.regimes import Regime, regime
from .triples import Triple, closability, critical_step, generator, localizability

__all__ = [
    "EffectiveDynamics",
    "InputError",
    "Measurement",
    "Regime",
    "Triple",
    "__version__",
    "closability",
    "critical_step",
    "effective_dynamics",
    "experiments",
    "extend",
    "first_passage",
    "generator",
    "lectures",
    "localizability",
    "measure",
    "plot",
    "regime",
    "results",
    "simulate",
    "spectra",
    "tasks",
    "theory",
    "use_cache",
]
