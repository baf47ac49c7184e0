"""Pictures of spectra say what they show."""

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl


@pytest.fixture(scope="module")
def tracked() -> xr.Dataset:
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    return sl.spectra.track(task, dim=30, samples=100, times=[0.0, 0.5, 1.0], full=True)


def labels(axes: object) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[attr-defined]


def test_spectrum(tracked: xr.Dataset) -> None:
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    state = {name: tracked[name].values[-1] for name in ("M", "R")}
    predicted = sl.spectra.effective(task, state, ratio=100 / 30, nodes=2**8)
    values = tracked.spectrum.sel(matrix="hessian", block="W0W0").values[-1]
    figure = sl.plot.spectrum(values, predicted)
    (axes,) = figure.axes
    assert labels(axes)[:2] == ["eigenvalues", "effective density"]
    assert axes.get_xlabel() == "eigenvalue"
    assert labels(sl.plot.spectrum(values).axes[0]) == ["eigenvalues"]


def test_eigenvalues_over_time(tracked: xr.Dataset) -> None:
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    path = sl.spectra.effective_path(task, tracked, ratio=100 / 30, nodes=2**8)
    figure = sl.plot.eigenvalues_over_time(tracked, "W0W0", predicted=path.dataset)
    (axes,) = figure.axes
    assert "Hessian W0W0" in axes.get_ylabel()
    assert {"leading eigenvalues", "effective bulk", "effective outliers"} <= set(labels(axes))
    with pytest.raises(ValueError, match="block='vv' is not allowed"):
        sl.plot.eigenvalues_over_time(tracked, "vv")
    with pytest.raises(ValueError, match="must come from track"):
        sl.plot.eigenvalues_over_time(path.dataset, "W0W0")


def test_a_prediction_without_data(tracked: xr.Dataset) -> None:
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    path = sl.spectra.effective_path(task, tracked, ratio=3.0, nodes=2**8).dataset
    figure = sl.plot.eigenvalues_over_time(predicted=path)
    (axes,) = figure.axes
    assert axes.get_ylabel() == "eigenvalues, Hessian W0W0"
    assert labels(axes) == ["effective bulk", "effective outliers"]
    assert "GaussianMixture" in figure.get_suptitle()
    with pytest.raises(sl.InputError, match="predicted=None is not allowed without tracked"):
        sl.plot.eigenvalues_over_time()
    for data in (None, tracked):
        with pytest.raises(
            sl.InputError, match=r"predicted=a Dataset of another kind is not .*_path"
        ):
            sl.plot.eigenvalues_over_time(data, predicted=tracked)


def test_samples_on_the_horizontal_axis(tracked: xr.Dataset) -> None:
    """Those of the run; a prediction has none of its own."""
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    path = sl.spectra.effective_path(task, tracked, ratio=3.0, nodes=2**8).dataset
    figure = sl.plot.eigenvalues_over_time(tracked, "W0W0", predicted=path, x="samples")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "samples"
    for line in axes.get_lines():
        np.testing.assert_array_equal(line.get_xdata(), [0, 15, 30])
    (first, _) = sl.plot.alignment(tracked, x="samples").axes
    np.testing.assert_array_equal(first.get_lines()[0].get_xdata(), [0, 15, 30])
    with pytest.raises(ValueError, match=r"x='samples' is not allowed: how many"):
        sl.plot.eigenvalues_over_time(predicted=path, x="samples")
    told = path.assign_coords(samples=("time", [0.0, 10.0, 40.0]))
    (alone,) = sl.plot.outlier_curves(told, [(0.75, 1)], x="samples").axes
    assert [np.ravel(line.get_xdata())[0] for line in alone.get_lines()][-1] == 25.0


def test_outlier_curves(tracked: xr.Dataset) -> None:
    """Without eigenvalues of a run; each kind of transition is in the legend once."""
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0)
    path = sl.spectra.effective_path(task, tracked, ratio=100 / 30, nodes=2**8)
    moves = [(0.2, -1), (0.4, 1), (0.6, 1)]
    (axes,) = sl.plot.outlier_curves(path.dataset, moves).axes
    assert labels(axes) == [
        "effective bulk",
        "effective outliers",
        "an outlier enters the bulk",
        "an outlier leaves the bulk",
    ]
    upright = [line for line in axes.get_lines() if "bulk" in str(line.get_label())]
    assert [np.ravel(line.get_xdata())[0] for line in upright] == [0.2, 0.4, 0.6]
    assert labels(sl.plot.outlier_curves(path.dataset).axes[0]) == labels(axes)[:2]


def test_eigenvalues_of_the_readout_over_time() -> None:
    """It has no bulk: all eigenvalues are predicted, and the threshold of outliers."""
    task = sl.tasks.XorMixture(width=5)
    tracked = sl.spectra.track(task, dim=30, samples=300, times=[0.0, 1.0], blocks=["vv"])
    path = sl.spectra.effective_path(task, tracked, ratio=10.0, block="vv", nodes=2**8)
    figure = sl.plot.eigenvalues_over_time(tracked, "vv", predicted=path.dataset)
    (axes,) = figure.axes
    said = labels(axes)
    assert said.index("effective eigenvalues") < said.index("effective outliers")
    assert "threshold of outliers" in said
    assert "effective bulk" not in said
    lines = [line for line in axes.get_lines() if line.get_label() == "threshold of outliers"]
    assert np.allclose(lines[0].get_ydata(), path.dataset.threshold)
    (alone,) = sl.plot.spectrum(tracked.eigenvalues.values[0, 0, 0], path.spectra[0]).axes
    assert labels(alone) == ["eigenvalues", "effective outliers"]


def test_alignment(tracked: xr.Dataset) -> None:
    figure = sl.plot.alignment(tracked)
    assert [axes.get_title() for axes in figure.axes] == ["Hessian", "gradient matrix"]
    assert labels(figure.axes[1]) == ["W0W0", "W1W1"]
    lines = figure.axes[0].get_lines()
    assert np.allclose(lines[0].get_ydata(), tracked.alignment.values[:, 0, 0])


def test_eigenvectors() -> None:
    figure = sl.plot.eigenvectors(np.eye(5)[:, :2], marked=[0, 1])
    assert labels(figure.axes[0]) == ["2 eigenvectors", "marked"]
    assert figure.axes[0].get_xlabel() == "coordinate"
    with pytest.raises(ValueError, match=r"marked=\[5\] is not allowed: 0 to 4 are"):
        sl.plot.eigenvectors(np.eye(5), marked=[5])
    with pytest.raises(ValueError, match="in columns"):
        sl.plot.eigenvectors(np.ones(5))
