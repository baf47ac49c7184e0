"""Parameters as text, to the last digit: who reads 1.235e+04 cannot run 12345 again."""

from typing import Any


def exact(value: Any) -> str:
    """A parameter as the shortest text that has its value, as ``--set`` reads it.

    >>> exact(12345), exact(0.1), exact(2.0), exact([1.5, float("inf")]), exact(True)
    ('12345', '0.1', '2', '1.5, inf', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(exact, value))
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
