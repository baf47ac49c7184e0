"""Rest points found by search against the papers' classifications."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import theory


@functools.cache
def of_tensor(order: int, snr: float) -> Any:
    """The rest points of a spiked tensor that a search finds."""
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=order, snr=snr))
    return limit.fixed_points(count=32)


@pytest.mark.parametrize(("order", "snr"), [(2, 0.7), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)])
def test_spiked_tensors(order: int, snr: float) -> None:
    found = of_tensor(order, snr)
    expected = theory.spiked_tensor.fixed_points(order, snr)
    each = [(point, state) for point in found for state in point.orbit]
    assert len(each) == len(expected)
    for point in expected:
        nearest, state = min(
            each,
            key=lambda pair: (
                abs(pair[1]["m"] - point.overlap) + abs(pair[1]["r2"] - point.radius_squared)
            ),
        )
        np.testing.assert_allclose(state["m"], point.overlap, atol=1e-8)
        np.testing.assert_allclose(state["r2"], point.radius_squared, atol=1e-8)
        assert nearest.kernel_dimension == 0
        assert (nearest.stability == "stable") == point.stable
        jacobian = theory.spiked_tensor.jacobian(
            point.overlap, point.radius_squared, order=order, snr=snr
        )
        values = np.sort(np.linalg.eigvals(jacobian).real)
        np.testing.assert_allclose(np.sort(nearest.eigenvalues.real), values, atol=1e-6)


def test_eigenvalues_of_the_third_order_tensor() -> None:
    saddle = next(point for point in of_tensor(3, 4.0) if 0.1 < point.state["m"] < 0.5)
    np.testing.assert_allclose(saddle.state["m"], 0.2955977425220848, rtol=1e-9)
    expected = [4.814035147629564, -14.188691641060068]
    np.testing.assert_allclose(saddle.eigenvalues, expected, rtol=1e-8)
    assert saddle.stability == "unstable"
    (direction,) = saddle.unstable_directions
    assert abs(direction["m"]) > 0.5


def test_binary_mixture_has_two_points_and_two_rings() -> None:
    ridge = 0.1
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture(precision=math.inf, ridge=ridge))
    found = limit.fixed_points(count=24)
    radius = math.sqrt(theory.binary_mixture.ring_radius_squared(ridge))
    (stable,) = [point for point in found if point.stability == "stable"]
    ends = sorted(tuple(np.round(state["v"], 6)) for state in stable.orbit)
    np.testing.assert_allclose(ends, [(-radius, radius), (radius, -radius)], atol=1e-6)
    (ring,) = [point for point in found if point.kernel_dimension == 1 and point.representatives]
    assert {tuple(np.sign(state["v"])) for state in ring.orbit} == {(1.0, 1.0), (-1.0, -1.0)}
    assert ring.multiplicity == 2
    assert ring.stability == "marginal"
    for state in [*ring.orbit, *ring.representatives]:
        np.testing.assert_allclose(np.sum(state["v"] ** 2), radius**2, atol=1e-6)
        np.testing.assert_allclose(state["M"][:, 0], state["v"], atol=1e-6)
        np.testing.assert_allclose(state["R"], 0.0, atol=1e-8)
    saddles = [point for point in found if point.stability == "unstable"]
    assert any(np.allclose(point.state["v"], 0) for point in saddles)


def test_the_connected_sets_of_xor() -> None:
    """39 of them, 24 stable: one for every way to give the four neurons the four roles."""
    ridge, task = 0.05, sl.tasks.XorMixture(precision=math.inf, ridge=0.05)
    kinds = np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]], dtype=float)
    generator = np.random.default_rng(0)
    # two starts for every way up to the order of neurons, which makes up for the others
    words = [*itertools.combinations_with_replacement(range(4), 4)] * 2
    patterns = np.array([kinds[list(word)] for word in words])
    noisy = patterns * generator.uniform(0.7, 1.4, size=patterns.shape)
    noisy = np.concatenate([noisy, np.zeros((1, 4, 3))])
    R = np.tile(0.1 * np.eye(4), (len(noisy), 1, 1))
    found = sl.effective_dynamics(task).fixed_points(
        {"v": noisy[:, :, 0], "M": noisy[:, :, 1:], "R": R}
    )
    stable = [point for point in found if point.stability == "stable"]
    numbers = tuple(sum(point.multiplicity for point in points) for points in (found, stable))
    assert numbers == theory.xor.connected_components(4) == (39, 24)
    assert len(stable) == 1
    radius = math.sqrt(theory.xor.ring_radius_squared(ridge))
    for point in stable:
        np.testing.assert_allclose(np.abs(point.state["v"]), radius, atol=1e-6)
        np.testing.assert_allclose(np.max(np.abs(point.state["M"]), axis=1), radius, atol=1e-6)


def test_on_the_sphere_only_tangent_directions_count() -> None:
    """(8) of AKLS23: noise leaves an excess risk; one eigenvalue, not two."""
    step, noise = 0.05, 0.2
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=noise), step=step)
    found = limit.fixed_points(count=24)
    (end,) = [point for point in found if point.stability == "stable"]
    assert sorted(np.sign(state["M"][0, 0]) for state in end.orbit) == [-1.0, 1.0]
    excess = 2 * (1 - end.state["M"][0, 0] ** 2)
    np.testing.assert_allclose(excess, theory.phase_retrieval.excess_risk(step, noise), 1e-9)
    assert end.eigenvalues.shape == (1,)
    (equator,) = [point for point in found if point.stability == "unstable"]
    growth = 4 * (1 - 6 * step) - 2 * step * noise
    np.testing.assert_allclose(equator.eigenvalues, [growth], rtol=1e-9)


def test_nothing_found_is_an_empty_list_that_says_where_it_looked() -> None:
    """A drift without zeros: the label can never be matched, so W grows for ever."""

    def loss(s, v, y):  # type: ignore[no-untyped-def]
        return -s[0]

    task = sl.tasks.MultiIndexTask(
        loss=loss, anchors=["mu"], means=[[1.0]], labels=[0], kinks="none"
    )
    starts = {"M": np.array([[[0.1]], [[1.0]]]), "R": np.array([[[1.0]], [[0.5]]])}
    found = sl.effective_dynamics(task).fixed_points(starts)
    assert found == []
    assert found.searched == "0 of 2 starts came to rest, 2 did not; the starts that were given"
    assert repr(found) == f"no fixed point found: {found.searched}"


def test_points_apart_by_rounding_are_one_and_others_that_are_close_are_not() -> None:
    """Of the four, r2 = 0.001 is where statistics begin to have a sign; two are 1e-6 apart."""
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=1.0), step=1e-3)
    seen = [(float(point.state["m"]), float(point.state["r2"])) for point in limit.fixed_points()]
    expected = [(0, 0), (0, 1e-3), (1e-6, 1e-3), (1 - 0.000667, 1e-3)]
    np.testing.assert_allclose(sorted(seen), expected, atol=1e-7)


def test_a_stable_point_is_not_unstable_because_solutions_tremble() -> None:
    """Noiseless regression by one ReLU unit: rates −1 and −2 + 2c at the minimum."""
    for step in (0.1, 0.3):
        limit = sl.effective_dynamics(sl.tasks.SingleIndex("relu", spherical=False), step=step)
        [point] = limit.fixed_points(init={"M": [[[1.0]]], "R": [[[0.0]]]})
        assert point.stability == "stable"
        np.testing.assert_allclose(point.eigenvalues, [-1.0, -2 + 2 * step], atol=1e-5)
