"""The two-layer model: derivatives, bounds of its Lipschitz constant, one program for all cells."""

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures.lazy import SMOOTH, TwoLayers, transition

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((5, 4)), RNG.standard_normal(5)


@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name: str) -> None:
    """Derivatives by differences; the largest curvature is attained."""
    sigma, z = SMOOTH[name], np.linspace(-9, 9, 200_001)
    h = z[1] - z[0]
    np.testing.assert_allclose(
        np.gradient(sigma.value(z), h)[1:-1], sigma.slope(z)[1:-1], atol=1e-8
    )
    np.testing.assert_allclose(
        np.gradient(sigma.slope(z), h)[1:-1], sigma.curvature(z)[1:-1], atol=1e-8
    )
    assert np.abs(sigma.curvature(z)).max() == pytest.approx(sigma.largest, rel=1e-7)


def test_slopes_of_saturated_units_keep_their_digits() -> None:
    far = np.array([20.0])
    assert SMOOTH["tanh"].slope(far)[0] == pytest.approx(4 * np.exp(-40.0), rel=1e-12)
    assert SMOOTH["tanh"].curvature(far)[0] == pytest.approx(-8 * np.exp(-40.0), rel=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_jacobian_and_constants(name: str) -> None:
    model = TwoLayers(6, scale=1.7, activation=name)
    w = model.start(4, seed=1)
    D, h = model.jacobian(w, X), 1e-6
    for k in range(24):
        shift = h * np.eye(24)[k].reshape(6, 4)
        slope = (model.values(w + shift, X) - model.values(w - shift, X)) / (2 * h)
        np.testing.assert_allclose(D[:, k], slope, atol=1e-8)
    found = model.constants(w, X, Y)
    assert found.misfit == pytest.approx(np.linalg.norm(Y - model.values(w, X)))
    np.testing.assert_allclose(
        [found.largest, found.smallest], np.linalg.norm(D, 2) * np.array([1, 1 / np.linalg.cond(D)])
    )
    # ratios of random steps stay below the bound from above; the one from below is a real ratio
    ratios = []
    for scale in (1e-3, 0.3, 3.0):
        for _ in range(50):
            step = scale * RNG.standard_normal(w.shape) * (RNG.random((6, 1)) < 0.3)
            if np.any(step):
                change = np.linalg.norm(model.jacobian(w + step, X) - D, 2)
                ratios.append(change / np.linalg.norm(step))
    assert max(ratios) < found.lipschitz
    assert found.seen < found.lipschitz
    fields = X @ w.T
    along = (X @ (X / np.linalg.norm(X, axis=1)[:, None]).T) ** 2
    strength = np.sqrt((SMOOTH[name].curvature(fields) ** 2).T @ along**2)
    j, i = np.unravel_index(strength.argmax(), strength.shape)
    step = np.zeros_like(w)
    step[j] = 1e-6 * X[i] / np.linalg.norm(X[i])
    ratio = np.linalg.norm(model.jacobian(w + step, X) - D, 2) / 1e-6
    assert found.seen <= ratio * (1 + 1e-4)


def test_more_samples_than_parameters_have_no_smallest() -> None:
    model = TwoLayers(2)
    assert model.constants(model.start(1), np.ones((3, 1)), np.zeros(3)).smallest == 0.0


def test_the_flow_is_descent() -> None:
    """Against many small steps; the loss falls."""
    model = TwoLayers(6, scale=2.0)
    w = model.start(4, seed=2)
    flow = model.flow(w, X, Y, times=[0.0, 0.5, 1.0])
    assert np.all(np.diff(flow.loss) < 0)
    now = w.copy()
    for _ in range(10_000):
        error = Y - model.values(now, X)
        now = now + 1e-4 / 5 * (model.jacobian(now, X).T @ error).reshape(w.shape)
    np.testing.assert_allclose(flow.weights[-1].values.reshape(w.shape), now, atol=1e-3)


def test_the_cells_of_a_transition_are_single_trainings() -> None:
    """Padding changes nothing, and the end is that of the flow."""
    grid = transition(X, Y, scales=[5.0, 50.0], widths=[8, 32], rounds=1000, seed=3)
    alone = transition(X, Y, scales=[50.0], widths=[8], rounds=1000, seed=3)
    assert alone.motion.shape == (1, 1)
    assert float(grid.left.max()) < 1e-6
    pairs = TwoLayers(32).start(4, seed=3)[:16]
    for m in (8, 32):
        model = TwoLayers(m, scale=50.0)
        w = np.concatenate([pairs[: m // 2]] * 2)
        assert np.abs(model.values(w, X)).max() < 1e-12
        D = model.jacobian(w, X)
        time = 40 * 5 / np.linalg.svd(D, compute_uv=False)[-1] ** 2
        end = model.flow(w, X, Y, times=[time]).weights[-1].values.reshape(w.shape)
        moved = np.linalg.norm(end - w) / np.sqrt(m)
        cell = grid.sel(scale=50.0, width=m)
        assert float(cell.motion) == pytest.approx(moved, rel=0.02)
        after = model.jacobian(end, X)
        change = np.linalg.norm(after @ after.T - D @ D.T) / np.linalg.norm(D @ D.T)
        assert float(cell.kernel_change) == pytest.approx(change, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 3}, "width=3 is not allowed: width must be even"),
        ({"width": 0}, "width=0"),
        ({"scale": 0.0}, "scale=0.0"),
        ({"activation": "relu"}, "activation='relu'"),
    ],
)
def test_wrong_models(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        TwoLayers(**({"width": 4} | arguments))  # type: ignore[arg-type]


def test_wrong_shapes() -> None:
    model = TwoLayers(4)
    with pytest.raises(sl.InputError, match=r"weights has shape \(2, 4\)"):
        model.values(np.ones((2, 4)), X)
    with pytest.raises(sl.InputError, match=r"features has shape \(4,\)"):
        model.values(np.ones((4, 4)), X[0])
    with pytest.raises(sl.InputError, match=r"targets has shape \(2,\)"):
        model.flow(model.start(4), X, [1.0, 2.0], times=[1.0])
    with pytest.raises(sl.InputError, match="times must increase"):
        model.flow(model.start(4), X, Y, times=[1.0, 1.0])
    with pytest.raises(sl.InputError, match="scales must be positive"):
        transition(X, Y, scales=[0.0], widths=[2])
    with pytest.raises(sl.InputError, match="width must be even"):
        transition(X, Y, scales=[1.0], widths=[3])
