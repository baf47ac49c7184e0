"""Gaps over the dimension, with the power law that they should follow."""

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.plot import convergence, panels


def gaps() -> xr.DataArray:
    noise = 1 + 0.1 * np.random.default_rng(0).standard_normal((40, 3))
    dims = np.array([100, 400, 1600])
    return xr.DataArray(noise / np.sqrt(dims), {"dim": dims}, ("run", "dim"), name="gap")


@pytest.mark.parametrize("exponent", [-0.5, -1.0])
def test_the_line_has_its_slope_and_ends_at_the_last_point(exponent: float) -> None:
    (panel,) = convergence(gaps(), exponent).axes
    (line,) = (x for x in panel.lines if str(x.get_label()).startswith("dim"))
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    np.testing.assert_allclose(np.diff(np.log(y)) / np.diff(np.log(x)), exponent)
    assert y[-1] == pytest.approx(float(gaps()[:, -1].mean()))
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["100", "400", "1600"]


def test_in_a_panel_of_the_caller() -> None:
    figure, ((panel,),) = panels(1, 1)
    assert convergence(gaps().T, label="SGD", axes=panel) is figure
    assert panel.get_legend() is None
    assert "SGD" in panel.get_legend_handles_labels()[1]


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(sl.InputError, match="exponent='half' is not allowed"):
        convergence(gaps(), "half")  # type: ignore[arg-type]
    with pytest.raises(sl.InputError, match="values with the dims"):
        convergence(gaps().isel(dim=0))
