"""The high-dimensional limits of stochastic gradient descent, as software."""

import lazy_loader

# Names are loaded when they are first used. They are listed in __init__.pyi, which static checkers
# read as well.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
