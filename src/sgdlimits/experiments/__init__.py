"""The papers' figures and claims as experiments that anyone can run."""

import lazy_loader

# Names are loaded when they are first used: those of experiments need no JAX.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
