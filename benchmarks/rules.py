"""Error against cost of the quadrature rules: ``python -m benchmarks.rules`` prints the table.

The table is in docs/expectations.md. Errors are relative to the terms of the drift, the largest of
a few states at random; the reference is the mean of the finest rules of two kinds, whose distance
is the error of the reference.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import sgdlimits as sl
from sgdlimits.dynamics.model.accuracy import survey
from sgdlimits.dynamics.model.choice import allowed
from sgdlimits.dynamics.model.multi_index import MultiIndexModel
from sgdlimits.dynamics.model.sizes import Size

STATES, REPEATS = 4, 5
CASES = {  # task, kinds of rules, and for how long it was trained
    "ReLU, 2 fields": (sl.tasks.BinaryMixture(), ("orthant", "lines", "sobol"), 0.0),
    "ReLU, 4 fields": (sl.tasks.XorMixture(precision=5.0), ("orthant", "lines", "sobol"), 0.0),
    "the same, trained": (sl.tasks.XorMixture(precision=5.0), ("orthant", "lines", "sobol"), 40.0),
    "softmax, 3 fields": (
        sl.tasks.GaussianMixture(classes=3, precision=2.0),
        ("hermite", "sobol"),
        0.0,
    ),
    "softmax, 10 fields": (
        sl.tasks.GaussianMixture(classes=10, precision=2.0),
        ("sparse", "sobol"),
        0.0,
    ),
}
COUNTS = (2**8, 2**10, 2**12, 2**14)
FINEST = 2**17


@eqx.filter_jit
def drifts(model: MultiIndexModel | None, vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    assert model is not None
    return jax.lax.map(lambda vector: (model.drift(vector), model.scale(vector)), vectors)


def sized(
    limit: sl.EffectiveDynamics, kind: str, count: int, vectors: jax.Array
) -> MultiIndexModel | None:
    """The limit by a rule of about so many nodes; None where that is too few."""
    model = limit.model
    assert isinstance(model, MultiIndexModel)
    if kind in ("orthant", "sparse"):
        seen = [survey(model, vector) for vector in vectors]
        fit = [size for size in allowed(model, seen, 1e-6, smooth=True) if size.kind == kind]
        fit = [size for size in fit if size.nodes <= count]
        return model.sized(fit[-1]) if fit else None
    if kind == "hermite":
        fields = model.task.width
        order = int(count ** (1 / fields) + 1e-9)
        return model.sized(Size("hermite", order**fields, orders=(order,) * fields))
    return model.sized(Size(kind, count))


def main() -> None:
    """Print a row for every case and rule."""
    print(f"| task | rule | {' | '.join(f'{count} nodes' for count in COUNTS)} |")
    print("|---|---" * 1 + "|---" * len(COUNTS) + "|")
    with jax.enable_x64(True):
        for name, (task, kinds, trained) in CASES.items():
            limit = sl.effective_dynamics(task)
            states = [task.random_state(task.least_dim + 20, seed=seed) for seed in range(STATES)]
            if trained:
                paths = [limit.solve(state, times=[0.0, trained]) for state in states]
                states = [{name: path[name].values[-1] for name in "vMR"} for path in paths]
            vectors = jnp.stack([limit.ravel(state) for state in states])
            finest = [drifts(sized(limit, kind, FINEST, vectors), vectors) for kind in kinds[:2]]
            true, scale = finest[0]
            for kind in kinds:
                entries = []
                for count in COUNTS:
                    model = sized(limit, kind, count, vectors)
                    if model is None:
                        entries.append("–")
                        continue
                    values, _ = drifts(model, vectors)
                    error = np.max(np.abs(values - true) / np.asarray(scale)[:, None])
                    begun = time.process_time()
                    for _ in range(REPEATS):
                        jax.block_until_ready(drifts(model, vectors))
                    spent = (time.process_time() - begun) / REPEATS / STATES
                    entries.append(f"{error:.0e} ({1e3 * spent:.2g} ms)")
                print(f"| {name} | {kind} | {' | '.join(entries)} |", flush=True)
            if len(finest) > 1:
                gap = np.max(np.abs(finest[1][0] - true) / np.asarray(scale)[:, None])
                print(
                    f"<!-- {name}: {kinds[0]} and {kinds[1]} at {FINEST} nodes: {gap:.0e} apart -->"
                )


if __name__ == "__main__":
    main()
