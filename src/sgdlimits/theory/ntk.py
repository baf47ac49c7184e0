"""Kernels of infinitely wide networks, and how training moves their predictions.

A network of depth L is f = z⁽ᴸ⁾ with α⁽⁰⁾ = x ∈ ℝᵈ and

    z⁽ᵏ⁺¹⁾ = W⁽ᵏ⁾ α⁽ᵏ⁾/√n_k + β b⁽ᵏ⁾,    α⁽ᵏ⁾ = σ(z⁽ᵏ⁾)

with independent standard normal weights W and biases b, all of which are trained. As the widths n_k
of the L − 1 hidden layers grow, f at the start is a Gaussian process of covariance Σ⁽ᴸ⁾ (NNGP), and
⟨∇f(x), ∇f(x′)⟩ tends to the neural tangent kernel K⁽ᴸ⁾ (NTK) and keeps that value in training.
No factor √2 is put into the weights: with relu, variances halve from layer to layer.

Source: J24 Thms 8.4, 8.6 and 8.7 (from Jacot, Gabriel and Hongler). The empirical kernel has no
prefactor 1/√p, which Def. 8.5 prints.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Activation, Estimate, Number, Numbers, WholeNumber
from sgdlimits.theory import _inputs, _layers

TERMS = (512, 256)  # of the Hermite series; the second is for the error
NODES = 2400  # of the line on which the first has its coefficients; the second has half of them
SAFETY = 2.5  # of errors, at least 1/(√2 − 1): kinks leave a rest like 1/√terms in slopes
GRIDS = ((8.0, 20_000), (16.0, 80_000))  # reach and points, on which moments are looked at
LARGEST = {"relu": 1e150, "erf": 1e75}  # scales beyond which closed forms overflow
SETTLED = 0.05  # relative change of a moment, or violation of Stein's identity, allowed

CLOSED: dict[str, _layers.Closed] = {"relu": _layers.relu, "erf": _layers.erf}
"""Activations with a closed form."""


class Kernels(NamedTuple):
    """Covariance of the process and tangent kernel, a row for each input, with estimated errors."""

    nngp: Estimate
    ntk: Estimate


@double_precision
def kernels(
    inputs: object,
    others: object = None,
    *,
    depth: WholeNumber = 2,
    activation: str | Activation = "relu",
    bias: Number = 0.0,
) -> Kernels:
    """Both kernels of all pairs of inputs, layer by layer.

        Σ⁽¹⁾ = ⟨x, x′⟩/d + β²,    Σ⁽ᵏ⁺¹⁾ = E σ(u)σ(v) + β²,    (u, v) ~ N(0, Σ⁽ᵏ⁾ on x, x′)
        K⁽¹⁾ = Σ⁽¹⁾,              K⁽ᵏ⁺¹⁾ = K⁽ᵏ⁾ E σ′(u)σ′(v) + Σ⁽ᵏ⁺¹⁾

    In closed form for "relu" and "erf", to rounding also for inputs that are nearly parallel. Else
    by Mehler's formula, E σ(u)σ(v) = Σ_k c_k(x)c_k(x′) ρᵏ with ρ the correlation and c_k(x) the
    Hermite coefficients of σ at the variance of u, which are integrals over one variable:
    exponentially precise if σ is smooth, and a pair costs one product for each term. The error is
    2.5 times the change from half as many terms and nodes throughout, and what Cauchy and Schwarz
    allow for terms left out. Kinks make it large where |ρ| is near 1, jumps are refused.

    Args:
        inputs: x, one per row.
        others: x′, one per row; the inputs themselves by default.
        depth: L, the number of layers with weights; 1 is a linear function.
        activation: "relu", "erf" (of x/√2), or a function of JAX arrays, Lipschitz, entry by entry.
        bias: β.

    >>> x = np.sqrt(2) * np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])  # ‖x‖² = d, angle π/3
    >>> found = kernels(x, depth=2)
    >>> found.nngp.value.round(6)
    array([[0.5     , 0.304499],
           [0.304499, 0.5     ]])
    >>> round(float(found.ntk.value[0, 1]), 6), float(found.ntk.error.max())
    (0.471166, 0.0)
    """
    X = _rows("inputs", inputs)
    Z = None if others is None else _rows("others", others)
    if Z is not None and Z.shape[1] != X.shape[1]:
        raise _checks.InputError(
            f"others has shape {Z.shape}, which is not allowed: others must have rows of length "
            f"{X.shape[1]}, as inputs"
        )
    layers = _checks.integer("depth", depth, least=1)
    square = _checks.nonnegative("bias", bias) ** 2
    if isinstance(activation, str) or not callable(activation):
        name = _checks.choice("activation", activation, list(CLOSED))
        _check_sizes(name, {"inputs": X, "others": Z}, square)
        values = _closed(X, Z, layers, square**0.5, name)
        errors: tuple[np.ndarray, ...] = tuple(np.zeros_like(value) for value in values)
    else:
        if layers > 1:
            _check_moments(X, square, activation)
        (values, rests), (coarse, _) = (
            _recursion(X, Z, layers, square, _layers.series(activation, terms, nodes))
            for terms, nodes in zip(TERMS, (NODES, NODES // 2), strict=True)
        )
        if not np.all(np.isfinite(values)):
            raise _refused(activation, f"have finite second moments in all of {layers} layers")
        errors = tuple(
            SAFETY * abs(a - b) + rest for a, b, rest in zip(values, coarse, rests, strict=True)
        )
    return Kernels(*(Estimate(a, b) for a, b in zip(values, errors, strict=True)))


def predictions(
    kernel: object,
    cross: object,
    targets: object,
    *,
    times: Numbers,
    start: object = None,
    cross_start: object = None,
) -> np.ndarray:
    """Predictions along training by gradient flow on ‖y − f‖²/(2n), with a kernel that stays.

        ḟ_t(x) = (1/n) Σ_i K(x, x_i)(y_i − f_t(x_i)),
        f_t(x) = f₀(x) + K(x, X) K⁻¹(1 − e^(−Kt/n))(y − f₀(X))

    by eigenvectors of K, also where it is singular. The sign is that of descent, and the 1/n that
    of the loss: Exs. 8.1 and 8.3 print a minus, and leave out the 1/n or have ½ in its place.

    Args:
        kernel: K(X, X), symmetric and positive semidefinite.
        cross: K(x, X), one row for each point x at which to predict.
        targets: y, at X.
        times: t ≥ 0, math.inf allowed where K is not singular.
        start: f₀(X), zero by default.
        cross_start: f₀ at the points of prediction, zero by default.

    Returns:
        f_t(x), one row for each time.

    >>> predictions([[2.0]], [[2.0], [1.0]], [3.0], times=[0.0, 0.5, np.inf]).round(4)
    array([[0.    , 0.    ],
           [1.8964, 0.9482],
           [3.    , 1.5   ]])
    """
    y = _inputs.vector("targets", targets)
    K = _checks.covariance("kernel", kernel, len(y))
    k = _rows("cross", cross)
    if k.shape[1] != len(y):
        raise _checks.InputError(
            f"cross has shape {k.shape}, which is not allowed: cross must have rows of length "
            f"{len(y)}, as targets"
        )
    t = _times(times)
    known = np.zeros(len(y)) if start is None else _checks.array("start", start, y.shape)
    asked = np.zeros(len(k))
    if cross_start is not None:
        asked = _checks.array("cross_start", cross_start, asked.shape)
    values, vectors = np.linalg.eigh(K)
    positive = values > len(y) * np.finfo(float).eps * max(values[-1], 1e-300)
    if not np.all(positive) and np.any(np.isinf(t)):
        raise _checks.InputError(
            f"times={_checks.shown(t)} is not allowed: times must be finite for a singular kernel"
        )
    safe = np.where(positive, values, 1.0)
    # where K is singular, K(x, X) has no part either, but for rounding: nothing is learned there
    learned = np.where(positive, -np.expm1(-np.outer(t, safe) / len(y)) / safe, 0.0)
    return np.asarray(asked + (learned * (vectors.T @ (y - known))) @ (k @ vectors).T)


def _closed(
    X: np.ndarray, Z: np.ndarray | None, depth: int, bias: float, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Both kernels by closed forms, with angles carried along in place of their cosines."""
    unit, layer, square = 1.0, CLOSED[name], bias**2
    if name == "relu":  # homogeneous: squares neither vanish nor overflow
        unit = max(abs(X).max(), 0.0 if Z is None else abs(Z).max(), bias) or 1.0
        X, Z, square = X / unit, None if Z is None else Z / unit, (bias / unit) ** 2
    Z = X if Z is None else Z
    a, b = (np.einsum("ij,ij->i", rows, rows) / X.shape[1] + square for rows in (X, Z))
    cosine, sine2 = _layers.sines(X, Z, square**0.5)
    nngp = ntk = X @ Z.T / X.shape[1] + square
    for _ in range(depth - 1):
        (values, slopes), lack = layer(a[:, None], b[None, :], cosine, sine2)
        # before biases: variances s and t, 1 − their correlation is known as it is
        s, t = (layer(x, x, np.sign(x), np.zeros_like(x))[0].values for x in (a, b))
        a, b = s + square, t + square
        nngp = values + square
        ntk = ntk * slopes + nngp
        both = np.outer(np.sqrt(s), np.sqrt(t))
        across = square * (np.subtract.outer(np.sqrt(s), np.sqrt(t)) ** 2 + 2 * both * lack)
        norm = np.outer(a, b)
        over = np.where(norm > 0, norm, 1.0)
        sine2 = np.clip((both**2 * lack * (2 - lack) + across) / over, 0, 1)
        cosine = np.clip(nngp / np.sqrt(over), -1, 1)
    return nngp * unit**2, ntk * unit**2


def _recursion(
    X: np.ndarray, Z: np.ndarray | None, depth: int, square: float,
    layer: Callable[..., tuple[_layers.Averages, _layers.Averages]],
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Both kernels and bounds of their rests, with the variances of single inputs carried along."""
    dim = X.shape[1]
    a = np.einsum("ij,ij->i", X, X) / dim + square
    b = a if Z is None else np.einsum("ij,ij->i", Z, Z) / dim + square
    nngp = X @ (X if Z is None else Z).T / dim + square
    ntk = nngp
    rests = np.zeros_like(nngp), np.zeros_like(ntk)
    for _ in range(depth - 1):
        if Z is None:
            np.fill_diagonal(nngp, a)  # an input is parallel to itself, without rounding
        (values, slopes), rest = layer(a[:, None], nngp, b[None, :])
        first = rest.values + abs(slopes) * rests[0]  # ∂(E σσ)/∂c = E σ′σ′
        rests = first, rests[1] * abs(slopes) + abs(ntk) * rest.slopes + first
        nngp, ntk = values + square, ntk * slopes + values + square
        a, b = (layer(x, x, x)[0].values + square for x in (a, b))
    return (nngp, ntk), rests


def _on_line(
    activation: Activation, variances: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """σ and σ′ at fields of these variances, one row each, of an activation not seen before."""
    try:
        values, slopes = _layers.on_line(activation, variances, z)
    except Exception as error:
        raise _refused(activation, "be a function of JAX arrays") from error
    if np.shape(values) != (len(variances), len(z)):
        raise _refused(activation, "act entry by entry")
    return values, slopes


def _check_sizes(activation: str, rows: dict[str, np.ndarray | None], square: float) -> None:
    """Refuse fields so large that their kernels are no numbers."""
    for name, some in rows.items():
        scale = 0.0 if some is None else max(abs(some).max(), square**0.5)
        if scale > LARGEST[activation]:
            raise _checks.InputError(
                f"{name}={scale:.3g} is not allowed: {name} must have entries, and bias, of at "
                f"most {LARGEST[activation]:g} for {activation}, whose kernels overflow beyond"
            )


def _check_moments(X: np.ndarray, square: float, activation: Activation) -> None:
    """Refuse activations whose averages are not numbers, or whose derivative is not all of it.

    The first layer is looked at, at the largest variance, on two fine grids: second moments must
    settle as the grid becomes finer and wider. E zσ(sz) = s E σ′(sz) fails for jumps, which a
    derivative does not see; small jumps pass.
    """
    largest = np.max(np.einsum("ij,ij->i", X, X) / X.shape[1] + square, keepdims=True)
    moments = []
    for reach, count in GRIDS:
        z = reach * ((2 * np.arange(count) + 1) / count - 1)
        weights = 2 * reach / count * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = (part[0] for part in _on_line(activation, largest, z))
            moments.append((value**2 @ weights, slope**2 @ weights))
            stein = (value * z) @ weights - np.sqrt(largest[0]) * (slope @ weights)
    first, last = np.array(moments)
    if not np.all(np.isfinite(moments)) or np.any(abs(last - first) > SETTLED * abs(last)):
        rule = f"have, with its derivative, a finite second moment at variance {largest[0]:.6g}"
        raise _refused(activation, rule)
    if abs(stein) > SETTLED * np.sqrt(last[0]):
        raise _refused(activation, "be continuous")
    # the nodes of the series may all miss where a unit bends, and half of them too
    z, weights = _layers.line(NODES)
    by_nodes = np.array([part[0] ** 2 @ weights for part in _on_line(activation, largest, z)])
    if np.any(abs(by_nodes - last) > SETTLED * abs(last)):
        raise _refused(
            activation,
            f"bend more slowly at inputs of variance {largest[0]:.6g}, where {NODES} nodes do not "
            "resolve it: take smaller inputs",
        )


def _refused(activation: Activation, rule: str) -> _checks.InputError:
    return _checks.InputError(f"activation={activation!r} is not allowed: activation must {rule}")


def _times(value: Numbers) -> np.ndarray:
    """Times from 0 to ∞, both included."""
    try:
        given = np.asarray(value, float)
    except (TypeError, ValueError):
        given = np.zeros(0)  # whatever it is, the next check says what is wrong with it
    if np.any(np.isposinf(given)):
        _inputs.vector("times", np.where(np.isposinf(given), 0.0, given))
    else:
        given = _inputs.vector("times", value)
    if np.any(given < 0):
        raise _checks.InputError(f"times={_checks.shown(given)} is not allowed: times must be >= 0")
    return given


def _rows(name: str, value: object) -> np.ndarray:
    rows = _checks.array(name, value, None)
    if rows.ndim != 2 or rows.size == 0:
        raise _checks.InputError(
            f"{name} has shape {rows.shape}, which is not allowed: {name} must be a matrix with a "
            "row for each point"
        )
    return rows
