"""Results keep every value and label, and a file is either whole or absent."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits
from sgdlimits import results

RUNS, TIMES, WIDTH, ANCHORS = 3, 5, 2, ["mu", "nu"]
SUFFIXES = pytest.mark.parametrize("suffix", [".zarr", ".nc"])


def multi_index(seed: int = 0) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[str, ...]] = {
        "v": ("run", "time", "neuron"),
        "M": ("run", "time", "neuron", "anchor"),
        "R": ("run", "time", "neuron", "neuron_"),
        "diverged": ("run",),
        "diverged_at": ("run",),
    }
    sizes = {"run": RUNS, "time": TIMES, "neuron": WIDTH, "neuron_": WIDTH, "anchor": len(ANCHORS)}
    arrays = {
        name: rng.normal(size=[sizes[axis] for axis in dims]) for name, dims in shapes.items()
    }
    arrays["R"] = arrays["R"] + np.swapaxes(arrays["R"], -1, -2)
    arrays["v"][1, 3:] = np.nan
    arrays["diverged"] = np.array([False, True, False])
    arrays["diverged_at"] = np.array([np.nan, 0.6, np.nan])
    return results.build(
        arrays,
        shapes,
        {
            "run": np.arange(RUNS),
            "time": np.linspace(0.0, 1.0, TIMES),
            "neuron": np.arange(WIDTH),
            "neuron_": np.arange(WIDTH),
            "anchor": ANCHORS,
        },
        {
            "kind": "simulation",
            "task": "XorMixture",
            "parameters": {"width": 2, "precision": math.inf, "link": np.tanh, "weights": None},
            "dim": np.int64(2000),
            "step": 1.5,
            "seed": 0,
            "note": None,
        },
        states=["v", "M", "R"],
        symmetric=["R"],
    )


def test_build_adds_the_version_and_encodes_what_files_cannot_hold() -> None:
    attrs = multi_index().attrs
    assert attrs["version"] == sgdlimits.__version__
    assert attrs["note"] == "null"
    assert type(attrs["dim"]) is int
    assert json.loads(attrs["parameters"])["precision"] == math.inf
    assert results.parameters(multi_index())["link"] == "tanh"


def test_build_says_which_axis_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"dims\['m'\]=\('run',\).*2 axes.*\(2, 3\)"):
        results.build({"m": np.zeros((2, 3))}, {"m": ("run",)}, {}, {})
    with pytest.raises(ValueError, match=r"coords\['time'\] has shape \(4,\).*m has 3 entries"):
        results.build({"m": np.zeros(3)}, {"m": ("time",)}, {"time": np.arange(4.0)}, {})


def test_statistics_are_listed_in_order_with_the_upper_triangle_of_r() -> None:
    assert results.statistics(multi_index()) == [
        *["v[0]", "v[1]"],
        *["M[0,mu]", "M[0,nu]", "M[1,mu]", "M[1,nu]"],
        *["R[0,0]", "R[0,1]", "R[1,1]"],
    ]


def test_select_gives_the_entry_of_every_flat_name() -> None:
    dataset = multi_index()
    for name in results.statistics(dataset):
        assert results.select(dataset, name).dims == ("run", "time")
    np.testing.assert_array_equal(results.select(dataset, "v[1]"), dataset.v[:, :, 1])
    np.testing.assert_array_equal(results.select(dataset, "M[1,mu]"), dataset.M[:, :, 1, 0])
    np.testing.assert_array_equal(results.select(dataset, "M[0, nu]"), dataset.M[:, :, 0, 1])
    np.testing.assert_array_equal(results.select(dataset, "R[1,0]"), dataset.R[:, :, 1, 0])


def test_select_uses_labels_not_positions() -> None:
    part = multi_index().isel(neuron=[1])
    np.testing.assert_array_equal(results.select(part, "v[1]"), part.v[:, :, 0])
    with pytest.raises(ValueError, match=r"v\[0\]"):
        results.select(part, "v[0]")


def test_select_works_on_scalar_statistics_without_runs() -> None:
    path = results.build({"r2": np.arange(3.0)}, {"r2": ("time",)}, {}, {})
    np.testing.assert_array_equal(results.select(path, "r2"), np.arange(3.0))
    assert results.statistics(path) == ["r2"]


@pytest.mark.parametrize(
    "name", ["m", "v", "v[2]", "v[0,1]", "v[x]", "M[0]", "M[mu,0]", "M[0,mu", "diverged", "", 3]
)
def test_select_lists_the_valid_names(name: str) -> None:
    with pytest.raises(ValueError, match=r"name=.* is not allowed.* v\[0\], .*R\[1,1\]$"):
        results.select(multi_index(), name)


@SUFFIXES
def test_round_trip_is_exact(tmp_path: Path, suffix: str) -> None:
    dataset = multi_index()
    path = tmp_path / "new folder" / f"xor{suffix}"
    results.save(dataset, path)
    loaded = results.load(path)
    xr.testing.assert_identical(loaded, dataset)
    for name, variable in dataset.variables.items():
        assert loaded[name].dtype == variable.dtype
        assert isinstance(loaded[name].values, np.ndarray)
    assert {name: type(value) for name, value in loaded.attrs.items()} == {
        name: type(value) for name, value in dataset.attrs.items()
    }
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@SUFFIXES
def test_a_loaded_part_can_be_saved_in_the_other_format(tmp_path: Path, suffix: str) -> None:
    results.save(multi_index(), tmp_path / f"a{suffix}")
    part = results.load(tmp_path / f"a{suffix}").isel(run=[0, 2], anchor=[1])
    other = tmp_path / ("b.nc" if suffix == ".zarr" else "b.zarr")
    results.save(part, other)
    xr.testing.assert_identical(results.load(other), part)


@SUFFIXES
def test_text_held_as_objects_is_saved_as_text_and_other_objects_are_refused(
    tmp_path: Path, suffix: str
) -> None:
    dataset = multi_index().assign_coords(anchor=np.array(ANCHORS, dtype=object))
    results.save(dataset, tmp_path / f"a{suffix}")
    assert results.load(tmp_path / f"a{suffix}").anchor.values.tolist() == ANCHORS
    with pytest.raises(ValueError, match=r"dataset\['anchor'\].*Python objects"):
        results.save(
            dataset.assign_coords(anchor=np.array(["mu", {}], dtype=object)),
            tmp_path / f"b{suffix}",
        )
    assert not (tmp_path / f"b{suffix}").exists()


@SUFFIXES
def test_an_existing_result_is_replaced(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    results.save(multi_index(seed=0), path)
    results.save(multi_index(seed=1), path)
    xr.testing.assert_identical(results.load(path), multi_index(seed=1))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@SUFFIXES
@pytest.mark.parametrize("stage", ["write", "rename"])
def test_a_failed_save_leaves_the_old_result_and_nothing_else(
    tmp_path: Path, suffix: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    results.save(multi_index(seed=0), path)

    def write_half(dataset: xr.Dataset, target: Path, **options: object) -> None:
        if suffix == ".zarr":
            target.mkdir()
            target = target / ".zgroup"
        target.write_bytes(b"half")
        raise KeyboardInterrupt

    def refuse(source: Path, target: Path) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        if stage == "write":
            patch.setattr(xr.Dataset, "to_zarr", write_half)
            patch.setattr(xr.Dataset, "to_netcdf", write_half)
        else:
            patch.setattr("sgdlimits.results.files.os.replace", refuse)
        with pytest.raises((KeyboardInterrupt, OSError)):
            results.save(multi_index(seed=1), path)
    xr.testing.assert_identical(results.load(path), multi_index(seed=0))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_directory_that_is_no_result_is_not_replaced(tmp_path: Path) -> None:
    for name in ("a.zarr", "a.nc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("keep me")
        with pytest.raises(ValueError, match=r"no .* result to replace"):
            results.save(multi_index(), tmp_path / name)
        assert (tmp_path / name / "thesis.txt").read_text() == "keep me"


@pytest.mark.parametrize("name", ["a.pkl", "a", "a.h5"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"path=.*must end in \.zarr or \.nc"):
        results.save(multi_index(), tmp_path / name)
    with pytest.raises(ValueError, match=r"path=.*must end in \.zarr or \.nc"):
        results.load(tmp_path / name)


@SUFFIXES
def test_a_missing_path_is_named(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"nowhere{suffix}"):
        results.load(tmp_path / f"nowhere{suffix}")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.nc").write_text("not a result")
    (tmp_path / "empty.zarr").mkdir()
    results.save(multi_index(), tmp_path / "cut.nc")
    whole = (tmp_path / "cut.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    results.save(multi_index(), tmp_path / "chunkless.zarr")
    (tmp_path / "chunkless.zarr" / "v" / "0.0.0").unlink()
    results.save(multi_index(), tmp_path / "garbled.zarr")
    (tmp_path / "garbled.zarr" / "v" / "0.0.0").write_bytes(b"garbled")
    for name in ("text.nc", "empty.zarr", "cut.nc", "chunkless.zarr", "garbled.zarr"):
        with pytest.raises(ValueError, match=rf"{name}' is not a readable result"):
            results.load(tmp_path / name)


def test_a_state_is_one_run_at_one_time() -> None:
    dataset = multi_index().isel(run=[0, 2])
    chosen = results.state(dataset, run=2, time=0.3)
    assert list(chosen) == ["v", "M", "R"]
    for name, value in chosen.items():
        np.testing.assert_array_equal(value, dataset[name].sel(run=2, time=0.25))
    every = results.state(dataset)
    np.testing.assert_array_equal(every["R"], dataset.R[:, -1])
    moved = dataset.transpose("neuron", "time", "anchor", "neuron_", "run")
    np.testing.assert_array_equal(results.state(moved)["v"], every["v"])
    turned = dataset.transpose("anchor", "neuron_", "neuron", "time", "run")
    np.testing.assert_array_equal(results.state(turned)["M"], every["M"])  # not its transpose
    assert results.statistics(turned) == results.statistics(dataset)
    alone = results.state(dataset.isel(run=0, time=1))
    np.testing.assert_array_equal(alone["M"], dataset.M[0, 1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"run": 1, "time": 1.0}, r"^run=1 is not allowed at time=1.0: it is not finite there"),
        ({}, r"^run=None is not allowed at time=None: it is not finite there"),
        ({"run": 3}, r"^run=3 is not allowed: the runs here are 0 to 2$"),
        ({"run": True}, r"^run=True is not allowed"),
        ({"run": 0, "time": 1.5}, r"^time=1.5 is not allowed: the recorded times go from 0 to 1$"),
        ({"run": 0, "time": "end"}, r"^time='end' is not allowed"),
    ],
)
def test_a_state_that_is_not_there_is_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(sgdlimits.InputError, match=said):
        results.state(multi_index(), **arguments)


def test_a_state_needs_one_entry_of_every_other_dim() -> None:
    dataset = results.over("snr", [1.0, 2.0], lambda snr: pca(snr))
    with pytest.raises(sgdlimits.InputError, match="choose one entry along snr first"):
        results.state(dataset)
    assert results.state(dataset.sel(snr=2.0), run=0)["m"] == 2.0
    assert results.statistics(dataset) == ["m"]
    assert results.select(dataset, "m").dims == ("snr", "run", "time")
    with pytest.raises(sgdlimits.InputError, match="it must hold statistics of a task"):
        results.state(xr.Dataset({"x": 1.0}))
    with pytest.raises(sgdlimits.InputError, match="the dataset is not over time"):
        results.state(dataset.isel(time=0, snr=0), time=1.0)
    with pytest.raises(sgdlimits.InputError, match="the dataset has no runs"):
        results.state(dataset.isel(run=0, snr=0), run=0)


def pca(snr: float, seed: int = 0, *, dim: int = 100, times: int = 3) -> xr.Dataset:
    """Two runs with the overlap snr·t; the second diverges if the signal is infinite."""
    time = np.linspace(0, 1, times)
    m = np.outer([1.0, -1.0], min(snr, 9.0) * time)
    flags = {"diverged": np.array([False, math.isinf(snr)])}
    return results.build(
        {"m": m} | flags,
        {"m": ("run", "time"), "diverged": ("run",)},
        {"run": np.arange(2), "time": time},
        {"kind": "simulation", "parameters": {"order": 2, "snr": snr}, "dim": dim, "seed": seed},
        states=["m"],
    )


@SUFFIXES
def test_results_over_a_parameter_are_one(tmp_path: Path, suffix: str) -> None:
    joined = results.over("snr", [0.8, 1.2, math.inf], pca, itertools.count(5))
    assert joined.m.dims == ("snr", "run", "time")
    np.testing.assert_array_equal(joined.m.sel(snr=1.2), pca(1.2).m)
    assert joined.diverged.dtype == bool
    assert joined.diverged.values[:, 1].tolist() == [False, False, True]
    # what is the same for all is an attribute, what is not a coordinate
    assert results.parameters(joined) == {"order": 2}
    assert joined.attrs["dim"] == 100
    assert joined.seed.values.tolist() == [5, 6, 7]
    assert int(joined.sel(snr=math.inf).seed) == 7
    results.save(joined, tmp_path / f"joined{suffix}")
    xr.testing.assert_identical(results.load(tmp_path / f"joined{suffix}"), joined)


def test_results_over_words_and_whole_numbers() -> None:
    words = results.over("side", ["low", "above"], lambda side: pca(len(side)))
    assert words.side.values.tolist() == ["low", "above"]
    assert words.snr.values.tolist() == [3, 5]
    dims = results.over("dim", (100, 200), lambda dim: pca(1.0, dim=dim))
    assert dims.dim.dtype.kind == "i"
    assert "dim" not in dims.attrs


def test_rounded_coordinates_are_the_same() -> None:
    def rounded(width: float) -> xr.Dataset:
        part = pca(1.0)
        return part.assign_coords(time=(part.time * width) / width)

    assert results.over("width", [3.0, 7.0, 0.1], rounded).sizes["time"] == 3


def test_missing_entries_are_filled_only_if_asked() -> None:
    def runs(snr: float) -> xr.Dataset:
        return pca(snr, times=3 if snr < 1 else 5)

    with pytest.raises(
        sgdlimits.InputError,
        match=r"^the results for snr=0.8 and snr=1.2 are not allowed: they differ in time, "
        r"3 and 5 entries; fill=True makes what is missing NaN$",
    ):
        results.over("snr", [0.8, 1.2], runs)
    joined = results.over("snr", [0.8, 1.2], runs, fill=True)
    assert joined.time.values.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert np.isnan(joined.m.values[0, 0]).tolist() == [False, True, False, True, False]
    assert joined.diverged.dtype == bool  # it has no times
    with pytest.raises(sgdlimits.InputError, match="fill=True is not allowed for diverged"):
        results.over("snr", [0.8, 1.2], lambda snr: pca(snr).isel(run=[int(snr)]), fill=True)


@pytest.mark.parametrize(
    ("name", "values", "function", "said"),
    [
        ("snr", [], pca, r"^values=\[\] is not allowed"),
        ("snr", [1.0, 1.0], pca, r"values of snr must differ"),
        ("snr", [math.nan], pca, r"^values=\[nan\] is not allowed"),
        ("snr", [None], pca, r"^values=\[None\] is not allowed"),
        ("time", [1.0], pca, r"^name='time' is not allowed: the results of the function have a"),
        ("m", [1.0], pca, r"^name='m' is not allowed"),
        ("snr", [1.0], lambda snr: pca(snr).m, r"^function returned DataArray for snr=1.0"),
        (
            "snr",
            [1.0, 2.0],
            lambda snr: pca(snr) if snr < 2 else pca(snr).assign(x=1.0),
            r"^the results for snr=1.0 and snr=2.0 are not allowed: they differ in x; variables",
        ),
    ],
)
def test_what_cannot_be_joined_is_named(name: str, values: Any, function: Any, said: str) -> None:
    with pytest.raises(sgdlimits.InputError, match=said):
        results.over(name, values, function)


def test_every_value_has_its_further_arguments() -> None:
    with pytest.raises(sgdlimits.InputError, match=r"^others=1 is not allowed.*of the 2 values"):
        results.over("snr", [1.0, 2.0], pca, [0])


# --- tables -------------------------------------------------------------------------------------


def test_a_table_has_every_number_once() -> None:
    dataset = multi_index()
    frame = results.to_frame(dataset)
    assert list(frame.columns) == results.statistics(dataset)
    assert frame.index.names == ["run", "time"]
    assert frame.shape == (RUNS * TIMES, len(results.statistics(dataset)))
    for name in results.statistics(dataset):
        expected = results.select(dataset, name).transpose("run", "time").values.ravel()
        np.testing.assert_array_equal(frame[name].to_numpy(), expected)
    mean = frame.groupby("time").mean()["v[0]"]
    np.testing.assert_allclose(mean, results.select(dataset, "v[0]").mean("run"))


def test_tables_of_other_results() -> None:
    dataset = multi_index()
    (single,) = results.to_frame(dataset.isel(run=0)).index.names
    assert single == "time"
    joined = results.over("snr", [1.0, 2.0], lambda snr: multi_index(int(snr)))
    assert results.to_frame(joined).index.names == ["snr", "run", "time"]
    limit = sgdlimits.effective_dynamics(sgdlimits.tasks.SpikedTensor())
    frame = results.to_frame(limit.solve({"m": 0.1, "r2": 1.0}, time=1.0, points=3))
    assert list(frame.columns) == ["m", "r2"]
    repeated = xr.concat([dataset, dataset], "run")
    assert len(results.to_frame(repeated)) == 2 * RUNS * TIMES


def test_what_is_no_table() -> None:
    with pytest.raises(sgdlimits.InputError, match="it has no statistics over time"):
        results.to_frame(xr.Dataset({"x": ("run", [1.0])}))
    with pytest.raises(sgdlimits.InputError, match="type DataArray is not allowed"):
        results.to_frame(multi_index().v)
