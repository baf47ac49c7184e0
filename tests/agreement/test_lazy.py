"""What the theorems on lazy training promise, along true flows of two layers."""

import numpy as np
import pytest

from sgdlimits.lectures.lazy import TwoLayers
from sgdlimits.theory import lazy

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 8)), RNG.standard_normal(6)


@pytest.mark.parametrize("activation", ["softplus", "tanh"])
def test_promises_are_kept(activation: str) -> None:
    """Theorem 9.1, where it applies; its first two lines fail for a flow that is not lazy."""
    deviations = []
    for scale in (100.0, 400.0):
        model = TwoLayers(64, scale=scale, activation=activation)
        w = model.start(8, centred=True)
        found = model.constants(w, X, Y)
        promise = lazy.guarantee(
            found.misfit, smallest=found.smallest, largest=found.largest,
            lipschitz=found.lipschitz, samples=6,
        )  # fmt: skip
        assert promise.holds
        times = np.concatenate([[0.0], np.geomspace(1e-3, 3, 30)]) * 6 / found.smallest**2
        flow = model.flow(w, X, Y, times=times)
        moved = flow.weights.values - w.ravel()
        loss = flow.loss.values
        assert np.all(loss <= loss[0] * np.exp(-promise.rate * times) * (1 + 1e-9))
        assert np.linalg.norm(moved, axis=1).max() <= promise.reach
        apart = moved - lazy.linear_flow(model.jacobian(w, X), Y, times=times)
        deviations.append(np.linalg.norm(apart, axis=1).max())
        assert 0 < deviations[-1] <= promise.deviation
        # the negative control: a rate that the theorem does not allow, 8 times as large
        assert np.any(loss > loss[0] * np.exp(-8 * promise.rate * times))
    # ‖θ − θ̄‖ is L σ_max² ρ²/σ_min⁵, which is 1/α²
    assert np.log(deviations[1] / deviations[0]) / np.log(4) == pytest.approx(-2, abs=0.1)


def test_scalings() -> None:
    """Ratios to the four scalings stay within constants as α, n, d and m grow."""
    ratios = []
    cases = [
        (1.0, 20, 20, 200), (10.0, 20, 20, 200), (1.0, 80, 20, 800), (1.0, 40, 80, 200),
        (1.0, 20, 20, 3200), (0.1, 20, 80, 800),
    ]  # fmt: skip
    for scale, n, d, m in cases:
        rng = np.random.default_rng(1)
        model = TwoLayers(m, scale=scale)
        found = model.constants(
            model.start(d, seed=2), rng.standard_normal((n, d)), rng.standard_normal(n)
        )
        said = lazy.scalings(scale, samples=n, dim=d, width=m)
        ratios.append(np.array(found[:4]) / said)
    low, high = np.min(ratios, axis=0), np.max(ratios, axis=0)
    assert np.all(high[[0, 2, 3]] < 1.5)  # upper bounds
    assert low[1] > 0.05  # the lower one
    assert np.all(high / low < [4, 6, 4, 3])
