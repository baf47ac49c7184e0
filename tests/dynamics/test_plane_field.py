"""The drift in a plane of two statistics is the drift, at states that are what they should be."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.dynamics import EffectiveDynamics
from tests.dynamics.flat import flatten

PCA = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0), step=0.5)
MIXTURE = sl.effective_dynamics(sl.tasks.BinaryMixture(precision=math.inf, ridge=0.1))
SPHERE = sl.effective_dynamics(sl.tasks.PhaseRetrieval(width=2, noise=0.1), step=0.1)
AWAY: State = {
    "v": np.array([0.3, 0.5]),
    "M": np.array([[0.4], [0.3]]),
    "R": np.array([[0.2, 0.1], [0.1, 0.3]]),
}
ON_SPHERE: State = {"M": np.zeros((2, 1)), "R": np.array([[1.0, 0.3], [0.3, 1.0]])}
OVERLAPS = ("M[0,teacher]", "M[1,teacher]")


def state_at(limit: EffectiveDynamics, field: xr.Dataset, j: int, i: int) -> State:
    return {name: field[name].values[j, i] for name in limit.task.shapes}


def is_the_drift(limit: EffectiveDynamics, field: xr.Dataset, j: int, i: int) -> None:
    """At grid point (j, i) the state has the values of the axes, and the field is its drift."""
    state = state_at(limit, field, j, i)
    vector, velocity = flatten(state), flatten(limit.drift(state))
    for axis, index in (("x", i), ("y", j)):
        where = limit.coordinates.index(field.attrs[axis])
        assert vector[where] == field[axis].values[index]
        found = field[f"{axis}_velocity"].values[j, i]
        np.testing.assert_allclose(found, velocity[where], rtol=1e-12, atol=1e-12)


def test_two_statistics_need_no_others() -> None:
    field = PCA.drift_in_plane(
        "m", "r2", x_values=np.linspace(-1, 1, 5), y_values=np.linspace(-0.5, 1.5, 9)
    )
    assert field.x_velocity.dims == field.y_velocity.dims == ("y", "x")
    for j, i in ((2, 0), (5, 3), (8, 4)):
        is_the_drift(PCA, field, j, i)
    blank = np.isnan(field.x_velocity.values)
    np.testing.assert_array_equal(blank, np.broadcast_to(field.y.values[:, None] < 0, blank.shape))
    np.testing.assert_array_equal(np.isnan(field.r2.values), blank)
    kept = field.isel(y=slice(2, None))
    m, r2 = np.meshgrid(kept.x, kept.y)
    expected = sl.theory.spiked_tensor.drift(m, r2, order=2, snr=2.0, step=0.5)
    np.testing.assert_allclose(kept.x_velocity, expected.overlap, atol=1e-12)
    np.testing.assert_allclose(kept.y_velocity, expected.radius_squared, atol=1e-12)
    swapped = PCA.drift_in_plane("r2", "m", x_values=kept.y, y_values=kept.x)
    np.testing.assert_array_equal(swapped.x_velocity, kept.y_velocity.transpose())


def test_a_point_does_not_depend_on_the_rest_of_the_grid() -> None:
    whole = PCA.drift_in_plane(
        "m", "r2", x_values=np.linspace(-1, 1, 9), y_values=np.linspace(0, 2, 9)
    )
    single = PCA.drift_in_plane(
        "m", "r2", x_values=[whole.x.values[5]], y_values=[whole.y.values[7]]
    )
    assert single.x_velocity.values == whole.x_velocity.values[7, 5]


def test_provenance_and_storage(tmp_path: Path) -> None:
    field = PCA.drift_in_plane("m", "r2", x_values=[0.0, 1.0], y_values=[-1.0, 1.0])
    noted = {"kind": "plane", "task": "SpikedTensor", "x": "m", "y": "r2", "others": "held"}
    assert {name: field.attrs[name] for name in noted} == noted
    assert field.attrs["step"] == 0.5
    assert sl.results.parameters(field)["snr"] == 2.0
    sl.results.save(field, tmp_path / "field.nc")
    xr.testing.assert_identical(sl.results.load(tmp_path / "field.nc"), field)


def test_held_statistics_stay() -> None:
    grid = np.linspace(-1, 1, 4)
    field = MIXTURE.drift_in_plane("M[0,mu]", "v[0]", x_values=grid, y_values=grid, state=AWAY)
    for j, i in ((0, 0), (3, 1), (2, 3)):
        is_the_drift(MIXTURE, field, j, i)
    np.testing.assert_array_equal(field.v.values[..., 1], AWAY["v"][1])
    np.testing.assert_array_equal(field.M.values[..., 1, 0], AWAY["M"][1, 0])
    np.testing.assert_array_equal(field.R.values[2, 1], AWAY["R"])
    drift = MIXTURE.drift(state_at(MIXTURE, field, 3, 1))
    rest = [drift["v"][1], drift["M"][1, 0], *drift["R"].ravel()]
    np.testing.assert_allclose(field.others_speed.values[3, 1], np.max(np.abs(rest)), rtol=1e-12)


def test_slaved_statistics_rest_where_their_own_motion_takes_them() -> None:
    field = MIXTURE.drift_in_plane(
        "M[0,mu]",
        "v[0]",
        x_values=[0.2, 0.9],
        y_values=[0.3, 0.5, 1.1],
        state=AWAY,
        others="slaved",
    )
    for j, i in np.ndindex(3, 2):
        is_the_drift(MIXTURE, field, j, i)
        drift = MIXTURE.drift(state_at(MIXTURE, field, j, i))
        rest = [drift["v"][1], drift["M"][1, 0], *drift["R"].ravel()]
        np.testing.assert_allclose(rest, 0, atol=1e-9)
    assert np.all(field.others_growth < 0)
    # where explicit small steps end, with x and y kept still
    state = {name: value.copy() for name, value in AWAY.items()}
    state["v"][0], state["M"][0, 0] = 1.1, 0.9
    for _ in range(400):
        drift = MIXTURE.drift(state)
        state = {name: value + 0.3 * drift[name] for name, value in state.items()}
        state["v"][0], state["M"][0, 0] = 1.1, 0.9
    for name, value in state.items():
        np.testing.assert_allclose(field[name].values[2, 1], value, atol=1e-3)
    # negative control: held, they are elsewhere and move
    held = MIXTURE.drift_in_plane("M[0,mu]", "v[0]", x_values=[0.9], y_values=[1.1], state=AWAY)
    assert held.others_speed.values > 0.01
    assert abs(held.y_velocity.values - field.y_velocity.values[2, 1]) > 0.001


def test_what_rests_may_move_by_sums_over_nodes() -> None:
    task = sl.tasks.TeacherStudent(
        activation="tanh", teacher_width=1, student_width=1, readout="trained", noise=0.1
    )
    limit = sl.effective_dynamics(task, rtol=1e-4)
    start = {"v": np.array([0.5]), "M": np.array([[0.4]]), "R": np.array([[0.2]])}
    field = limit.drift_in_plane(
        *("M[0,teacher0]", "v[0]"),
        x_values=[0.3, 0.9],
        y_values=[0.6],
        state=start,
        others="slaved",
    )
    assert np.all(field.others_growth < 0)
    for i in range(2):
        there = state_at(limit, field, 0, i)
        beyond, before = (there | {"R": there["R"] * share} for share in (1.01, 0.99))
        assert limit.drift(beyond)["R"] < 0 < limit.drift(before)["R"]


def test_on_the_sphere_the_others_make_room() -> None:
    grid = np.linspace(-1.2, 1.2, 7)
    field = SPHERE.drift_in_plane(*OVERLAPS, x_values=grid, y_values=grid, state=ON_SPHERE)
    m0, m1 = np.meshgrid(grid, grid)
    exists = (np.abs(m0) < 1) & (np.abs(m1) < 1) & ((1 - m0**2) * (1 - m1**2) > 0.09)
    np.testing.assert_array_equal(np.isfinite(field.x_velocity.values), exists)
    np.testing.assert_allclose(field.R.values[exists, 0, 0], 1 - m0[exists] ** 2, atol=1e-12)
    np.testing.assert_allclose(field.R.values[exists, 1, 1], 1 - m1[exists] ** 2, atol=1e-12)
    np.testing.assert_array_equal(field.R.values[exists, 0, 1], 0.3)
    for j, i in ((3, 3), (2, 4)):
        is_the_drift(SPHERE, field, j, i)


def test_on_the_sphere_only_what_it_leaves_free_can_rest() -> None:
    field = SPHERE.drift_in_plane(
        *OVERLAPS, x_values=[0.2, 0.7], y_values=[-0.4, 0.1], state=ON_SPHERE, others="slaved"
    )
    for j, i in np.ndindex(2, 2):
        is_the_drift(SPHERE, field, j, i)
        drift = SPHERE.drift(state_at(SPHERE, field, j, i))
        assert abs(drift["R"][0, 1]) < 1e-9
        # the norms are kept, so that R[0,0] has to move with M[0]
        forced = -2 * field.x.values[i] * field.x_velocity.values[j, i]
        np.testing.assert_allclose(drift["R"][0, 0], forced, rtol=1e-9)
        assert abs(forced) > 1e-3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": "r"}, r"x='r' is not allowed: x must be one of 'm', 'r2'"),
        ({"y": "m"}, r"y='m' is not allowed: y must be one of 'r2'"),
        ({"x_values": [1.0, 0.0]}, r"x_values=\[1.0, 0.0\] is not allowed: .*increasing"),
        ({"y_values": []}, r"y_values=\[\] is not allowed: .*increasing"),
        ({"y_values": 1.0}, r"y_values=1.0 is not allowed: .*increasing"),
        ({"x_values": [0.0, math.nan]}, r"x_values=.* is not allowed: .*finite"),
        ({"others": "fixed"}, r"others='fixed' is not allowed: .*'held', 'slaved'"),
        ({"state": {"m": 1.0}}, r"state=\['m'\] is not allowed"),
        ({"y_values": [-2.0, -1.0]}, r"x='m', y='r2' is not allowed here: .*no point"),
    ],
)
def test_wrong_input_is_named(changed: dict[str, Any], message: str) -> None:
    given = {"x": "m", "y": "r2", "x_values": [0.0, 1.0], "y_values": [0.0, 1.0]}
    with pytest.raises(ValueError, match=message):
        PCA.drift_in_plane(**given | changed)


def test_others_need_a_state() -> None:
    with pytest.raises(
        ValueError, match=r"state=None is not allowed: .*v\[1\], M\[1,mu\], R\[0,0\]"
    ):
        MIXTURE.drift_in_plane("M[0,mu]", "v[0]", x_values=[0.0], y_values=[0.0])


def test_statistics_that_the_sphere_ties_together_are_no_plane() -> None:
    message = r"y='R\[0,0\]' is not allowed with x='M\[0,teacher\]': .*sphere"
    with pytest.raises(ValueError, match=message):
        SPHERE.drift_in_plane(
            "M[0,teacher]", "R[0,0]", x_values=[0.0], y_values=[1.0], state=ON_SPHERE
        )
    single = sl.effective_dynamics(sl.tasks.PhaseRetrieval())
    with pytest.raises(ValueError, match=message):
        single.drift_in_plane("M[0,teacher]", "R[0,0]", x_values=[0.0], y_values=[1.0])
