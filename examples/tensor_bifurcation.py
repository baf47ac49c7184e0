"""How tensor PCA gets its informed rest points as the signal grows: a fold, not a pitchfork.

For the matrix (k = 2) two informed points split off from the equator m = 0, which they destabilise.
For tensors a stable and an unstable one appear together at λ_c, away from the equator, which stays
stable: SGD learns only if it starts with enough overlap. Dots are SGD itself.
"""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

import sgdlimits as sl

RANGES = {3: (2.0, 6.0), 2: (0.0, 2.5), 4: (4.0, 11.0)}
TITLES = {3: "order 3: a fold", 2: "order 2: a pitchfork", 4: "order 4: two folds"}
DIM, RUNS, TIME = 4000, 16, 3.0
SNRS, STARTS = (2.5, 3.5, 4.5, 5.5), (0.1, 1.2)

with sl.plot.style.figure_style():
    figure = Figure(figsize=(9.6, 5.0), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.55, 1))
    places = {3: grid[:, 0], 2: grid[0, 1], 4: grid[1, 1]}
    panels = {order: figure.add_subplot(place) for order, place in places.items()}

diagrams = {}
for order, (low, high) in RANGES.items():
    # towards the informed points of both signs, and the equator
    starts = {"m": [1.3, -1.3, 0.0], "r2": [1.0, 1.0, 1.0]}
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=order))
    diagrams[order] = limit.bifurcations("snr", low, high, init=starts)
    panel = panels[order]
    sl.plot.bifurcation(diagrams[order], "m", axes=panel)
    threshold = sl.theory.spiked_tensor.critical_snr(order)
    panel.set_title(f"{TITLES[order]} at snr {threshold:.4g}", fontsize=10.5)

last = {}
for snr in SNRS:
    for start in STARTS:
        task = sl.tasks.SpikedTensor(order=3, snr=snr)
        init = {"m": start, "r2": 1.0}
        runs = sl.simulate(task, dim=DIM, runs=RUNS, time=TIME, init=init, points=2)
        last[snr, start] = runs.m.values[:, -1]

with sl.plot.style.figure_style():
    mean = [ends.mean() for ends in last.values()]
    spread = [ends.std(ddof=1) for ends in last.values()]
    panels[3].errorbar(
        [snr for snr, _ in last],
        mean,
        spread,
        fmt="o",
        markersize=5,
        capsize=3,
        color=sl.plot.style.SIMULATION,
        zorder=5,
        label=f"SGD from m = {STARTS[0]} and from m = {STARTS[1]}",
    )
    legend: dict[str, Artist] = {}
    for panel in panels.values():
        panel.legend().remove()  # one for all of them
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            legend.setdefault(label.split(" at ")[0], handle)
    figure.legend(list(legend.values()), list(legend), loc="outside lower center", ncols=5)
    runs_are = f"mean ± standard deviation of {RUNS} runs at time {TIME:g}"
    caption = f"SpikedTensor · step 1 · SGD: dim {DIM}, {runs_are}"
    sl.plot.style.put_caption(figure, caption)
sl.plot.save(figure, "pictures/tensor_bifurcation.png")

theory = sl.theory.spiked_tensor
for order, diagram in diagrams.items():
    special = diagram.special.values
    kind = "branch" if order == 2 else "fold"
    found, critical = diagram.snr.values[special == kind], theory.critical_snr(order)
    print(f"order {order}: {kind} at snr = {found.round(9).tolist()}, theory {critical:.9f}")
    assert np.allclose(found, critical, rtol=1e-9)
    assert np.sum(special != "") == len(found) == (1 if order == 3 else 2)
    stable = diagram.stability.values == "stable"
    for snr, m in zip(diagram.snr.values[stable], np.abs(diagram.m.values[stable]), strict=True):
        assert m < 1e-9 or abs(m - theory.overlaps(order, snr)[1]) < 1e-8
for (snr, start), ends in last.items():  # SGD ends where the limit says, up to 1/√dim
    learns = snr > theory.critical_snr(3) and start > theory.overlaps(3, snr)[0]
    expected = theory.overlaps(3, snr)[1] if learns else 0.0
    assert abs(ends.mean() - expected) < 0.05
