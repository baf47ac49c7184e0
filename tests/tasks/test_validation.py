"""Wrong input meets a ValueError that names the parameter, the value and what is allowed."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits import tasks
from tests.tasks.instances import CONCRETE, GRAM, TASKS

NAN = math.nan
SKEW = [[1.0, 0.5], [0.2, 1.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
SINGULAR = [[1.0, 1.0], [1.0, 1.0]]
RAGGED = [[1.0], [2.0, 3.0]]

NOT_POSITIVE = (0, -1.0, NAN, "1", None, True, 1j, [1.0])
NEGATIVE = (-1e-9, NAN, math.inf, "1", None, True, np.complex128(1), 10**400)
NOT_WHOLE = (2.5, "2", None, True, NAN, math.inf)
PARAMETERS: dict[str, tuple[tuple[Any, ...], str]] = {
    "order": ((1, -3, *NOT_WHOLE), r"integer >= 2"),
    "classes": ((1, 0, *NOT_WHOLE), r"integer >= 2"),
    "width": ((0, -1, *NOT_WHOLE), r"integer >= 1"),
    "student_width": ((0, *NOT_WHOLE), r"integer >= 1"),
    "teacher_width": ((0, *NOT_WHOLE), r"integer >= 1"),
    "snr": (NEGATIVE, r"finite number >= 0|must be a number|too large"),
    "ridge": (NEGATIVE, r"finite number >= 0|must be a number|too large"),
    "noise": (NEGATIVE, r"finite number >= 0|must be a number|too large"),
    "precision": (NOT_POSITIVE, r"positive number or math\.inf|must be a number"),
    "weight": ((0, 1, -0.5, 1.5, NAN, "0.5", None), r"in \(0, 1\)|must be a number"),
    "readout": (("free", "", None, 1, ["fixed"]), r"one of 'fixed', 'trained'"),
    "scale": (("max", None, 2.0), r"one of 'mean', 'sum'"),
    "spherical": (("no", None, 1, 0.0), r"True or False"),
    "kinks": (("some", None, True), r"one of 'none', 'zero', 'anywhere'"),
    "activation": (("gelu", "", None, 3), r"one of 'erf', 'relu', 'square', 'tanh' or a callable"),
    "teacher_activation": (
        ("gelu", "", 3),
        r"one of 'erf', 'relu', 'square', 'tanh' or a callable",
    ),
    "teacher_readout": (
        ("one", [1.0, None], [1j, 1.0]),
        r"real numbers of shape \(2,\)",
    ),
    "link": (("gelu", None, 3), r"one of 'erf', 'relu', 'square', 'tanh' or a callable"),
    "student": (("gelu", 3), r"one of 'erf', 'relu', 'square', 'tanh' or a callable"),
}
# what has no default must be given
NEEDED: dict[str, Any] = {"loss": lambda s, v, y: s[0] * y, "labels": [0.0]}


def construct(task: Callable[..., Any], **arguments: Any) -> Any:
    needed = {
        name: NEEDED[name]
        for name, parameter in inspect.signature(task).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    return task(**(needed | arguments))


def wrong_numbers() -> list[Any]:
    return [
        pytest.param(task, name, value, allowed, id=f"{task.__name__}-{name}-{str(value)[:9]}")
        for task in CONCRETE.values()
        for name, (values, allowed) in PARAMETERS.items()
        if name in inspect.signature(task).parameters
        for value in values
    ]


@pytest.mark.parametrize(("task", "name", "value", "allowed"), wrong_numbers())
def test_every_parameter_of_every_task(
    task: Callable[..., Any], name: str, value: Any, allowed: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=.* is not allowed: .*({allowed})") as raised:
        construct(task, **{name: value})
    assert f"{name}={value!r} is" in str(raised.value)


def test_every_parameter_has_wrong_values_somewhere() -> None:
    arrays = {"weights", "means_gram", "teacher_gram", "gram", "means", "labels", "anchors", "loss"}
    arrays |= {"decide"}
    arrays |= {"parameters"}  # in test_parameters.py
    inside = [task for task in CONCRETE.values() if task.__module__.startswith("sgdlimits.")]
    known = {name for task in inside for name in inspect.signature(task).parameters}
    assert known == set(PARAMETERS) | arrays


# --- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (tasks.GaussianMixture, "means_gram"),
        (tasks.TeacherStudent, "teacher_gram"),
        (tasks.MultiIndexTask, "gram"),
    ],
)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (INDEFINITE, r"=\[\[1\.0, 2\.0\].* positive definite \(its smallest eigenvalue is -1\)"),
        (SINGULAR, r"=\[\[1\.0, 1\.0\].* positive definite"),
        ([[0.0, 0.0], [0.0, 0.0]], r"=\[\[0\.0, 0\.0\].* positive definite"),
        (SKEW, r"=\[\[1\.0, 0\.5\], \[0\.2, 1\.0\]\] is not allowed: .* symmetric"),
        (np.eye(3), r" has shape \(3, 3\).* must have shape \(2, 2\)"),
        ([1.0, 1.0], r" has shape \(2,\).* must have shape \(2, 2\)"),
        (2.0, r" has shape \(\).* must have shape \(2, 2\)"),
        ([[1.0, NAN], [NAN, 1.0]], r"=\[\[1\.0, nan\].* finite"),
        (RAGGED, r"=\[\[1\.0\], \[2\.0, 3\.0\]\] is not allowed.* shape \(2, 2\)"),
        ("identity", r"='identity' is not allowed.* shape \(2, 2\)"),
        ([["1", "0"], ["0", "1"]], r"=\[\['1', '0'\].* must be real numbers"),
        (np.eye(2) * 1j, r"=\[\[1j, 0j\].* must be real numbers"),
    ],
)
def test_gram_matrices(task: Callable[..., Any], name: str, value: Any, message: str) -> None:
    two: dict[Any, dict[str, Any]] = {
        tasks.GaussianMixture: {"classes": 2},
        tasks.TeacherStudent: {"teacher_width": 2},
        tasks.MultiIndexTask: {"anchors": ["a", "b"]},
    }
    with pytest.raises(ValueError, match=name + message):
        construct(task, **two[task], **{name: value})
    assert construct(task, **two[task], **{name: GRAM})


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        (tasks.GaussianMixture, {"classes": 2}),
        (tasks.MultiIndexTask, {"means": [[1.0], [-1.0]], "labels": [0.0, 1.0]}),
    ],
)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.6], r"weights=\[0\.5, 0\.6\] .*sum to 1 \(they sum to 1\.1\)"),
        ([0.5, 0.499], r"weights=.*sum to 1"),
        ([1.5, -0.5], r"weights=\[1\.5, -0\.5\] .*positive"),
        ([1.0, 0.0], r"weights=\[1\.0, 0\.0\] .*positive"),
        ([1.0], r"weights has shape \(1,\).*shape \(2,\)"),
        ([0.2, 0.3, 0.5], r"weights has shape \(3,\).*shape \(2,\)"),
        ([NAN, 1.0], r"weights=\[nan, 1\.0\] .*finite"),
        ("equal", r"weights='equal' .*shape \(2,\)"),
    ],
)
def test_weights(
    task: Callable[..., Any], arguments: dict[str, Any], weights: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        construct(task, **arguments, weights=weights)
    assert construct(task, **arguments, weights=[0.25, 0.75]).weights.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"anchors": ["a", "a"]}, r"anchors=\['a', 'a'\] .*distinct names"),
        ({"anchors": []}, r"anchors=\[\] .*one or more distinct names"),
        ({"anchors": "mu"}, r"anchors='mu' .*list of one or more"),  # would mean m and u
        ({"anchors": [0, 1]}, r"anchors=\[0, 1\] .*distinct names"),
        ({"anchors": 2}, r"anchors=2 .*distinct names"),
        ({"means": [1.0, -1.0]}, r"means has shape \(2,\).*\(k, 1\)"),
        ({"means": [[1.0, 0.0]]}, r"means has shape \(1, 2\).*\(k, 1\).*anchor"),
        ({"means": np.zeros((0, 1))}, r"means has shape \(0, 1\).*\(k, 1\)"),
        ({"means": [[NAN]]}, r"means=\[\[nan\]\] .*finite"),
        ({"means": RAGGED}, r"means=\[\[1\.0\], .*real numbers"),
        ({"labels": [1.0, 2.0]}, r"labels has shape \(2,\).*shape \(1,\)"),
        ({"means": [[1.0], [2.0]]}, r"labels has shape \(1,\).*shape \(2,\)"),
        ({"labels": [NAN]}, r"labels=\[nan\] .*finite"),
        ({"decide": "sign"}, r"decide='sign' .*function of \(fields, readout\)"),
        ({"decide": lambda s, v: s}, r"decide returns shape \(1,\).*scalar"),
        ({"decide": lambda s, v: s[jnp.array(3)]}, r"decide is not allowed: width is 1"),
        ({"labels": None}, r"labels=None .*number per component or a function"),
        ({"labels": lambda c, a, z: a}, r"labels returns shape \(1,\).*scalar"),
        ({"labels": lambda c, a, z: (z, z)}, r"labels returns a tuple.*scalar"),
        ({"loss": lambda s, v, y: s}, r"loss returns shape \(1,\).*scalar"),
        ({"loss": lambda s, v, y: None}, r"loss returns a NoneType.*scalar"),
        ({"loss": lambda s, v, y: (s[0], y)}, r"loss returns a tuple.*scalar"),
        ({"loss": lambda s, v, y: s[0] > y}, r"loss returns bool.*real number"),
        ({"loss": "hinge"}, r"loss='hinge' .*function of \(fields, readout, label\)"),
        ({"loss": None}, r"loss=None .*function"),
    ],
)
def test_a_task_of_your_own(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        construct(tasks.MultiIndexTask, **arguments)


def test_covariance_added_to_the_anchors() -> None:
    class Spiked(tasks.MultiIndexFamily):
        def loss(self, fields: Any, readout: Any, label: Any) -> jax.Array:
            return jnp.sum(fields)

    # equinox makes an __init__ of the fields for static checkers; ours is used at run time
    spiked: Callable[..., tasks.MultiIndexFamily] = Spiked
    with pytest.raises(ValueError, match=r"spike=\[\[-1\.0\]\] .*positive semidefinite"):
        spiked(width=1, anchors=["a"], spike=[[-1.0]])
    with pytest.raises(ValueError, match=r"spike=.*symmetric"):
        spiked(width=1, anchors=["a", "b"], spike=SKEW)
    with pytest.raises(ValueError, match=r"trained='no' .*True or False"):
        spiked(width=1, anchors=["a"], trained="no")
    assert spiked(width=1, anchors=["a", "b"], spike=SINGULAR).spike.tolist() == SINGULAR


# --- activations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (tasks.TeacherStudent, "activation"),
        (tasks.SingleIndex, "link"),
        (tasks.SingleIndex, "student"),
    ],
)
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (jnp.sum, r"maps shape \(3,\) to shape \(\).*elementwise"),
        (lambda x: x[:2], r"maps shape \(3,\) to shape \(2,\).*elementwise"),
        (lambda x: (x, x), r"maps shape \(3,\) to a tuple.*elementwise"),
        (lambda x: x > 0, r"returns bool.*real numbers"),
        (lambda x: float(x), r"fails on an array of shape \(3,\).*JAX function"),
        (lambda x, y: x, r"fails on an array of shape \(3,\).*JAX function"),
    ],
)
def test_callables(
    task: Callable[..., Any], name: str, function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=.* is not allowed: .*{message}"):
        construct(task, **{name: function})


@pytest.mark.parametrize("value", [1.0, [1.0], [1.0, 2.0, 3.0], [1.0, NAN]])
def test_teachers_have_a_readout_each(value: Any) -> None:
    with pytest.raises(ValueError, match=r"teacher_readout.*(shape \(2,\)|finite)"):
        tasks.TeacherStudent(teacher_readout=value)


def test_students_and_teachers_change_together_unless_told() -> None:
    both: Any = tasks.TeacherStudent(teacher_readout=[1.0, 2.0]).replace(activation="relu")
    assert both.parameters()["teacher_activation"] is None
    assert float(both.label(0, jnp.array([-1.0, 0.5]), 0.0)) == 0.5
    apart: Any = tasks.TeacherStudent(teacher_activation="erf").replace(activation="relu")
    assert apart.parameters()["teacher_activation"] == "erf"
    assert apart.kinks == "zero"


def test_a_callable_is_not_taken_for_its_namesake() -> None:
    """jax.scipy.special.erf is erf(x), the activation "erf" is erf(x/√2): other averages."""
    namesake = jax.scipy.special.erf
    assert namesake.__name__ == "erf"
    assert tasks.TeacherStudent(activation="erf").committee is not None
    assert tasks.TeacherStudent(activation=namesake).committee is None
    assert tasks.TeacherStudent(teacher_activation=namesake).committee is None
    assert tasks.TeacherStudent(teacher_activation="square").committee is None
    assert tasks.TeacherStudent(activation="square", teacher_activation="square").committee
    assert tasks.SingleIndex("erf").committee is not None
    assert tasks.SingleIndex(namesake).committee is None
    assert tasks.SingleIndex("erf", student=namesake).committee is None
    assert tasks.SingleIndex("erf", student="square").committee is None


# --- states -------------------------------------------------------------------------------------

NETWORK = tasks.XorMixture(width=2)
SPHERE = tasks.PhaseRetrieval(width=2)
TENSOR = tasks.SpikedTensor()
GOOD = {"v": [1.0, -1.0], "M": [[0.1, 0.2], [0.3, 0.4]], "R": np.eye(2)}
ON_SPHERE = {"M": [[0.6], [0.0]], "R": [[0.64, 0.1], [0.1, 1.0]]}


@pytest.mark.parametrize(
    ("task", "state", "message"),
    [
        (
            NETWORK,
            {"M": GOOD["M"], "R": GOOD["R"]},
            r"state=\['M', 'R'\] .*names \['v', 'M', 'R'\]",
        ),
        (NETWORK, GOOD | {"Q": 1.0}, r"state=\['v', 'M', 'R', 'Q'\] .*exactly the names"),
        (NETWORK, GOOD | {3: 1.0}, r"state=\['v', 'M', 'R', 3\] .*exactly the names"),
        (NETWORK, {}, r"state=\[\] .*exactly the names"),
        (NETWORK, None, r"state=NoneType .*dict with exactly the names"),
        (NETWORK, [1.0], r"state=list .*dict with exactly the names"),
        (NETWORK, GOOD | {"v": [1.0]}, r"state\['v'\] has shape \(1,\).*shape \(2,\)"),
        (NETWORK, GOOD | {"M": np.zeros((2, 1))}, r"state\['M'\] has shape \(2, 1\).*\(2, 2\)"),
        (NETWORK, GOOD | {"R": 1.0}, r"state\['R'\] has shape \(\).*\(2, 2\)"),
        (NETWORK, GOOD | {"M": RAGGED}, r"state\['M'\]=\[\[1\.0\], .*real numbers"),
        (NETWORK, GOOD | {"v": "ab"}, r"state\['v'\]='ab' .*real numbers"),
        (NETWORK, GOOD | {"v": [NAN, 1.0]}, r"state\['v'\]=\[nan, 1\.0\] .*finite"),
        (NETWORK, GOOD | {"M": [[math.inf, 0], [0, 0]]}, r"state\['M'\]=.*inf.* finite"),
        (NETWORK, GOOD | {"R": SKEW}, r"state\['R'\]=\[\[1\.0, 0\.5\], .*symmetric"),
        (
            NETWORK,
            GOOD | {"R": INDEFINITE},
            r"state\['R'\]=\[\[1\.0, 2\.0\], .*semidefinite.*eigenvalue is -1\)",
        ),
        (NETWORK, GOOD | {"R": np.diag([1.0, -1e-6])}, r"state\['R'\]=.*positive semidefinite"),
        (SPHERE, ON_SPHERE | {"M": [[0.7], [0.0]]}, r"norms \[1\.13.*1\.0\].* must be 1"),
        (SPHERE, ON_SPHERE | {"R": np.diag([0.64, 1.001])}, r"norms \[1\.0, 1\.00.*must be 1"),
        (TENSOR, {"m": 0.1, "r2": -0.1}, r"state\['r2'\]=-0\.1 .*r2 must be >= 0"),
        (TENSOR, {"m": NAN, "r2": 1.0}, r"state\['m'\]=nan .*finite"),
        (TENSOR, {"m": [0.1], "r2": 1.0}, r"state\['m'\] has shape \(1,\).*shape \(\)"),
        (TENSOR, {"m": 0.1}, r"state=\['m'\] .*names \['m', 'r2'\]"),
    ],
)
def test_states(task: tasks.Task, state: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task.check_state(state)


@pytest.mark.parametrize(
    ("task", "state"),
    [
        (NETWORK, GOOD),
        (NETWORK, GOOD | {"R": SINGULAR}),
        (NETWORK, GOOD | {"R": np.zeros((2, 2))}),
        (SPHERE, ON_SPHERE),
        (TENSOR, {"m": 0, "r2": 0}),
    ],
)
def test_states_on_the_border_are_allowed(task: tasks.Task, state: Any) -> None:
    checked = task.check_state(state)
    for name in task.shapes:
        np.testing.assert_array_equal(checked[name], state[name])


@pytest.mark.parametrize("task", TASKS)
def test_states_of_several_runs(task: tasks.Task) -> None:
    many = task.random_state(30, 0, runs=3)
    with pytest.raises(ValueError, match=r"has shape \(3,.*must have shape \(4,"):
        task.check_state(many, runs=4)
    with pytest.raises(ValueError, match=r"has shape \(3,.*must have shape \("):
        task.check_state(many)
    for name in task.shapes:
        broken = many | {name: np.where(np.arange(many[name].size) == 0, NAN, 1.0)}
        with pytest.raises(ValueError, match=rf"state\['{name}'\]=.*nan.*finite"):
            task.check_state(broken, runs=3)


def test_a_wrong_run_among_many_is_found_and_not_printed_in_full() -> None:
    many = {"m": np.zeros(1000), "r2": np.ones(1000)}
    many["r2"][500] = -1.0
    with pytest.raises(ValueError, match=r"state\['r2'\]=<array of shape \(1000,\)> .*>= 0"):
        TENSOR.check_state(many, runs=1000)
