"""Names that do not exist and calls that do not fit say what was meant."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import sgdlimits as sl
from sgdlimits import _names
from sgdlimits.tasks import BinaryMixture, SingleIndex, SpikedTensor, XorMixture

TASK = SpikedTensor()
LIMIT = sl.effective_dynamics(TASK)
STATE = {"m": 0.1, "r2": 1.0}


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (sl.tasks, "XORMixture", r"has no 'XORMixture': did you mean XorMixture\?$"),
        (sl.tasks, "Spikedtensor", r"did you mean SpikedTensor\?$"),
        (sl, "efective_dynamics", r"did you mean effective_dynamics or"),
        (sl.tasks, "qqqqq", r"sgdlimits\.tasks has no 'qqqqq'$"),
        (sl.tasks, "__wrapped__", r"sgdlimits\.tasks has no '__wrapped__'$"),
    ],
)  # fmt: skip
def test_names(module: Any, name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(module, name)


CALLS: list[tuple[Callable[..., Any], str]] = [
    (
        lambda call: call(BinaryMixture, lam=10.0),
        r"^lam=10\.0 is not allowed: BinaryMixture has no lam; did you mean precision\? "
        "the arguments are precision, ridge, width$",
    ),
    (lambda call: call(SpikedTensor, lam=3.0), r"did you mean snr\?"),
    (lambda call: call(XorMixture, widht=3), r"widht=3 .*did you mean width\?"),
    (lambda call: call(XorMixture, qqq=3), r"XorMixture has no qqq; the arguments are width"),
    (
        lambda call: call(BinaryMixture, 10.0),
        r"^10\.0 by place is not allowed: BinaryMixture takes keywords only; "
        r"did you mean BinaryMixture\(precision=10\.0\)\?$",
    ),
    (lambda call: call(SingleIndex, "erf", "relu"), r"SingleIndex\(link, student='relu'\)"),
    (lambda call: call(SpikedTensor, 1, 2, 3, 4), r"^4 arguments .*SpikedTensor has 3"),
    (lambda call: call(sl.simulate, TASK, 100, 20), r"simulate\(task, dim, runs=20\)"),
    (lambda call: call(sl.simulate, TASK, dimm=100), r"did you mean dim\?"),
    (lambda call: call(sl.effective_dynamics, TASK, lr=1.0), r"did you mean step\?"),
    (lambda call: call(LIMIT.solve, STATE, 3.0, 11), r"solve\(init, time, points=11\)"),
    (lambda call: call(LIMIT.solve, STATE, tme=3.0), r"did you mean time or times\?"),
    (lambda call: call(TASK.random_state, 50, 0, 64), r"random_state\(dim, seed, runs=64\)"),
    (lambda call: call(TASK.replace, ridgee=1.0), r"ridgee=1\.0 .*did you mean ridge\?"),
]


@pytest.mark.parametrize(("make", "message"), CALLS)
def test_calls(make: Callable[..., Any], message: str) -> None:
    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with pytest.raises(sl.InputError, match=message):
        make(call)


def test_a_call_that_does_not_fit_is_a_type_error_too() -> None:
    wrong: Callable[..., Any] = BinaryMixture
    with pytest.raises(TypeError):
        wrong(lam=10.0)
    with pytest.raises(TypeError, match="missing") as raised:
        sl.tasks.MultiIndexTask()  # type: ignore[call-arg]
    assert not isinstance(raised.value, sl.InputError)


def test_errors_inside_are_not_touched() -> None:
    """A TypeError of somebody's own function is not one about the call."""

    @_names.explained
    def outer(value: int) -> int:
        raise TypeError("inside")

    with pytest.raises(TypeError, match=r"^inside$"):
        outer(value=3)


def test_signatures_are_still_shown() -> None:
    assert list(inspect.signature(BinaryMixture).parameters) == ["precision", "ridge", "width"]
    assert list(inspect.signature(sl.simulate).parameters)[:3] == ["task", "dim", "runs"]
