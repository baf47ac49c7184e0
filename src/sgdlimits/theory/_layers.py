"""One layer of wide kernels: E σ(u)σ(v) and E σ′(u)σ′(v) of two Gaussian fields.

The fields have variances a and b, covariance c and correlation ρ = cos θ. Closed forms take sin²θ
beside them, since 1 − ρ² cancels for fields that are nearly the same; the series bounds its rest.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits._types import Activation

REACH = 12.0  # of the line on which coefficients are integrals, in standard deviations
NEAR = 1e-3  # 1 − |ρ| below which sin²θ is taken from differences
AT_ONCE = 2**22  # numbers in these differences
NEGLIGIBLE = 1e-17  # share of E σ² in terms that are left out


class Averages(NamedTuple):
    """Of σσ and σ′σ′."""

    values: np.ndarray
    slopes: np.ndarray


Closed = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[Averages, np.ndarray]]
"""From a, b, ρ and sin²θ, the averages, and 1 − E σσ/√(E σ(u)² E σ(v)²) to its own precision."""


def sines(X: np.ndarray, Z: np.ndarray, bias: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles of all pairs of rows (x/√d, β): cos θ, and sin²θ by distances of unit vectors.

    >>> sines(np.array([[1.0, 0.0]]), np.array([[1.0, 1e-9], [-1.0, 0.0]]), 0.0)[1].tolist()
    [[1e-18, 0.0]]
    """
    left, right = (_units(rows, bias) for rows in (X, Z))
    cosine = np.clip(left @ right.T, -1, 1)
    square = 1 - cosine**2
    first, second = np.nonzero(1 - abs(cosine) < NEAR)
    some = AT_ONCE // left.shape[1] + 1
    for begin in range(0, len(first), some):
        i, j = first[begin : begin + some], second[begin : begin + some]
        near, far = left[i] - right[j], left[i] + right[j]
        square[i, j] = (near**2).sum(axis=1) * (far**2).sum(axis=1) / 4
    return cosine, square


def relu(
    a: np.ndarray, b: np.ndarray, cosine: np.ndarray, square: np.ndarray
) -> tuple[Averages, np.ndarray]:
    """For relu: √(ab)(sin θ + (π − θ)cos θ)/(2π) and (π − θ)/(2π); θ = π/2 at variance 0."""
    sine = np.sqrt(square)
    angle = np.arctan2(sine, cosine)
    norm = np.sqrt(a) * np.sqrt(b) / 2
    kernel = np.maximum(sine + (np.pi - angle) * cosine, 0.0) / np.pi
    versine = np.where(cosine > 0, square / (1 + abs(cosine)), 1 - cosine)
    lack = versine - (sine - angle * cosine) / np.pi
    return Averages(norm * kernel, (np.pi - angle) / (2 * np.pi)), lack


def erf(
    a: np.ndarray, b: np.ndarray, cosine: np.ndarray, square: np.ndarray
) -> tuple[Averages, np.ndarray]:
    """For erf of x/√2, with S² = (1 + a)(1 + b): 2/π arcsin c/S, and 2/π over √(S² − c²)."""
    both = np.sqrt(a) * np.sqrt(b)
    rest = np.sqrt(1 + a + b + both**2 * square)  # S² − c² without cancellation
    values = 2 / np.pi * np.arctan2(both * cosine, rest)
    one, other = (2 / np.pi * np.arctan2(x, np.sqrt(1 + 2 * x)) for x in (a, b))
    norm = np.sqrt(one * other)
    lack = 1 - np.divide(values, norm, out=np.zeros_like(values), where=norm > 0)
    return Averages(values, 2 / np.pi / rest), lack


def line(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints and weights for a standard normal variable: exponentially precise if smooth."""
    z = REACH * ((2 * np.arange(nodes) + 1) / nodes - 1)
    return z, 2 * REACH / nodes * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def series(
    activation: Activation, terms: int, nodes: int
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Averages, Averages]]:
    """A layer by so many terms of Mehler's formula, and bounds of what is left out.

    The rest Σ_{k≥K} c_k(u)c_k(v)ρᵏ is at most |ρ|ᴷ √(R(u)R(v)), R = E σ² − Σ_{k<K} c_k².
    """
    z, weights = line(nodes)
    basis = np.empty((terms, nodes))
    basis[0], basis[1] = 1.0, z
    for k in range(1, terms - 1):
        basis[k + 1] = (z * basis[k] - np.sqrt(k) * basis[k - 1]) / np.sqrt(k + 1)
    basis *= weights

    def layer(a: np.ndarray, c: np.ndarray, b: np.ndarray) -> tuple[Averages, Averages]:
        left, right = (on_line(activation, x.ravel(), z) for x in (a, b))
        root = np.sqrt(a * b)
        rho = np.clip(np.divide(c, root, out=np.zeros_like(root * c), where=root > 0), -1, 1)
        found, rests = [], []
        for one, other in zip(left, right, strict=True):
            if a.ndim == 1:  # of inputs with themselves
                found.append((one * other) @ weights)
                rests.append(np.zeros_like(found[-1]))
                continue
            moments = [(values**2) @ weights for values in (one, other)]
            pair = [basis @ values.T for values in (one, other)]
            used = max(_used(c, moment) for c, moment in zip(pair, moments, strict=True))
            total = np.zeros_like(rho)
            for k in reversed(range(used)):
                total = total * rho + np.outer(pair[0][k], pair[1][k])
            left_out = [
                np.sqrt(np.maximum(moment - (c[:used] ** 2).sum(axis=0), 0.0))
                for c, moment in zip(pair, moments, strict=True)
            ]
            same = (c == a) & (c == b)
            found.append(np.where(same, moments[0][:, None], total))
            rests.append(np.where(same, 0.0, abs(rho) ** used * np.outer(*left_out)))
        return Averages(*found), Averages(*rests)

    return layer


def on_line(
    activation: Activation, variances: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """σ and σ′ at fields of these variances, one row each."""
    fields = jnp.asarray(np.sqrt(variances)[:, None] * z)
    values, slopes = jax.jvp(activation, (fields,), (jnp.ones_like(fields),))
    return np.asarray(values), np.asarray(slopes)


def _units(rows: np.ndarray, bias: float) -> np.ndarray:
    """(x/√d, β) over its norm, 0 where that is 0."""
    whole = np.column_stack([rows / np.sqrt(rows.shape[1]), np.full(len(rows), bias)])
    largest = abs(whole).max(axis=1, keepdims=True)
    whole = np.divide(whole, largest, out=np.zeros_like(whole), where=largest > 0)
    norms = np.linalg.norm(whole, axis=1, keepdims=True)
    return np.asarray(np.divide(whole, norms, out=np.zeros_like(whole), where=norms > 0))


def _used(coefficients: np.ndarray, moments: np.ndarray) -> int:
    """How many terms are not negligible for every row."""
    after = np.cumsum(coefficients[::-1] ** 2, axis=0)[::-1]
    return max(int(np.max(np.sum(after > NEGLIGIBLE * moments, axis=0))), 1)
