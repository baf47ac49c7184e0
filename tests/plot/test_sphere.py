"""Particles on the sphere: what is near is on top of what is far; the animation has every time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from PIL import Image

import sgdlimits as sl


@pytest.fixture
def path() -> xr.Dataset:
    """Two particles: one towards who looks from azimuth 0, one away from there; both go up."""
    heights = np.linspace(0, 0.6, 5)
    points = np.zeros((5, 2, 3))
    points[..., 2] = heights[:, None]
    points[:, 0, 0], points[:, 1, 0] = np.sqrt(1 - heights**2), -np.sqrt(1 - heights**2)
    dims = ("time", "particle", "coordinate")
    coords = {"time": np.arange(5.0)}
    return xr.Dataset({"points": (dims, points)}, coords, {"inverse_temperature": 2.0})


def test_near_particles_are_told_from_far_ones(path: xr.Dataset) -> None:
    figure = sl.plot.sphere(path, azimuth=0.0)
    far, near, starts = figure.axes[0].collections
    tilt = np.radians(20)
    (shown,) = np.asarray(near.get_offsets())
    np.testing.assert_allclose(shown, [0, 0.6 * np.cos(tilt) - 0.8 * np.sin(tilt)], atol=1e-12)
    (hidden,) = np.asarray(far.get_offsets())
    np.testing.assert_allclose(hidden, [0, 0.6 * np.cos(tilt) + 0.8 * np.sin(tilt)], atol=1e-12)
    assert len(np.asarray(starts.get_offsets())) == 1
    tails = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 5]  # type: ignore[arg-type]
    seen = [np.isfinite(np.asarray(line.get_ydata(), dtype=float)).sum() for line in tails]
    assert seen == [0, 5, 5, 0]  # far tails, near tails


def test_the_time_can_be_chosen(path: xr.Dataset) -> None:
    figure = sl.plot.sphere(path, 2.0, azimuth=0.0)
    (shown,) = np.asarray(figure.axes[0].collections[1].get_offsets())
    tilt = np.radians(20)
    np.testing.assert_allclose(shown[1], 0.3 * np.cos(tilt) - np.sqrt(0.91) * np.sin(tilt))


def test_the_animation_moves(path: xr.Dataset, tmp_path: Path) -> None:
    file = tmp_path / "new" / "film.gif"
    sl.plot.animate_sphere(path, file, frames_per_second=10)
    with Image.open(file) as film:
        assert film.format == "GIF"
        pictures = []
        total = 0
        for frame in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(frame)
            pictures.append(np.asarray(film.convert("RGB")))
            total += film.info["duration"]
    assert total == 1700  # five times and twelve frames of rest, which GIF may join
    assert len({picture.tobytes() for picture in pictures}) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: sl.plot.sphere(path, 9.0), "time=9.0 is not allowed: .* from 0 to 4"),
        (lambda path: sl.plot.sphere(path.isel(coordinate=[0, 1])), "path=.* three coordinates"),
        (lambda path: sl.plot.sphere(path[[]]), "path=.* must have points"),
        (lambda path: sl.plot.animate_sphere(path, "film.png"), r"file='film.png' .* end in \.gif"),
        (lambda path: sl.plot.animate_sphere(path, "a.gif", turn=np.nan), "turn=nan is not"),
        (lambda path: sl.plot.animate_sphere(path, "a.gif", frames_per_second=0), "frames_per_sec"),
    ],
)  # fmt: skip
def test_wrong_input(call: Any, message: str, path: xr.Dataset) -> None:
    with pytest.raises(sl.InputError, match=message):
        call(path)
    assert not Path("a.gif").exists()
