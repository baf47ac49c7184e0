"""The high-dimensional limits of stochastic gradient descent, as software."""

import sys
import types

import lazy_loader

# Names are loaded when they are first used. They are listed in __init__.pyi, which static checkers
# read as well.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Package(types.ModuleType):
    """A package whose function ``simulate`` is not hidden when the room of its name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "simulate" and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError:
        from sgdlimits._names import missing

        raise missing(__name__, name, __all__) from None
