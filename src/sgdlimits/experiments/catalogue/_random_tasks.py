"""Networks, losses, labels and states at random, and their drift by brute force on raw data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

import sgdlimits as sl

REPLICATES = 6  # scrambles of the data, whose spread is the error of brute force
PER_ANCHOR = 2  # components of a mixture
CORRELATIONS = (0.0, 0.5, 0.99, 1 - 1e-5, 1 - 1e-8)
SMOOTH = ("tanh", "erf", "softplus", "silu", "sin")

ACTIVATIONS: dict[str, Any] = {
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "sin": jnp.sin,
    "relu": jax.nn.relu,
    "leaky": lambda x: jnp.where(x > 0, x, 0.1 * x),
    "clip": lambda x: jnp.clip(x, -1, 1),
    "shifted relu": lambda x: jax.nn.relu(x - 0.5),
    "absolute": jnp.abs,
}
LOSSES: dict[str, Any] = {
    "square": lambda f, y: (y - f) ** 2 / 2,
    "logistic": lambda f, y: jax.nn.softplus(-y * f),
    "sigmoid": lambda f, y: (jax.nn.sigmoid(f) - (y + 1) / 2) ** 2,
    "hinge": lambda f, y: jax.nn.relu(1 - y * f),
    "absolute": lambda f, y: jnp.abs(y - f),
    "Huber": lambda f, y: jnp.where(jnp.abs(y - f) < 1, (y - f) ** 2 / 2, jnp.abs(y - f) - 0.5),
}
LABELS: dict[str, Any] = {
    "by component": None,
    "sign": lambda _, a, _e: jnp.sign(a[0]),
    "flipped sign": lambda _, a, e: jnp.where(e < -1.2, -1.0, 1.0) * jnp.sign(a[0]),
    "tanh and noise": lambda _, a, e: jnp.tanh(jnp.sum(a)) + 0.3 * e,
    "product and noise": lambda _, a, e: jnp.prod(a) + 0.1 * e,
}


class Kind(NamedTuple):
    """What a task is made of, apart from its numbers."""

    activation: str
    loss: str
    labels: str
    width: int
    anchors: int

    def of_sample(self, s: Any, v: Any, y: Any) -> Any:
        """The loss of one sample."""
        return LOSSES[self.loss](jnp.sum(v * ACTIVATIONS[self.activation](s)), y)

    @property
    def smooth(self) -> bool:
        """Whether the loss is analytic."""
        return self.activation in SMOOTH and self.loss in ("square", "logistic", "sigmoid")


def random_kind(rng: np.random.Generator) -> Kind:
    """Each of the lists with equal chances, and up to six neurons and four anchors."""
    activation, loss, labels = (
        str(rng.choice(list(table))) for table in (ACTIVATIONS, LOSSES, LABELS)
    )
    return Kind(activation, loss, labels, int(rng.integers(1, 7)), int(rng.integers(1, 5)))


def random_task(kind: Kind, means: np.ndarray, precision: float) -> sl.tasks.MultiIndexTask:
    """A task of this kind; labels alternate where they are those of components."""
    known = [1.0 - 2.0 * (c % 2) for c in range(len(means))]
    return sl.tasks.MultiIndexTask(
        loss=kind.of_sample,
        labels=known if kind.labels == "by component" else LABELS[kind.labels],
        width=kind.width,
        anchors=[f"a{i}" for i in range(kind.anchors)],
        means=means,
        precision=precision,
        readout="trained",
    )


def random_means(kind: Kind, rng: np.random.Generator) -> np.ndarray:
    """Of a mixture if components have labels, else of one centred component."""
    if kind.labels == "by component":
        return rng.normal(size=(PER_ANCHOR * kind.anchors, kind.anchors))
    return np.zeros((1, kind.anchors))


def random_state(kind: Kind, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights times 0.01 to 100, neurons with correlations up to one minus 1e-8."""
    scale, shared = 10 ** rng.uniform(-2, 2), rng.choice(CORRELATIONS)

    def rows(size: int) -> np.ndarray:
        common, own = rng.normal(size=(1, size)), rng.normal(size=(kind.width, size))
        return scale * (np.sqrt(shared) * common + np.sqrt(1 - shared) * own)

    across = rows(kind.width + 2) / np.sqrt(kind.width + 2)
    return {"v": rng.normal(size=kind.width), "M": rows(kind.anchors), "R": across @ across.T}


def brute_force(
    kind: Kind, task: sl.tasks.MultiIndexTask, state: dict[str, np.ndarray], count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The drift (v, M, R) as a mean over samples of the data, at step 1, and its standard error."""
    values, vectors = np.linalg.eigh(state["R"])
    C, law = vectors * np.sqrt(np.maximum(values, 0)), LABELS[kind.labels]
    r, K, spread = kind.anchors, kind.width, task.precision**-0.5

    def one(c: int, scramble: int) -> np.ndarray:
        sobol = scipy.stats.qmc.Sobol(r + K + 1, rng=np.random.default_rng([seed, scramble, c]))
        normal = scipy.special.ndtri(np.clip(sobol.random(count), 1e-15, 1 - 1e-15))
        a = task.means[c] + spread * normal[:, :r]
        across = spread * normal[:, r:-1] @ C.T
        s, e = a @ state["M"].T + across, normal[:, -1]
        y = np.full(count, 1.0 - 2.0 * (c % 2))
        if law is not None:
            y = jax.vmap(law, (None, 0, 0))(c, a, e)
        g, dv = map(
            np.asarray, jax.vmap(jax.grad(kind.of_sample, (0, 1)), (0, None, 0))(s, state["v"], y)
        )
        half = g.T @ across
        R = (g.T @ g / task.precision - half - half.T) / count
        return np.concatenate([-dv.mean(0), -(g.T @ a).ravel() / count, R[np.triu_indices(K)]])

    with jax.enable_x64(True):
        drifts = np.array(
            [
                sum(weight * one(c, scramble) for c, weight in enumerate(task.weights))
                for scramble in range(REPLICATES)
            ]
        )
    return drifts.mean(0), drifts.std(0, ddof=1) / REPLICATES**0.5
