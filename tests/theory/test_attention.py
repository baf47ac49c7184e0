"""Closed forms of self-attention among themselves; the flow itself is in tests/lectures."""

from collections.abc import Callable

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.theory import attention


@pytest.mark.parametrize("beta", [0.0, 3.0, 12.0])
def test_two_particles_are_two_clusters(beta: float) -> None:
    """Three functions, one law: for n = 2 the bound is sharp, and times invert products."""
    for end in (0.3, 0.99):
        around = attention.meeting_time(beta, 0.0, end) * np.array([1 - 1e-8, 1 + 1e-8])
        for law in (attention.equal_products, attention.least_product):
            before, after = law(around, 2, beta)
            assert before < end < after


def test_lives_of_two_clusters_grow_exponentially() -> None:
    """log T grows by 1 − q for each unit of β, whatever their shares."""
    for share in (0.5, 0.1):
        times = [attention.meeting_time(beta, -0.5, 0.5, share=share) for beta in (60.0, 80.0)]
        assert np.log(times[1] / times[0]) / 20 == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize("softmax", [True, False])
def test_products_move_at_the_rate_that_is_said(softmax: bool) -> None:
    n, beta, h = 7, 2.0, 1e-4
    for gamma in (-0.1, 0.0, 0.6):
        ahead = attention.equal_products([h], n, beta, start=gamma, normalised=softmax)[0]
        total = np.exp(beta) + (n - 1) * np.exp(beta * gamma) if softmax else n
        rate = 2 * np.exp(beta * gamma) * (1 - gamma) * (1 + (n - 1) * gamma) / total
        assert (ahead - gamma) / h == pytest.approx(rate, rel=2e-3)
        if softmax:
            decay = attention.decay_rate(gamma, n, beta)
            assert decay * (1 - gamma) == pytest.approx(rate, rel=1e-12)


def test_the_energy_without_temperature_is_a_limit() -> None:
    """E₀ = lim n (E_β − 1/(2β)) as β goes to 0; as printed, twice that."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    limit = 5 * (attention.energy(X, 1e-5) - 1 / 2e-5)
    exact = attention.energy(X, 0.0)
    assert limit == pytest.approx(exact, abs=1e-4)
    assert exact == pytest.approx(np.sum(X.sum(axis=0) ** 2) / 10)
    assert abs(limit - 2 * exact) > 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention.energy(np.zeros((2, 2)), 1.0), "points=.* norm 1"),
        (lambda: attention.energy([[1.0, 0.0]], 1.0), "points has shape .* two particles"),
        (lambda: attention.energy(np.eye(2), -1.0), "inverse_temperature=-1.0"),
        (lambda: attention.energy(np.eye(2), 300.0, 9 * np.eye(2)), "at most 77"),
        (lambda: attention.energy(np.eye(2), 1.0, np.eye(3)), "interaction has shape"),
        (lambda: attention.energy_rate(np.eye(2), 1.0, True, [[0.0, 1], [0, 0]]), "be symmetric"),
        (lambda: attention.escape_rate(np.eye(2)), "points=.* critical point"),
        (lambda: attention.decay_rate(-0.6, 3, 1.0), r"product=-0.6 .* \[-0.5, 1\]"),
        (lambda: attention.decay_rate(0.0, 1, 1.0), "particles=1 is not allowed"),
        (lambda: attention.equal_products([0.0], 3, 1.0, start=-0.5), "start=-0.5 .* 3 particles"),
        (lambda: attention.equal_products([1.0, 0.0], 3, 1.0), "times=.* must increase"),
        (lambda: attention.equal_products([1.0], 3, 400.0), "inverse_temperature=400.0 .* 350"),
        (lambda: attention.least_product([1.0], 3, 1.0, start=-0.1), "start=-0.1"),
        (lambda: attention.least_product([1.0], 3, 1.0, start=1.0), "start=1.0"),
        (lambda: attention.meeting_time(1.0, -1.0, 0.5), "start=-1.0"),
        (lambda: attention.meeting_time(1.0, 0.5, 0.4), "end=0.4 .* at least start"),
        (lambda: attention.meeting_time(1.0, 0.5, 0.6, share=1.0), "share=1.0"),
    ],
)
def test_wrong_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        call()
