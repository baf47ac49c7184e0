"""Long work in pieces, between which Ctrl-C is answered: a program that runs is not interrupted."""

import time
from collections.abc import Callable

AT_ONCE = 0.2  # seconds that a piece should take
GROWTH = 8  # by which pieces become larger at most


class Pieces:
    """Cuts ranges into pieces of a fraction of a second, as long as those before have taken.

    How long that is depends on the machine and its load: so only for work whose result is the same,
    to the last bit, however it is cut.

    >>> done = []
    >>> Pieces().of(10, lambda first, last: done.append((first, last)))
    >>> done
    [(0, 1), (1, 9), (9, 10)]
    """

    def __init__(self) -> None:
        self._size = 1

    def of(self, count: int, work: Callable[[int, int], object]) -> None:
        """Call ``work(first, last)`` for pieces of range(count), one after the other.

        It must wait for its result: else there is nothing to measure, and nothing to interrupt.
        """
        first = 0
        while first < count:
            last = min(first + self._size, count)
            begun = time.perf_counter()
            work(first, last)
            seconds = (time.perf_counter() - begun) / (last - first)
            self._size = max(1, int(min(AT_ONCE / max(seconds, 1e-9), GROWTH * self._size)))
            first = last
