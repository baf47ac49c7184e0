"""Handwritten digits: outliers of Hessian and gradient matrix while your own loop trains a network.

A network 64 → 32 → 10 learns scikit-learn's digits by plain SGD, one sample a step. A tracker,
called on the way, looks at the matrices of the test loss. The last layer is a list of rows, one for
each class, so that "out/3" is the block of the row of class 3 and "out" that of the whole layer.

At first the gradient matrix of the last layer has 9 outliers, one less than classes: softmax does
not see what all rows have in common, so the sum of the class directions has neither curvature nor
gradient. Where the Hessian has its largest gap depends on the random start. In training all these
outliers come down towards the bulk, and in the end no gap is clear. Meanwhile each row turns into
the leading eigenvectors of its own block; a layer as a whole does not, no more than at random.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import sgdlimits as sl

CLASSES, HIDDEN, TRAIN, STEPS = 10, 32, 1297, 30_000
STEP, DECAY = 0.02, 0.01  # STEP * DECAY * STEPS = 6: in the end the random start is forgotten
LAYERS = ["hidden", "out", "out/0", "out/1", "out/2"]

rng = np.random.default_rng(0)
digits = load_digits()
x = np.asarray((digits.data - digits.data.mean()) / digits.data.std(), dtype=np.float32)
y = np.asarray(digits.target)
train, test = np.split(rng.permutation(len(y)), [TRAIN])
stream = rng.choice(train, STEPS)
images, labels = jnp.asarray(x[stream]), jnp.asarray(y[stream])


def outputs(params: Any, x: Any) -> Any:
    """The logits of one image."""
    return jnp.stack(params["out"]) @ jnp.tanh(params["hidden"] @ x)


def loss(params: Any, x: Any, y: Any) -> Any:
    """Cross-entropy of one image."""
    return -jax.nn.log_softmax(outputs(params, x))[y]


@jax.jit
def sgd(params: Any, first: int, last: int) -> Any:
    """Plain SGD with weight decay, through the samples first, ..., last - 1 of the stream."""

    def step(number: Any, params: Any) -> Any:
        gradient = jax.grad(loss)(params, images[number], labels[number])
        return jax.tree.map(lambda w, g: w - STEP * (g + DECAY * w), params, gradient)

    return jax.lax.fori_loop(first, last, step, params)


def accuracy(params: Any, which: np.ndarray) -> float:
    """The share of images whose largest output is their label."""
    logits = jax.vmap(lambda image: outputs(params, image))(x[which])
    return float(np.mean(np.argmax(logits, axis=1) == y[which]))


def ratios(eigenvalues: Any) -> np.ndarray:
    """Of each of the first 2 * CLASSES eigenvalues to the next one, in absolute value."""
    sizes = np.abs(np.asarray(eigenvalues))[: 2 * CLASSES + 1]
    return sizes[:-1] / sizes[1:]


start = {
    "hidden": rng.normal(size=(HIDDEN, 64)) / np.sqrt(64),
    "out": list(rng.normal(size=(CLASSES, HIDDEN)) / np.sqrt(HIDDEN)),
}
params: Any = jax.tree.map(lambda w: jnp.asarray(w, dtype=jnp.float32), start)
network = sl.spectra.Network(loss, x[test], y[test])
outliers = network.tracker(["out", "all"], rank=2 * CLASSES + 1, tolerance=1e-3)
layers = network.tracker(LAYERS, rank=CLASSES, tolerance=1e-3)
last = 0
with threadpool_limits(1, "blas"):  # products are small: threads would wait for one another
    for now in [0, *np.geomspace(30, STEPS, 8).round().astype(int).tolist()]:
        params, last = sgd(params, last, now), now
        outliers(now, params)
        layers(now, params)
spectra, aligned = outliers.dataset(), layers.dataset()

with sl.plot.style.figure_style():
    figure = Figure(figsize=(10.5, 7.4), layout="constrained")
    panels = figure.subplots(2, 2)
    for panel, matrix in zip(panels[0], ("hessian", "gradient"), strict=True):
        sl.plot.eigenvalues_over_time(spectra, "out", matrix, axes=panel)
        first = spectra.eigenvalues.sel(matrix=matrix, block="out").values[:, : CLASSES - 1]
        color = sl.plot.style.PATHS
        panel.plot(spectra.time, first, "o", ms=3.5, color=color, label=f"the first {CLASSES - 1}")
        handle_of = dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
        panel.legend(list(handle_of.values()), list(handle_of), loc="lower left")
        panel.set_yscale("log")
        panel.yaxis.label.set_size(11)
    sl.plot.alignment(aligned, axes=panels[1])
    panels[1, 1].legend(loc="center right", ncols=2, fontsize=8)
    for panel in panels.ravel():
        panel.set_xscale("symlog", linthresh=30)
        panel.set(xlabel="steps of SGD, one sample each", xlim=(-3, 1.3 * STEPS))
        panel.set_xticks([0, 100, 1000, 10_000])
    panels[1, 0].set_ylabel(f"alignment with {CLASSES} eigenvectors")
    caption = f"digits · 64 → {HIDDEN} → {CLASSES}, tanh, step {STEP}, decay {DECAY}"
    sl.plot.style.put_caption(figure, f"{caption} · {len(test)} test images")
sl.plot.save(figure, "pictures/digits_spectra.png")

right = accuracy(params, test)
print(f"accuracy: train {accuracy(params, train):.3f}, test {right:.3f}")
print(f"outliers, those before the largest ratio of the first {2 * CLASSES} eigenvalues:")
count = {}
for matrix in ("hessian", "gradient"):
    for block in ("out", "all"):
        values = spectra.eigenvalues.sel(matrix=matrix, block=block).values
        count[matrix, block] = [1 + int(np.argmax(ratios(row))) for row in values]
        for word, look in (("start", 0), ("end", -1)):
            gaps = ratios(values[look])
            print(
                f"  {matrix:8s} {block:3s} {word:5s} {count[matrix, block][look]:2d}: ratio "
                f"{gaps.max():.2f}; after {CLASSES - 1} it is {gaps[CLASSES - 2]:.2f}"
            )
print("alignment at start and end, and at random:")
for matrix in ("hessian", "gradient"):
    for block in LAYERS:
        own = aligned.alignment.sel(matrix=matrix, block=block).values
        chance = np.sqrt(CLASSES / network.size(params, block))
        print(f"  {matrix:8s} {block:6s} {own[0]:.3f} {own[-1]:.3f} {chance:.3f}")
        if "/" in block:  # a row of the last layer
            assert own[-1] > max(0.8, own[0])
        else:
            assert own[-1] < 0.5
    same = np.tile(rng.normal(size=HIDDEN), CLASSES)  # the same in all rows: softmax is blind to it
    assert np.max(np.abs(network.product(params, matrix, "out", same))) < 1e-12
assert count["gradient", "out"][0] == CLASSES - 1
assert right > 0.95
