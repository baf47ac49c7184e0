"""Does SGD learn XOR? The chance of it by width: formula, limit and SGD in dimension 500.

Without noise a neuron keeps the mean that the signs of its random start point to, and the network
is optimal if every one of the four means has a neuron: (5.2) of BGJ22. Arguments: a folder,
pictures/ by default, and the largest width, 8 by default.
"""

import math
import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl

FOLDER, LARGEST = [*sys.argv[1:], *["pictures", "8"][len(sys.argv) - 1 :]]
WIDTHS, STARTS, RUNS, DIM, CONFIDENCE = range(4, int(LARGEST) + 1), 512, 512, 500, 0.999


def outcome(state: dict[str, np.ndarray]) -> str:
    """Optimal if all four means are on their side of the boundary, by a margin."""
    v, M = state["v"], state["M"]
    margins = [y * v @ np.maximum(s * M[:, a], 0) for a, y in ((0, 1), (1, -1)) for s in (1, -1)]
    return "optimal" if min(margins) > 0.1 else "not optimal"


def interval(basins: xr.Dataset) -> list[float]:
    """The probability of an optimal network, and the ends of its confidence interval."""
    found = basins.sel(basin="optimal")
    return [float(found[name]) for name in ("probability", "low", "high")]


rows = []
print(f"width  formula  limit, {STARTS} starts      SGD, dim {DIM}, {RUNS} runs")
for width in WIDTHS:
    task = sl.tasks.XorMixture(width=width, precision=math.inf, ridge=0.05)
    limit = sl.effective_dynamics(task)
    starts = task.random_state(10**6, width, runs=STARTS)  # overlaps are 0+ or 0-
    theory = sl.theory.xor.success_probability(width)
    ode = interval(limit.basins(starts, time=100.0, into=outcome, confidence=CONFIDENCE))
    runs = sl.simulate(task, dim=DIM, runs=RUNS, time=60.0, points=2, seed=100 + width)
    sgd = interval(limit.basins(runs, time=100.0, into=outcome, confidence=CONFIDENCE))
    rows.append((theory, ode, sgd))
    print(
        f"{width:5d}   {theory:.4f}  {ode[0]:.4f} [{ode[1]:.4f}, {ode[2]:.4f}]  "
        f"{sgd[0]:.4f} [{sgd[1]:.4f}, {sgd[2]:.4f}]",
        flush=True,
    )

with sl.plot.style.figure_style():
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(WIDTHS, [row[0] for row in rows], color=sl.plot.style.LIMIT, label="formula (5.2)")
    named = (("limit", sl.plot.style.PATHS, -0.06), (f"SGD, dim {DIM}", "C0", 0.06))
    for column, (name, color, shift) in enumerate(named, start=1):
        values = np.array([row[column] for row in rows]).T
        errors = np.abs(values[1:] - values[0])
        where = np.array(WIDTHS) + shift
        axes.errorbar(where, values[0], errors, fmt="o", capsize=3, color=color, label=name)
    axes.set_xlabel("width $K$")
    axes.set_ylabel("chance to end optimal")
    axes.set_xticks(list(WIDTHS))
    axes.set_ylim(0, 1)
    axes.legend()
    caption = f"XorMixture · precision ∞, ridge 0.05 · {STARTS} starts · intervals of 99.9 %"
    sl.plot.style.put_caption(figure, caption)
sl.plot.save(figure, Path(FOLDER) / "xor_basins.png")

for theory, ode, sgd in rows:
    assert ode[1] < theory < ode[2]
    assert sgd[1] < theory < sgd[2]
