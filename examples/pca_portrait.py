"""Matrix PCA around its transition: the phase portrait of the limit, and runs of SGD on top.

Below snr = 1 everything ends at the equator m = 0: SGD learns nothing. At snr = 1 the equator is
neutral; above, two stable points with m² = snr - 1 have split off from it.
"""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

import sgdlimits as sl

PANELS = {0.7: "below", 1.0: "at the transition", 2.0: "above"}
DIM, RUNS, TIME = 3000, 20, 1.5

angle = 2 * np.pi * (np.arange(RUNS) + 0.5) / RUNS
start = {"m": 1.35 * np.cos(angle), "r2": 0.9 + 0.75 * np.sin(angle)}  # all around the picture

with sl.plot.style.figure_style():
    figure = Figure(figsize=(9.6, 4.7), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
legend: dict[str, Artist] = {}
rest, last = {}, {}
for panel, (snr, word) in zip(panels, PANELS.items(), strict=True):
    task = sl.tasks.SpikedTensor(order=2, snr=snr)
    limit = sl.effective_dynamics(task)
    runs = sl.simulate(task, dim=DIM, runs=RUNS, time=TIME, init=start, points=76)
    found = limit.fixed_points(count=24)
    sl.plot.portrait(
        limit,
        "m",
        "r2",
        x_range=(-1.6, 1.6),
        y_range=(0.0, 1.8),
        fixed_points=found,
        runs=runs,
        axes=panel,
        points=121,
    )
    panel.set_title(f"{word}: snr {snr:g}", fontsize=10.5)
    panel.label_outer()
    handles, labels = panel.get_legend_handles_labels()
    legend |= dict(zip(labels, handles, strict=True))
    rest[snr], last[snr] = found, runs.m.values[:, -1:]

with sl.plot.style.figure_style():
    caption = f"SpikedTensor · order 2 · dim {DIM}, step 1, {RUNS} runs"
    sl.plot.style.put_caption(figure, caption)
    figure.legend(list(legend.values()), list(legend), loc="outside lower center", ncols=4)
sl.plot.save(figure, "pictures/pca_portrait.png")

for snr, found in rest.items():
    stable = sorted(
        float(state["m"])
        for point in found
        if point.stability == "stable"
        for state in point.orbit  # -m is a rest point with m, by symmetry
    )
    print(f"snr {snr:g}: stable at m = {np.round(stable, 6).tolist()}")
    # the closed form has the same points; at snr = 1 the equator is a root of third order in m
    exact = sl.theory.spiked_tensor.fixed_points(2, snr)
    states = [state for point in found for state in point.orbit]
    assert len(states) == len(exact)
    for point in exact:
        target = [point.overlap, point.radius_squared]
        assert any(np.allclose([x["m"], x["r2"]], target, atol=2e-3) for x in states)
    assert np.allclose(stable, sorted(point.overlap for point in exact if point.stable))
    if stable:  # SGD has ended there, up to fluctuations of order 1/√dim
        assert np.all(np.min(np.abs(last[snr] - stable), axis=1) < 0.25)
