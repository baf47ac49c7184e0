"""XOR mixture: reference numbers, brute-force counts, and printed formulas that must fail."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

from sgdlimits.theory import xor


def test_ring_radius_reference() -> None:
    values = [xor.ring_radius_squared(0.1), xor.ring_radius_squared(0.05)]
    np.testing.assert_allclose(values, [0.4054651081081644, 1.3862943611198906], rtol=1e-10)


def test_ode_reference() -> None:
    start = [1.0, 0.5, -0.8, -1.2, 0.01, -0.02, 0.0, 0.0, 0.0, 0.0, 0.01, -0.03]
    solution = solve_ivp(
        lambda t, u: np.concatenate(xor.noiseless_drift(*np.split(u, 3), ridge=0.05)),
        (0, 100),
        start,
        method="DOP853",
        t_eval=[1.0, 10.0, 100.0],
        rtol=1e-11,
        atol=1e-13,
    )
    expected = [
        [
            0.9593324105797046,
            0.4816010355731691,
            -0.7678384878254076,
            -1.152773297115456,
            0.12478677692168394,
            -0.07805214874283017,
            0.0,
            0.0,
            0.0,
            0.0,
            0.10281283764586405,
            -0.16350763360428022,
        ],
        [
            0.9479317111720706,
            0.5530184520080648,
            -0.803245708863491,
            -1.0819991930811304,
            0.7285134698948119,
            -0.4626085815729899,
            0.0,
            0.0,
            0.0,
            0.0,
            0.6401543676348217,
            -0.8008164271780683,
        ],
        [
            1.1773993746636546,
            1.1773445844290642,
            -1.177384496032675,
            -1.1774114310306327,
            1.1773800966844115,
            -1.1773397719698324,
            0.0,
            0.0,
            0.0,
            0.0,
            1.177372158700493,
            -1.1773836855004738,
        ],
    ]
    np.testing.assert_allclose(solution.y.T, expected, rtol=1e-6, atol=1e-12)


def test_success_probability_reference() -> None:
    expected = [0.09375, 0.234375, 0.380859375, 0.5126953125, 0.6229248046875]
    expected += [0.71136474609375, 0.7806015014648438]
    values = [xor.success_probability(width) for width in range(4, 11)]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert xor.success_probability(3) == 0


def test_success_probability_by_counting() -> None:
    for width in (4, 5, 6):
        words = itertools.product(range(4), repeat=width)
        hits = sum(len(set(word)) == 4 for word in words)
        assert xor.success_probability(width) == pytest.approx(hits / 4**width, rel=1e-14)


def test_drift_is_a_gradient_and_the_printed_sign_is_not() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        state = rng.normal(size=12)
        v, _, nu = np.split(state, 3)
        velocity = np.concatenate(xor.noiseless_drift(*np.split(state, 3), ridge=0.05))
        numerical = np.array(
            [
                -(
                    xor.population_loss(*np.split(state + e, 3), ridge=0.05)
                    - xor.population_loss(*np.split(state - e, 3), ridge=0.05)
                )
                / 2e-6
                for e in 1e-6 * np.eye(12)
            ]
        )
        np.testing.assert_allclose(velocity, numerical, atol=1e-8)
        up, down = np.maximum(nu, 0), np.maximum(-nu, 0)
        printed = -v / 4 * np.where(nu > 0, expit(-v @ up), -expit(-v @ down)) - 0.05 * nu
        assert np.abs(printed - numerical[8:]).max() > 1e-3


def test_components_by_brute_force() -> None:
    """Union-find over all partitions, joined by the moves of the proof of Prop. 9.3."""
    for width in range(1, 6):
        sets = {partition: partition for partition in xor.fixed_point_sets(width, 0.1)}

        def root(partition: xor.FixedPointSet) -> xor.FixedPointSet:
            while sets[partition] != partition:
                partition = sets[partition]
            return partition

        for partition in sets:
            for label in range(1, 5):
                if len(partition[label]) < 2:
                    continue
                for neuron in partition[label]:
                    parts = list(partition)
                    parts[label] = tuple(i for i in parts[label] if i != neuron)
                    parts[0] = tuple(sorted((*parts[0], neuron)))
                    sets[root(xor.FixedPointSet(*parts))] = root(partition)
        roots = {root(partition) for partition in sets}
        full = {r for r in roots if sum(map(bool, r[1:])) == min(4, width)}
        assert xor.connected_components(width) == (len(roots), len(full))


@pytest.mark.parametrize("width", [2, 3, 4])
def test_partitions_are_at_rest_and_full_ones_attract(width: int) -> None:
    rng = np.random.default_rng(1)
    alpha = 0.05
    square = xor.ring_radius_squared(alpha)
    partitions = list(xor.fixed_point_sets(width, alpha))
    for index in rng.choice(len(partitions), size=min(25, len(partitions)), replace=False):
        partition = partitions[index]
        state = np.zeros((3, width))
        for label, (row, v_sign, m_sign) in enumerate(
            [(1, 1, 1), (1, 1, -1), (2, -1, -1), (2, -1, 1)], start=1
        ):
            neurons = list(partition[label])
            if neurons:
                size = np.sqrt(square * rng.dirichlet(np.ones(len(neurons))))
                state[0, neurons], state[row, neurons] = v_sign * size, m_sign * size
        velocity = np.array(xor.noiseless_drift(*state, ridge=alpha))
        np.testing.assert_allclose(velocity, 0, atol=1e-14)
        if sum(map(bool, partition[1:])) == width:  # a neuron each: perturbations die out
            kick = state + 0.1 * rng.normal(size=state.shape)
            for _ in range(2000):
                kick = kick + 0.1 * np.array(xor.noiseless_drift(*kick, ridge=alpha))
            np.testing.assert_allclose(kick, state, atol=0.03)  # sign flips chatter at 0
    assert len(list(xor.fixed_point_sets(width, 0.2))) == 1


def test_diffusion_on_two_rings() -> None:
    alpha = 0.05
    size = np.sqrt(xor.ring_radius_squared(alpha))
    a = size * np.array([np.cos(0.4), np.sin(0.4), -np.cos(1.0), -np.sin(1.0)])
    mu, nu = a * [1, 1, 0, 0], a * [0, 0, 1, 1]
    # a neuron with v < 0 sits at m^ν = v < 0: the sample −ν activates it
    matrix = xor.noiseless_diffusion(a, mu, nu)[:4, :4]
    signs = np.array([1, 1, 1, 1])
    expected = alpha**2 * np.outer(a * signs, a * signs)
    expected[:2, :2] *= 3
    expected[2:, 2:] *= 3
    expected[:2, 2:] *= -1
    expected[2:, :2] *= -1
    np.testing.assert_allclose(np.abs(matrix), np.abs(expected), rtol=1e-12)
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)
    assert np.abs(matrix[0, 2]) != pytest.approx(3 * np.abs(expected[0, 2]))  # sec. 9.5 as printed


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"ridge=0.2 is not allowed.*\(0, 0.125\)"):
        xor.ring_radius_squared(0.2)
    with pytest.raises(ValueError, match=r"width=0 is not allowed.*integer >= 1"):
        xor.success_probability(0)
    with pytest.raises(ValueError, match=r"nu_overlaps has shape \(2,\)"):
        xor.noiseless_drift([1.0], [1.0], [1.0, 2.0], ridge=0.1)
    with pytest.raises(ValueError, match=r"point=\[1.0, 1.0, 1.0, 1.0\] is not allowed"):
        xor.rings_jacobian([1.0, 1.0, 1.0, 1.0], ridge=0.05)
