"""Values for strict JSON, and messages on one line."""

import math
from typing import Any

_LONGEST = 400  # characters of an error message: those of JAX may be pages


def plain(value: Any) -> Any:
    """The same for strict JSON, which has no infinity and no NaN: they become text.

    >>> plain({"snrs": (0.5, float("inf"))})
    {'snrs': [0.5, 'inf']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def one_line(text: str) -> str:
    """An error message on one line, shortened if it is long.

    >>> one_line("too bad:   no memory")
    'too bad: no memory'
    """
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
