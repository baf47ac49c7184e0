"""Robust regressions drawn at random, of which it is known whether a set of statistics closes.

Inputs are Gaussian with coordinates of two kinds, contiguous or interleaved, or with a power law of
variances; labels are the first input plus noise, Gaussian or Student with three degrees of freedom;
the loss is pseudo-Huber of any width. ``python -m tests.triples.random_triples 0 64`` counts the
verdicts over seeds. All numbers are arrays, so that one compilation serves all cases of a kind.
"""

import sys
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits.triples.closability import closability
from sgdlimits.triples.triple import Triple
from tests.triples.triples import gaussian

SQUARE = 1e4  # width from which on the pseudo-Huber loss is a square


class Sensors(eqx.Module):
    """Inputs and labels; ``statistics`` and ``sample`` need to know which coordinate is which."""

    share: np.ndarray  # of the coordinates that are of the first kind
    ratio: np.ndarray  # of the variances of the two kinds
    power: np.ndarray  # of the power law of variances
    mixed: np.ndarray  # 0: contiguous, 1: interleaved
    heavy: np.ndarray  # noise of the labels: 0 Gaussian, 1 Student with three degrees of freedom

    def place(self, dim: int) -> jax.Array:
        i = jnp.arange(dim)
        interleaved = (i * (np.sqrt(5) - 1) / 2) % 1.0
        return jnp.where(self.mixed > 0, interleaved, (i + 0.5) / dim)

    def first_kind(self, dim: int) -> jax.Array:
        return self.place(dim) < self.share

    def __call__(self, key: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
        inputs, noise = jax.random.split(key)
        variance = jnp.where(self.first_kind(dim), 1.0, self.ratio)
        variance *= (1 + 9 * self.place(dim)) ** -self.power
        x = jnp.sqrt(variance) * jax.random.normal(inputs, (dim,))
        z, *others = jax.random.normal(noise, (4,))  # a sampler of gammas is ten times slower
        tail = jnp.sqrt(sum(other**2 for other in others) / 3)
        return x, x[0] + 0.3 * z / tail**self.heavy


class Huber(eqx.Module):
    """κ²(√(1 + r²/κ²) − 1) of the residual r."""

    width: np.ndarray

    def __call__(self, w: jax.Array, datum: tuple[jax.Array, jax.Array]) -> jax.Array:
        x, y = datum
        square = ((y - w @ x) / self.width) ** 2
        return jnp.asarray(self.width**2 * square / (1 + jnp.sqrt(1 + square)))


class Norms(eqx.Module):
    """The overlap, and the squared norm of the rest: none, one, or one for each kind."""

    sensors: Sensors
    norms: int = eqx.field(static=True)

    def __call__(self, w: jax.Array, dim: int) -> jax.Array:
        first = self.sensors.first_kind(dim)[1:]
        rest = w[1:] ** 2
        parts = [jnp.sum(jnp.where(first, rest, 0.0)), jnp.sum(jnp.where(first, 0.0, rest))]
        found = {0: [], 1: [parts[0] + parts[1]], 2: parts}[self.norms]
        return jnp.stack([w[0], *found])


class Case(NamedTuple):
    """A triple, what is true of it, and how it was drawn."""

    triple: Triple
    open_statistics: tuple[str, ...]
    words: str


def draw(seed: int) -> Case:
    generator = np.random.default_rng(seed)
    norms = int(generator.choice([0, 1, 1, 1, 2, 2]))
    two_kinds = norms == 2 or generator.random() < 0.4
    law = norms == 1 and not two_kinds and generator.random() < 0.5
    numbers = {
        "share": generator.uniform(0.2, 0.8),
        "ratio": np.exp(generator.uniform(np.log(1.5), np.log(8))) if two_kinds else 1.0,
        "power": generator.uniform(0.4, 1.5) if law else 0.0,
        "mixed": float(generator.integers(2)),
        "heavy": float(generator.integers(2)),
    }
    width = float(np.exp(generator.uniform(np.log(0.5), np.log(3))))
    if generator.random() < 0.5:
        width = SQUARE
    sensors = Sensors(**{name: np.asarray(value) for name, value in numbers.items()})
    names = [["m"], ["m", "q"], ["m", "left", "right"]][norms]
    opened: list[str] = []
    if norms == 0 and width < SQUARE:
        opened = ["m"]  # saturation depends on the size of the residual
    if norms == 1 and (two_kinds or law):
        opened = ["q"] if width == SQUARE else ["m", "q"]
    words = ", ".join(f"{name}={value:.2g}" for name, value in numbers.items())
    triple = Triple(Huber(np.asarray(width)), sensors, Norms(sensors, norms), gaussian, names)
    return Case(triple, tuple(opened), f"seed={seed} {names} {words}, width={width:.3g}")


def main(first: int, last: int) -> None:
    """Count verdicts over seeds, and print those that are wrong or undecided."""
    counts: dict[tuple[str, str], int] = {}
    for seed in range(first, last):
        case = draw(seed)
        found = closability(case.triple, (40, 160), step=0.4, seed=seed)
        truth = "not closed" if case.open_statistics else "closed"
        counts[truth, found.verdict] = counts.get((truth, found.verdict), 0) + 1
        extra = set(found.open_statistics) - set(case.open_statistics)
        mark = "WRONG" if extra or found.verdict not in (truth, "undecided") else "ok"
        share = np.round(found.unexplained.value[-1] / found.mean_square[-1], 5)
        print(mark, truth, "->", found.verdict, case.words, share, found.samples, flush=True)
        if found.verdict != truth or extra:
            print(found, flush=True)
    print(counts)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
