"""How events are said, and what of them is refused."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._events import event_of, holds

XOR = sl.tasks.XorMixture(width=3)
STATES = XOR.random_states(50, 0, range(5))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (("M[1,nu]", ">", 0.3), STATES["M"][:, 1, 1] - 0.3),
        ((" M[ 1 , nu ] ", ">", 0.3), STATES["M"][:, 1, 1] - 0.3),
        (("R[2,0]", "<", -1), STATES["R"][:, 0, 2] + 1),
        (("v[2]", "<", np.float64(0.5)), STATES["v"][:, 2] - 0.5),
        ((lambda state: jnp.sum(state["v"]), ">", 1.0), np.sum(STATES["v"], 1) - 1),
        (lambda state: state["M"][0, 0] - 0.3, STATES["M"][:, 0, 0] - 0.3),
    ],
)
def test_heights_are_above_the_level(event: Any, expected: np.ndarray) -> None:
    heights = event_of(event, XOR.layout).heights(STATES)
    np.testing.assert_allclose(heights, expected, rtol=1e-15)
    assert heights.dtype == np.float64


def test_sides() -> None:
    heights = np.array([-0.5, 0.0, 0.5])
    above = event_of(("v[0]", ">", 0.0), XOR.layout)
    below = event_of(("v[0]", "<", 0.0), XOR.layout)
    either = event_of(lambda state: state["v"][0], XOR.layout)
    assert holds(above.sides(heights), heights).tolist() == [False, False, True]
    assert holds(below.sides(heights), heights).tolist() == [True, False, False]
    assert holds(either.sides(heights), heights).tolist() == [False, True, False]
    assert either.sides(heights).tolist() == [1, 0, -1]


def test_measures_have_names() -> None:
    event = event_of(("risk", "<", 0.1), XOR.layout, lambda name: lambda state: state["v"][1])
    np.testing.assert_allclose(event.heights(STATES), STATES["v"][:, 1] - 0.1)


@pytest.mark.parametrize(
    ("event", "parts"),
    [
        ("m > 3", ["event='m > 3'", "function of the state"]),
        (("v[0]", ">"), ["event=('v[0]', '>')", "number"]),
        (("v[0]", ">=", 0.3), ["event[1]='>='", "'<'"]),
        (("v[0]", ">", "much"), ["event[2]", "real numbers"]),
        (("v[0]", ">", np.nan), ["event[2]", "finite"]),
        (("v[3]", ">", 0.3), ["event[0]='v[3]'", "v[0], v[1], v[2]"]),
        (("v", ">", 0.3), ["event[0]='v'", "v[0]"]),
        (("v[0,0]", ">", 0.3), ["event[0]='v[0,0]'"]),
        ((3, ">", 0.3), ["event[0]=3", "v[0]", "risk, error"]),
        (("risk", "<", 0.1), ["event[0]='risk'", "limit.quantity('risk')"]),
        (lambda state: state["m"], ["asks for 'm'", "['v', 'M', 'R']"]),
        (lambda: 1.0, ["it fails for a state", "TypeError"]),
        (lambda state: float(state["v"][0]), ["it fails for a state"]),
        (lambda state: state["v"], ["shape (3,)", "one real number"]),
        (lambda state: state["v"][0] > 0.3, ["bool", "one real number"]),
    ],
)
def test_wrong_input(event: Any, parts: list[str]) -> None:
    with pytest.raises(sl.InputError, match="not allowed") as caught:
        event_of(event, XOR.layout)
    for part in parts:
        assert re.search(re.escape(part), str(caught.value)), str(caught.value)
