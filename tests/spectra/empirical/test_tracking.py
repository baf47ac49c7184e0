"""Spectra along training: what is recorded, and that weights align with outliers."""

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import spectra


def test_weights_align_with_outliers() -> None:
    task = sl.tasks.GaussianMixture(classes=3, precision=20.0, ridge=0.05)
    found = spectra.track(task, dim=150, samples=3000, times=[0.0, 1.0, 30.0])
    assert dict(found.sizes) == {
        "time": 3,
        "matrix": 2,
        "block": 3,
        "rank": 5,
        "anchor": 3,
        "neuron": 3,
        "neuron_": 3,
    }
    start, end = found.alignment.values[0], found.alignment.values[-1]
    assert np.all(start < 0.5)  # random weights
    assert np.all(end > 0.85)
    hessian = found.eigenvalues.sel(matrix="hessian", block="W0W0").values[-1]
    assert hessian[2] > 1.15 * hessian[3]  # three outliers, then the bulk
    own = found.overlap.sel(matrix="hessian", block="W1W1", rank=0, anchor="mu1").values
    assert own[-1] > 0.8
    assert np.all(found.residual.values[-1] < found.residual.values[0])
    state = {name: found[name].values[-1] for name in ("M", "R")}
    task.check_state(state)


def test_the_run_is_that_of_simulate() -> None:
    task = sl.tasks.XorMixture(width=4)
    start = task.random_state(60, seed=1)
    found = spectra.track(
        task, dim=60, samples=100, times=[0.0, 0.5], seed=4, init=start, full=True
    )
    runs = sl.simulate(
        task, dim=60, runs=1, time=0.5, seed=4, init=start, method="direct", points=2
    )
    for name in ("v", "M", "R"):
        assert found[name].values[-1] == pytest.approx(runs[name].values[0, -1], abs=1e-12)
    spectrum = found.spectrum.sel(matrix="gradient", block="W2W2").values[1]
    leading = found.eigenvalues.sel(matrix="gradient", block="W2W2").values[1]
    assert leading[0] == pytest.approx(spectrum[np.argmax(np.abs(spectrum))], rel=1e-7)
    assert np.isfinite(found.eigenvalues.sel(block="vv").values[..., :4]).all()
    fewer = spectra.track(
        task, dim=60, samples=100, times=[0.0, 0.5], seed=4, init=start, blocks=["vv", 2]
    )
    for name in ("eigenvalues", "alignment"):
        chosen = found[name].sel(block=["vv", "W2W2"])
        assert fewer[name].values == pytest.approx(chosen.values, abs=1e-9, nan_ok=True)


def test_training_data_are_what_sgd_has_seen() -> None:
    """With one sample, the gradient matrix at the start is the square of the first step."""
    task = sl.tasks.GaussianMixture(classes=2, precision=3.0, ridge=0.0)
    dim = 20
    training = spectra.Training(task, dim, 1.0, 5, task.random_state(dim, seed=0))
    first, second = training.weights_at(np.array([0.0, 1 / dim]))
    step = (first.W - second.W) * dim  # the gradient
    data = training.seen(1)
    found = spectra.Empirical(task, data, first.W)
    expected = np.outer(step[0], step[0])
    assert found.dense("gradient", 0) == pytest.approx(expected, abs=1e-9)
    assert not np.allclose(training.unseen(1).x, data.x)


def test_weights_of_zero_align_with_nothing() -> None:
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    zero = {"M": np.zeros((2, 2)), "R": np.diag([0.0, 1.0])}
    found = spectra.track(task, dim=20, samples=50, times=[0.0, 0.5], init=zero)
    assert np.all(np.isnan(found.alignment.values[0, :, 0]))
    assert np.all(np.isfinite(found.alignment.values[0, :, 1]))
    assert np.isnan(found.residual.values[0]).tolist() == [True, False]
    assert np.all(np.isfinite(found.alignment.values[1]))


def test_wrong_input_is_named() -> None:
    task = sl.tasks.GaussianMixture(classes=2)
    with pytest.raises(ValueError, match="samples=500 is not allowed: SGD sees only 20"):
        spectra.track(task, dim=20, samples=500, times=[0.0, 1.0], data="train")
    with pytest.raises(ValueError, match="samples=3 is not allowed: 4 eigenvalues"):
        spectra.track(task, dim=20, samples=3, times=[0.0, 1.0])
    with pytest.raises(ValueError, match=r"times=.* must be increasing"):
        spectra.track(task, dim=20, samples=5, times=[1.0, 0.5])
    with pytest.raises(ValueError, match="data='both' is not allowed"):
        spectra.track(task, dim=20, samples=5, times=[0.0], data="both")
    with pytest.raises(ValueError, match=r"blocks=\['W0W1'\] is not allowed: .* on the diagonal"):
        spectra.track(task, dim=20, samples=5, times=[0.0], blocks=["W0W1"])
    with pytest.raises(ValueError, match="dim=1 is not allowed"):
        spectra.track(task, dim=1, samples=5, times=[0.0])
    with pytest.raises(sl.InputError, match=r"full='no' is not allowed"):
        spectra.track(task, dim=20, samples=5, times=[0.0], full="no")  # type: ignore[arg-type]
    with pytest.raises(sl.InputError, match=r"task=SpikedTensor\(.* must be a multi-index task"):
        spectra.track(sl.tasks.SpikedTensor(), dim=20, samples=5, times=[0.0])  # type: ignore[arg-type]
