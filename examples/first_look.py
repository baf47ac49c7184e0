"""Matrix PCA below and above its transition, and XOR: a hundred runs of SGD against their limit.

Usage: python examples/first_look.py FOLDER
"""

import sys
from pathlib import Path

import xarray as xr

import sgdlimits as sl

RUNS, SEED = 100, 0


def matrix_pca(snr: float) -> tuple[xr.Dataset, xr.Dataset]:
    """SGD in dimension 1500 from a small overlap, and the ODE from the same start."""
    task = sl.tasks.SpikedTensor(order=2, snr=snr)
    start = {"m": 0.2, "r2": 0.5}
    runs = sl.simulate(task, dim=1500, runs=RUNS, time=5.0, seed=SEED, init=start)
    return runs, sl.effective_dynamics(task).solve(start, time=5.0)


def xor() -> tuple[xr.Dataset, xr.Dataset]:
    """SGD in dimension 3000 from one start, and the ODE from the same start."""
    task = sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.05)
    start = task.random_state(100, seed=4)
    runs = sl.simulate(task, dim=3000, runs=RUNS, time=40.0, seed=SEED, init=start)
    return runs, sl.effective_dynamics(task).solve(start, time=40.0)


def main(folder: Path) -> None:
    """Compute, save and draw everything."""
    settings = {
        "matrix_pca_below": lambda: matrix_pca(0.8),
        "matrix_pca_above": lambda: matrix_pca(1.2),
        "xor": xor,
    }
    for number, (name, compute) in enumerate(settings.items(), start=1):
        print(f"[{number}/{len(settings)}] {name}", flush=True)
        runs, path = compute()
        sl.results.save(runs, folder / f"{name}_sgd.nc")
        sl.results.save(path, folder / f"{name}_limit.nc")
        sl.plot.save(sl.plot.compare(runs, path), folder / f"{name}.png")
        if name != "xor":
            sl.plot.save(sl.plot.plane(runs, path, "m", "r2"), folder / f"{name}_plane.png")
    print(f"pictures and data are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
