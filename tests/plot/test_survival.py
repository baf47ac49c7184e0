"""The picture of passage times."""

from pathlib import Path

import numpy as np
import pytest

import sgdlimits as sl

TASK = sl.tasks.SpikedTensor(order=2, snr=2.0)
EVENT = ("m", ">", 0.5)


def test_what_is_drawn(tmp_path: Path) -> None:
    passage = sl.first_passage(TASK, EVENT, 200, 64, 1.5)
    limit = sl.effective_dynamics(TASK).first_passage(EVENT, {"m": 0.05, "r2": 1.0})
    figure = sl.plot.survival(passage, limit=limit)
    (axes,) = figure.axes
    estimate = sl.results.survival(passage)
    curve = axes.lines[0]
    np.testing.assert_allclose(
        np.asarray(curve.get_xdata()), [0.0, *estimate.time, estimate.watched]
    )
    np.testing.assert_allclose(np.asarray(curve.get_ydata())[:-1], [1.0, *estimate.survival])
    assert curve.get_drawstyle() == "steps-post"
    handles = axes.get_legend_handles_labels()[1]
    assert handles[0] == f"SGD, {estimate.passed} of 64 runs passed"
    assert f"limit, dim → ∞: {float(limit.time):.4g}" in handles
    vertical = axes.lines[-1]
    np.testing.assert_allclose(np.asarray(vertical.get_xdata()), float(limit.time))
    assert "m > 0.5" in axes.get_title()
    sl.plot.save(figure, tmp_path / "survival.png")


def test_runs_until_an_event_and_a_limit_that_does_not_pass() -> None:
    runs = sl.simulate(TASK, 200, runs=8, time=0.5, points=3, until=EVENT)
    limit = sl.effective_dynamics(TASK).first_passage(("m", ">", 2.0), {"m": 0.05, "r2": 1.0}, 1.0)
    figure = sl.plot.survival(runs, limit=limit)
    assert "limit: not reached" in figure.axes[0].get_legend_handles_labels()[1]
    with pytest.raises(sl.InputError, match="limit"):
        sl.plot.survival(runs, limit=runs)
