"""How often JAX compiles, or would if it did not find the program in the cache on disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

_COMPILED = "/jax/core/compile/backend_compile_duration"


@contextmanager
def compilations() -> Iterator[list[str]]:
    """A list that grows by one with every program that is compiled inside, in any thread.

    The event is that of the request: it is told whether or not the program is in the cache on disk.
    """
    seen: list[str] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event == _COMPILED:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
