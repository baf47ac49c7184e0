"""The engine against reference numbers: exact expectations to 1e-6, quadrature to 3e-4."""

import math

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl


def at(solution: xr.Dataset, *times: float) -> list[xr.Dataset]:
    return [solution.sel(time=time, method="nearest") for time in times]


def test_matrix_pca() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    solution = limit.solve({"m": 0.1, "r2": 0.5}, time=1.0, points=21)
    expected = [
        (0.17378314522521002, 0.695130387037036),
        (0.34204858004246297, 0.8928560482012644),
        (0.9918783758077182, 0.9999944642669458),
    ]
    for state, (m, r2) in zip(at(solution, 0.1, 0.25, 1.0), expected, strict=True):
        np.testing.assert_allclose([state.m, state.r2], [m, r2], rtol=1e-6)


def test_spiked_tensor_jacobian() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=4.0))
    for overlap, eigenvalues in [
        (0.9999999999999998, (-47.99999999999998, -23.999999999999975)),
        (0.2955977425220848, (-14.188691641060068, 4.814035147629564)),
    ]:
        found = np.sort(np.linalg.eigvals(limit.jacobian({"m": overlap, "r2": 1.0})).real)
        np.testing.assert_allclose(found, eigenvalues, rtol=1e-8)


def test_xor_without_noise() -> None:
    task = sl.tasks.XorMixture(width=4, precision=math.inf, ridge=0.05)
    start = {
        "v": [1.0, 0.5, -0.8, -1.2],
        "M": np.array([[0.01, -0.02, 0.0, 0.0], [0.0, 0.0, 0.01, -0.03]]).T,
        "R": np.eye(4),
    }
    solution = sl.effective_dynamics(task).solve(start, time=100.0, points=101)
    readouts = [
        [0.9593324105797046, 0.4816010355731691, -0.7678384878254076, -1.152773297115456],
        [0.9479317111720706, 0.5530184520080648, -0.803245708863491, -1.0819991930811304],
        [1.1773993746636546, 1.1773445844290642, -1.177384496032675, -1.1774114310306327],
    ]
    overlaps = [
        [0.12478677692168394, -0.07805214874283017, 0.10281283764586405, -0.16350763360428022],
        [0.7285134698948119, -0.4626085815729899, 0.6401543676348217, -0.8008164271780683],
        [1.1773800966844115, -1.1773397719698324, 1.177372158700493, -1.1773836855004738],
    ]
    for time, found, v, m in zip(
        (1.0, 10.0, 100.0), at(solution, 1.0, 10.0, 100.0), readouts, overlaps, strict=True
    ):
        np.testing.assert_allclose(found.v, v, rtol=1e-6)
        np.testing.assert_allclose(found.M.sel(anchor="mu")[:2], m[:2], rtol=1e-6)
        np.testing.assert_allclose(found.M.sel(anchor="nu")[2:], m[2:], rtol=1e-6)
        # sign(0) = 0: an overlap that is exactly zero stays so
        assert np.all(found.M.sel(anchor="mu")[2:] == 0)
        assert np.all(found.M.sel(anchor="nu")[:2] == 0)
        np.testing.assert_allclose(found.R, math.exp(-0.1 * time) * np.eye(4), rtol=1e-6, atol=1e-9)


def test_softmax_without_noise() -> None:
    task = sl.tasks.GaussianMixture(weights=[0.5, 0.3, 0.2], precision=math.inf, ridge=0.1)
    solution = sl.effective_dynamics(task).solve({"M": np.zeros((3, 3)), "R": np.eye(3)}, time=5.0)
    expected = [
        [0.2915599884073061, -0.09050842736145759, -0.0613675604415112],
        [-0.14577999420365306, 0.1810168547229149, -0.0613675604415112],
        [-0.14577999420365306, -0.09050842736145759, 0.12273512088302246],
    ]
    np.testing.assert_allclose(at(solution, 1.0)[0].M, expected, rtol=1e-6)
    np.testing.assert_allclose(solution.R[-1], math.exp(-1.0) * np.eye(3), rtol=1e-6, atol=1e-9)


def test_phase_retrieval_on_the_sphere() -> None:
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(noise=0.4), step=0.08)
    solution = limit.solve({"M": [[0.1]], "R": [[0.99]]}, time=3.0, points=31)
    found = [float(state.M[0, 0]) for state in at(solution, 0.5, 1.0, 3.0)]
    expected = [0.2652506300168033, 0.5989714686957488, 0.9842317300630973]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_phase_retrieval_of_width_two() -> None:
    """AKLS23 counts time in units of ours divided by the width."""
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(width=2, noise=0.4), step=0.15)
    m = np.array([0.1, -0.05])
    gram = np.array([[1.0, -0.005], [-0.005, 1.0]])
    solution = limit.solve({"M": m[:, None], "R": gram - np.outer(m, m)}, time=6.0, points=61)
    expected = [
        (0.4331445699618554, -0.22828510627840884, -0.08625529341335002),
        (0.8521985614953316, -0.6188734100773889, -0.46415387764171717),
        (0.9669563872909722, -0.9667128417465436, -0.9220163544165413),
    ]
    for state, values in zip(at(solution, 1.0, 2.0, 6.0), expected, strict=True):
        m1, m2 = state.M.values[:, 0]
        np.testing.assert_allclose([m1, m2, state.R[0, 1] + m1 * m2], values, rtol=1e-6)


def test_phase_retrieval_off_the_sphere() -> None:
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(spherical=False), step=0.05)
    solution = limit.solve({"M": [[0.1]], "R": [[0.99]]}, time=2.0, points=5)
    expected = [
        (0.35254283844518153, 0.5013663208618133),
        (0.8907556034886976, 0.894497464100954),
        (0.9995754437688893, 0.9996034955070654),
    ]
    for state, values in zip(at(solution, 0.5, 1.0, 2.0), expected, strict=True):
        m = float(state.M[0, 0])
        np.testing.assert_allclose([m, state.R[0, 0] + m**2], values, rtol=1e-6)


def test_saad_solla() -> None:
    """Their time is steps/dim, ours divided by the step."""
    task = sl.tasks.TeacherStudent(noise=0.01, scale="sum")
    M = np.array([[0.1, 0.02], [0.03, 0.15]])
    Q = np.array([[0.2, 0.05], [0.05, 0.3]])
    solution = sl.effective_dynamics(task, step=0.5).solve({"M": M, "R": Q - M @ M.T}, time=5.0)
    expected = {
        0.5: (
            [0.23999839443562912, 0.07349006340935628, 0.3225340398003078],
            [0.23618981439987669, 0.14676150755139084, 0.16007184682569348, 0.27611109201193046],
        ),
        5.0: (
            [0.42361548571052987, 0.2635783147337397, 0.4660157194081486],
            [0.46514551102673923, 0.3469399901987446, 0.3692325362541929, 0.4897330872316653],
        ),
    }
    for time, (gram, overlaps) in expected.items():
        (state,) = at(solution, time)
        found = (state.R.values + state.M.values @ state.M.values.T)[np.triu_indices(2)]
        np.testing.assert_allclose(found, gram, rtol=1e-6)
        np.testing.assert_allclose(state.M.values.ravel(), overlaps, rtol=1e-6)


@pytest.mark.parametrize(("nodes", "tolerance"), [(2**10, 2e-5), (2**14, 1e-8)])
def test_relu_integrals(nodes: int, tolerance: float) -> None:
    """The integrals A and B of BGJ22, (4.3), read off the drift; relative to the largest."""
    v, m, precision = np.array([0.8, -0.5]), np.array([0.6, 0.3]), 2.0
    state = {"v": v, "M": m[:, None], "R": [[0.7, 0.2], [0.2, 0.9]]}
    task = sl.tasks.BinaryMixture(precision=precision, ridge=0.0)
    limit = sl.effective_dynamics(task, nodes=nodes)
    drift, corrector = limit.population_drift(state), limit.corrector(state)
    along = drift["M"][:, 0] / v
    own = drift["v"] - m * along
    cross = drift["R"][0, 1]
    square = corrector["R"] * precision / np.outer(v, v)
    A = [-0.19604769340821085, -0.20736252494722046]
    A_perp = np.array(
        [
            [0.024146686607799814, -0.009769234757674555],
            [0.019501871002288496, -0.005583993705157553],
        ]
    )
    B = [[0.09809101351548585, 0.06617698278549346], [0.06617698278549346, 0.10406774059453286]]
    scale = np.max(np.abs(A))
    np.testing.assert_allclose(along, A, rtol=tolerance)
    np.testing.assert_allclose(own, np.diag(A_perp), rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(
        cross, v[0] * A_perp[0, 1] + v[1] * A_perp[1, 0], rtol=0, atol=tolerance * scale
    )
    np.testing.assert_allclose(square, B, rtol=0, atol=tolerance * scale)
