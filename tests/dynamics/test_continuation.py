"""Curves of rest points: through folds, across pitchforks, along rings, up to where they end."""

import math
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits import theory
from sgdlimits._precision import double_precision
from sgdlimits.dynamics.branches import diagram as diagram_module
from sgdlimits.dynamics.branches.continuation import Tracer
from sgdlimits.dynamics.branches.moving import MovingModel, moving_model
from sgdlimits.dynamics.branches.special_points import Examined, examine
from sgdlimits.dynamics.model import Model
from sgdlimits.tasks import SpikedTensor, Task
from tests.tasks.instances import IDS, TASKS


def family_of(
    task: Task, parameter: str, low: float, high: float, step: float, nodes: int
) -> MovingModel:
    limit = sl.effective_dynamics(task, step, nodes=nodes)
    return moving_model(limit, parameter, low, high)


INFORMED = {"m": [1.25, 0.0], "r2": [1.0, 1.0]}


def branches(diagram: xr.Dataset) -> list[xr.Dataset]:
    """Each branch on its own, without padding."""
    parameter = diagram.attrs["parameter"]
    counts = np.isfinite(diagram[parameter]).sum("point").values
    return [diagram.isel(branch=b, point=slice(int(n))) for b, n in enumerate(counts)]


def specials(diagram: xr.Dataset, kind: str) -> np.ndarray:
    return diagram[diagram.attrs["parameter"]].values[diagram.special.values == kind]


# --- spiked tensors -----------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "low", "high"), [(3, 2.0, 8.0), (4, 5.0, 12.0)])
def test_informed_rest_points_meet_at_the_critical_snr(order: int, low: float, high: float) -> None:
    task = SpikedTensor(order=order)
    diagram = sl.effective_dynamics(task).bifurcations(
        "snr", low, high, init=INFORMED, search_at=[0.9 * high]
    )
    critical = theory.spiked_tensor.critical_snr(order)
    folds = specials(diagram, "fold")
    assert len(folds) == (2 if order % 2 == 0 else 1)  # -m is a rest point with m
    np.testing.assert_allclose(folds, critical, rtol=1e-12)
    np.testing.assert_array_equal(diagram.special.values != "", diagram.special.values == "fold")
    (informed,) = [b for b in branches(diagram) if "fold" in b.special and b.m[0] > 0]
    (equator,) = [b for b in branches(diagram) if "fold" not in b.special]
    np.testing.assert_allclose(equator.m, 0.0, atol=1e-12)
    assert set(equator.stability.values) == {"stable"}
    np.testing.assert_allclose(equator.snr[[0, -1]], [low, high], rtol=1e-12)
    np.testing.assert_allclose(informed.snr[[0, -1]], high, rtol=1e-12)
    at_fold = theory.spiked_tensor.overlaps(order, critical)[0]
    assert informed.sizes["point"] > 20
    for m, snr, stability in zip(
        informed.m.values, informed.snr.values, informed.stability.values, strict=True
    ):
        if snr > critical + 1e-9:  # there the overlap is a smooth function of snr
            expected = theory.spiked_tensor.overlaps(order, snr)[int(m > at_fold)]
            np.testing.assert_allclose(m, expected, atol=1e-8)
            assert stability == ("stable" if m > at_fold else "unstable")
    # negative control: the least snr that was met on the way is not yet the fold
    others = informed.snr.values[informed.special.values == ""]
    assert np.min(others) > critical + 1e-6


@double_precision
def test_by_moving_the_parameter_alone_no_one_passes_a_fold() -> None:
    family = family_of(SpikedTensor(order=3), "snr", 2.0, 8.0, 1.0, 2)
    tracer, last = Tracer(family, 0), np.array([1.0, 1.0, family.position(4.0)])
    for place in np.arange(last[-1], 0.0, -0.01):
        guess = np.append(last[:2], place)
        found = tracer.solve(last, guess, np.array([0.0, 0.0, 1.0]))
        if found is None or found.x[0] < 0.1:
            break
        last = found.x
    critical = theory.spiked_tensor.critical_snr(3)
    assert critical < float(family.value(last[-1])) < critical + 0.1
    assert last[0] > theory.spiked_tensor.overlaps(3, critical)[0]


def test_pitchfork_of_the_matrix() -> None:
    diagram = sl.effective_dynamics(SpikedTensor(order=2)).bifurcations(
        "snr", 0.5, 2.0, init=INFORMED, search_at=[0.7, 1.7]
    )
    np.testing.assert_allclose(specials(diagram, "branch"), [1.0, 1.0], rtol=1e-9)
    equator, fork = sorted(branches(diagram), key=lambda branch: np.ptp(branch.m.values))
    np.testing.assert_allclose(equator.growth, 4 * (equator.snr - 1), atol=1e-9)
    np.testing.assert_allclose(fork.m**2, fork.snr - 1, atol=1e-9)
    np.testing.assert_allclose(sorted(fork.m.values[[0, -1]]), [-1.0, 1.0], rtol=1e-9)
    assert set(fork.stability.values[fork.special.values == ""]) == {"stable"}


def test_the_step_can_move_too() -> None:
    """λ_c is proportional to step^(k/2)."""
    diagram = sl.effective_dynamics(SpikedTensor(order=3, snr=4.0)).bifurcations(
        "step", 0.2, 2.0, init=INFORMED, search_at=[0.5]
    )
    critical = (4.0 / theory.spiked_tensor.critical_snr(3)) ** (2 / 3)
    np.testing.assert_allclose(specials(diagram, "fold"), [critical], rtol=1e-10)
    assert "step" not in diagram.attrs
    np.testing.assert_allclose(diagram.r2, diagram.step, rtol=1e-9)


# --- networks -----------------------------------------------------------------------------------


def aligned(*neurons: list[float]) -> dict[str, Any]:
    """One start: rows of (v, overlaps)."""
    rows = np.array(neurons)
    return {"v": rows[None, :, 0], "M": rows[None, :, 1:], "R": 0.01 * np.eye(len(rows))[None]}


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def test_points_and_rings_of_the_binary_mixture_shrink_to_the_origin() -> None:
    starts = both(aligned([1.0, 1.0], [-1.0, -1.0]), aligned([0.5, 0.5], [1.0, 1.0]))
    starts = both(starts, aligned([0.0, 0.0], [0.0, 0.0]))
    task = sl.tasks.BinaryMixture(precision=math.inf)
    diagram = sl.effective_dynamics(task).bifurcations(
        "ridge", 0.05, 0.3, init=starts, search_at=[0.11, 0.23]
    )
    found = {float(np.sign(b.v[0]).sum()): b for b in branches(diagram) if np.any(b.v[0])}
    (origin,) = [b for b in branches(diagram) if not np.any(b.v[0])]
    assert len(branches(diagram)) == 5  # two points and two rings, by symmetry
    for squares, kernel, stability in ((2, 0, "stable"), (1, 1, "marginal")):
        branch = found[0.0 if squares == 2 else 2.0]
        assert int(branch.kernel_dimension) == kernel
        ordinary = branch.isel(point=branch.ridge.values < 0.249)
        assert set(ordinary.stability.values) == {stability}
        expected = [theory.binary_mixture.ring_radius_squared(r) for r in ordinary.ridge.values]
        found_square = np.sum(ordinary.v.values**2, axis=1)
        np.testing.assert_allclose(found_square, squares * np.array(expected), rtol=1e-10)
        np.testing.assert_allclose(ordinary.M[..., 0], ordinary.v, atol=1e-9)
    np.testing.assert_allclose(specials(diagram, "end"), 0.25, atol=1e-9)
    np.testing.assert_allclose(specials(diagram, "branch"), 0.25, atol=1e-9)
    stable = origin.stability.values == "stable"
    np.testing.assert_array_equal(stable, origin.ridge > 0.25)
    np.testing.assert_allclose(origin.growth, np.maximum(0.25 - origin.ridge, -origin.ridge))


@double_precision
def follow(task: Task, parameter: str, low: float, high: float, start: dict[str, Any]) -> Any:
    """The curve through the rest point near ``start`` in the middle of the range, as it is."""
    family = family_of(task, parameter, low, high, 1.0, 128)
    vector = family.first.ravel({name: x[0] for name, x in start.items()})
    found = Tracer(family, 0).curve(np.append(vector, 0.5))
    values = np.array([float(family.value(float(point.x[-1]))) for point in found.points])
    return values, np.array([point.x[: task.shapes["v"][0]] for point in found.points]), found.ends


def test_classifiers_of_xor_end_at_an_eighth() -> None:
    task = sl.tasks.XorMixture(precision=math.inf)
    start = aligned([0.7, 0.7, 0], [0.7, -0.7, 0], [-0.7, 0, 0.7], [-0.7, 0, -0.7])
    ridge, v, ends = follow(task, "ridge", 0.02, 0.16, start)
    assert ends == ("range", "gone")
    np.testing.assert_allclose(ridge[-1], 0.125, atol=1e-9)
    expected = [theory.xor.ring_radius_squared(value) for value in ridge[:-1]]
    np.testing.assert_allclose(v[:-1] ** 2, np.tile(expected, (4, 1)).T, rtol=1e-8)


def test_the_noiseless_point_is_reached_like_one_over_precision() -> None:
    """A single neuron, whose |v| is the radius of the rings of wider networks."""
    task = sl.tasks.BinaryMixture(width=1, ridge=0.1)
    precision, v, ends = follow(task, "precision", 5.0, 1000.0, aligned([1.0, 1.0]))
    assert ends == ("range", "range")
    np.testing.assert_allclose(precision[[0, -1]], [5.0, 1000.0], rtol=1e-9)
    gaps = np.abs(v[:, 0] - math.sqrt(theory.binary_mixture.ring_radius_squared(0.1)))
    far = precision > 50
    slope, _ = np.polyfit(np.log(precision[far]), np.log(gaps[far]), 1)
    assert far.sum() > 5
    np.testing.assert_allclose(slope, -1.0, atol=0.02)


@double_precision
def test_on_the_sphere() -> None:
    """Phase retrieval learns at steps below 2/(12 + noise) and has the excess risk of AKLS23."""
    noise, task = 0.2, sl.tasks.PhaseRetrieval(noise=0.2)
    family = family_of(task, "step", 0.02, 0.3, 1.0, 2)
    tracer = Tracer(family, 0)
    points = examine(tracer, tracer.curve(np.array([0.97, 0.05, family.position(0.05)])))
    steps = [float(family.value(float(examined.point.x[-1]))) for examined in points]
    np.testing.assert_allclose([steps[0], steps[-1]], 0.02, rtol=1e-12)
    for step, (point, spectrum, kind) in zip(steps, points, strict=True):
        m, R, _ = point.x
        np.testing.assert_allclose(m**2 + R, 1.0, rtol=1e-12)
        if kind:
            assert (kind, round(step, 10)) == ("branch", round(2 / (12 + noise), 10))
        else:
            excess = theory.phase_retrieval.excess_risk(step, noise)
            np.testing.assert_allclose(2 * R, excess, atol=1e-10)
            assert spectrum.stability == "stable"
    assert sum(kind != "" for _, _, kind in points) == 1


# --- normal forms -------------------------------------------------------------------------------


class NormalForm(Model):
    """Planar drifts of which everything is known, with μ = snr − 1 and r = r2 − 1."""

    task: Task
    step: jax.Array
    case: jax.Array

    def population_drift(self, vector: jax.Array) -> jax.Array:
        assert isinstance(self.task, SpikedTensor)
        mu, m, r = self.task.snr - 1, vector[0], vector[1] - 1
        cases = {
            "hopf": (mu * m - r, m + mu * r),
            "transcritical": ((m + mu**2) * (mu - m), m - r),
            "closed": (0.04 - m**2 - mu**2, m - r),
            "edge": (-m, mu - r - 0.8),
        }
        return -jax.lax.switch(self.case, [lambda h=h: jnp.stack(h) for h in cases.values()])

    def corrector(self, vector: jax.Array) -> jax.Array:
        return jnp.zeros(2)

    def diffusion(self, vector: jax.Array) -> jax.Array:
        return jnp.zeros((2, 2))

    def retract(self, vector: jax.Array) -> jax.Array:
        return vector


@double_precision
def curve(case: int, m: float, r: float, mu: float) -> list[Examined]:
    family = family_of(SpikedTensor(), "snr", 0.5, 1.5, 1.0, 2)
    task, step = family.first.task, family.first.step
    first = NormalForm(task, step, jnp.asarray(case))
    tracer = Tracer(eqx.tree_at(lambda f: f.first, family, first), 0)
    return examine(tracer, tracer.curve(np.array([m, 1 + r, mu + 0.5])))


def events(points: list[Examined]) -> list[tuple[str, float]]:
    """What happens along a curve, and at which μ."""
    return [(kind, round(float(point.x[-1]) - 0.5, 8)) for point, _, kind in points if kind]


def test_hopf() -> None:
    assert events(curve(0, 0.0, 0.0, -0.3)) == [("hopf", 0.0)]


@pytest.mark.parametrize("m", [-0.09, -0.3])
def test_transcritical(m: float) -> None:
    points = curve(1, m, m, -0.3)
    assert events(points) == [("branch", 0.0)]
    np.testing.assert_allclose([points[i].point.x[-1] for i in (0, -1)], [0.0, 1.0], atol=1e-12)


def test_a_closed_curve() -> None:
    points = curve(2, 0.2, 0.2, 0.0)
    assert sorted(events(points)) == [("fold", -0.2), ("fold", 0.2)]
    np.testing.assert_array_equal(points[0].point.x, points[-1].point.x)
    for point, _, _ in points:
        np.testing.assert_allclose(point.x[0] ** 2 + (point.x[-1] - 0.5) ** 2, 0.04, atol=1e-9)


def test_the_edge_of_the_states() -> None:
    """r2 = μ + 0.2 cannot be negative."""
    points = curve(3, 0.0, -0.8, 0.0)
    assert events(points) == [("end", -0.2)]
    assert points[-1].point.x[-1] == pytest.approx(1.0)


# --- the rest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS, ids=IDS)
@double_precision
def test_every_real_parameter_moves_all_that_depends_on_it(task: Task) -> None:
    names = [name for name, value in task.arguments().items() if isinstance(value, float)]
    for name in names:
        family = family_of(task, name, 0.2, 0.9, 1.0, 16)
        expected = task.replace(**{name: float(family.value(0.3))})
        moved = jax.tree.leaves(family.at(0.3).task)
        for got, wanted in zip(moved, jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_results_can_be_stored(tmp_path: Path) -> None:
    diagram = sl.effective_dynamics(SpikedTensor(order=3)).bifurcations(
        "snr", 2.0, 4.0, init=INFORMED, search_at=[3.9]
    )
    for name in ("diagram.nc", "diagram.zarr"):
        sl.results.save(diagram, tmp_path / name)
        xr.testing.assert_identical(sl.results.load(tmp_path / name), diagram)
    assert sl.results.statistics(diagram) == ["m", "r2"]
    assert sl.results.parameters(diagram) == {"order": 3, "ridge": 0.0}


def test_nothing_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagram_module, "fixed_points", lambda *_, **__: [])
    with pytest.warns(RuntimeWarning, match="no rest point was found at noise = 0.2: give init"):
        diagram = sl.effective_dynamics(sl.tasks.PhaseRetrieval()).bifurcations(
            "noise", 0.1, 0.3, search_at=0.2
        )
    assert dict(diagram.sizes) == {"branch": 0, "point": 0, "neuron": 1, "anchor": 1, "neuron_": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameter": "order"}, "parameter='order' is not allowed: the real parameters of Spiked"),
        ({"low": -1.0}, "snr=-1.0 is not allowed"),
        ({"low": 5.0}, "low=5.0 is not allowed: low must be less than high=4.0"),
        ({"high": math.inf}, "high=inf is not allowed: high must be finite"),
        ({"low": "a"}, "low='a' is not allowed"),
        ({"parameter": "step", "low": 0.0}, "step=0.0 is not allowed"),
        (
            {"search_at": [5.0]},
            r"at=\[5.0\] is not allowed: search_at must list values of snr between low=2",
        ),
        ({"search_at": []}, "at=.* is not allowed"),
        ({"seed": -1}, "seed=-1 is not allowed"),
    ],
)
def test_wrong_input(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"parameter": "snr", "low": 2.0, "high": 4.0}
    with pytest.raises(ValueError, match=message):
        sl.effective_dynamics(SpikedTensor(order=3)).bifurcations(**(given | arguments))
