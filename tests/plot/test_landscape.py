"""A risk over two statistics: what is drawn is what was given."""

import numpy as np
import xarray as xr

import sgdlimits as sl


def test_critical_points_are_where_they_are_said_to_be() -> None:
    m, q = np.linspace(-1, 1, 21), np.linspace(0, 1, 11)
    values = np.where(m**2 <= q[:, None], q[:, None] - m**2, np.nan)
    risk = xr.DataArray(values, {"q": q, "m": m}, ("q", "m"))
    kinds = ["saddle", "minimum", "minimum"]
    points = xr.Dataset(
        {
            "kind": ("point", kinds),
            "m": ("point", [0.0, 1.0, -1.0]),
            "q": ("point", [0.5, 1.0, 1.0]),
            "risk": ("point", [0.5, 0.0, 0.0]),
        }
    )
    panel = sl.plot.landscape(risk, points, "m", "q").axes[0]
    drawn = {str(line.get_label()): line.get_xydata() for line in panel.get_lines()}
    np.testing.assert_array_equal(drawn["saddle, risk 0.5"], [[0, 0.5]])
    np.testing.assert_array_equal(drawn["minimum, risk 0"], [[1, 1], [-1, 1]])
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("$m$", "$q$")
    assert len(drawn) == 2
