"""Long work is cut into pieces, and Ctrl-C is answered between them."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import jax
import pytest

import sgdlimits as sl
from sgdlimits import _pieces
from sgdlimits._pieces import Pieces
from tests.triples.triples import pca


def test_every_number_once_in_pieces_of_the_time_they_should_take() -> None:
    clock, done = [0.0], list[tuple[int, int]]()

    def work(first: int, last: int) -> None:
        done.append((first, last))
        clock[0] += 0.01 * (last - first)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pieces.time, "perf_counter", lambda: clock[0])
        pieces = Pieces()
        pieces.of(100, work)
        pieces.of(50, work)
    assert [k for piece in done for k in range(*piece)] == [*range(100), *range(50)]
    sizes = [last - first for first, last in done]
    assert sizes[:3] == [1, 8, 20]
    assert max(sizes) == _pieces.AT_ONCE / 0.01


def many_solutions() -> None:
    task = sl.tasks.BinaryMixture(precision=5.0)
    sl.effective_dynamics(task).solve(task.random_state(1000, 0, runs=500), time=100.0)


def long_paths() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(), step=0.1)
    limit.sample_paths({"m": 0.0, "r2": 1.0}, dim=1e4, time=1e6, runs=1000, points=2)


def paths_that_wait() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(), step=0.1)
    init = {"m": 0.0, "r2": 1.0}
    limit.sample_paths(init, dim=1e4, time=1e6, runs=1000, points=2, until=("m", ">", 50.0))


def many_samples() -> None:
    triple = pca("m", "r2")
    sl.generator(triple, triple.init(jax.random.key(0), 100), step=0.5, samples=10**9)


def busy() -> bool:
    """Whether this process computes something behind our back."""
    begun = time.process_time()
    time.sleep(0.5)
    return time.process_time() - begun > 0.03


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    "work",
    [many_solutions, long_paths, paths_that_wait, many_samples],
)
def test_ctrl_c_is_answered(work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a second of this process' own time, in work that would take minutes.

    The signal comes a second after the first piece, as what is needed later compiles as well.
    """
    sent = list[float]()

    def send() -> None:
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer, cut = threading.Timer(1.0, send), Pieces.of

    def watched(pieces: Pieces, count: int, work: Callable[[int, int], object]) -> None:
        def one(first: int, last: int) -> None:
            work(first, last)
            if timer.ident is None:
                timer.start()

        cut(pieces, count, one)

    monkeypatch.setattr(Pieces, "of", watched)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)
    while busy():  # JAX answers at once, while what it has begun goes on and keeps a process alive
        assert time.process_time() - sent[0] < 1.0
