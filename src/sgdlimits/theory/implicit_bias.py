"""Which minimum gradient descent finds: the nearest interpolant, the direction of largest margin.

Least squares: with rows x_i in ``features`` X and ``targets`` y, gradient descent and gradient flow
from θ₀ stay in θ₀ + row space of X, so they converge to the interpolant nearest to θ₀.

Classification: with ``labels`` y_i = ±1 and x̄_i = y_i x_i, the flow ẇ = −∇L of
L(w) = (1/n) Σ_i ℓ(⟨w, x̄_i⟩), ℓ the logistic or the exponential loss, on linearly separable data is

    w(t) = ŵ log t + w̃ + o(1),    ŵ = argmin ‖w‖ subject to ⟨w, x̄_i⟩ ≥ 1 for all i

from any start, for almost all data. In the span of the support vectors, S = {i: ⟨ŵ, x̄_i⟩ = 1}, the
rest w̃ is the same for both losses and all starts,

    (1/n) Σ_{i ∈ S} exp(−⟨w̃, x̄_i⟩) x̄_i = ŵ

and across it w̃ depends on the start. So the direction of w tends to that of ŵ like 1/log t.

Source: J24 Lemma 4.2 and Thm 4.7, corrected: w̃ is printed without the 1/n of the loss, and the
Lagrangian with the wrong sign.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from sgdlimits import _checks

ON_MARGIN = 1e-8  # ⟨ŵ, x̄⟩ − 1 of a support vector is below it
VANISHES = 1e-10  # relative length of a combination that is taken to be zero
SAME = 1e-13  # singular values of support vectors, relatively, that are rounding only
SMALLEST = 1e-150  # largest entry of data
IDLE = 1e-8  # relative force of a support vector that is taken to have none
SETTLED = 1e-9  # relative residual of the equation for w̃
_SHOWN = 4  # rows of a certificate in an error message


@dataclass(frozen=True, repr=False)
class MaxMargin:
    """The separator of largest margin, and how far it is from its optimality conditions.

    Args:
        weights: ŵ.
        support: rows i with ⟨ŵ, x̄_i⟩ = 1, in increasing order.
        multipliers: α_i ≥ 0 with ŵ = Σ_i α_i x̄_i, zero off the support.
        residual: the largest violation of the conditions of Karush, Kuhn and Tucker, relatively;
            what vanishes says that no other separator is better.
    """

    weights: np.ndarray
    support: np.ndarray
    multipliers: np.ndarray
    residual: float

    @property
    def margin(self) -> float:
        """Distance of the nearest point to the separating hyperplane, 1/‖ŵ‖."""
        return float(1 / np.linalg.norm(self.weights))

    def __repr__(self) -> str:
        return (
            f"margin {self.margin:.6g} with {len(self.support)} support vectors "
            f"(optimality conditions hold to {self.residual:.1e})"
        )


def nearest_interpolant(features: object, targets: object, start: object = None) -> np.ndarray:
    """Limit of gradient descent on ‖Xθ − y‖²: θ₀ + X⁺(y − Xθ₀), of least norm for θ₀ = 0.

    If there is no interpolant, it is the nearest of the minima of least squares.

    Args:
        features: X, one sample per row.
        targets: y, real numbers.
        start: θ₀, zero by default.

    >>> nearest_interpolant([[1.0, 1.0]], [2.0]).round(12)
    array([1., 1.])
    >>> nearest_interpolant([[1.0, 1.0]], [2.0], start=[3.0, 1.0]).round(12)
    array([2., 0.])
    """
    X = _rows("features", features)
    y = _checks.array("targets", targets, (len(X),))
    theta = np.zeros(X.shape[1])
    if start is not None:
        theta = _checks.array("start", start, theta.shape)
    solution, *_ = np.linalg.lstsq(X, y - X @ theta)
    return np.asarray(theta + solution)


def max_margin(features: object, labels: object) -> MaxMargin:
    """The separator of largest margin, ŵ = argmin ‖w‖ subject to y_i⟨w, x_i⟩ ≥ 1.

    By least distance programming: one problem of non-negative least squares, solved exactly by an
    active set, gives either ŵ or a proof that there is no separator; then ŵ is solved for anew on
    its support. Hyperplanes go through the origin: for others, append a column of ones.

    Args:
        features: rows x_i.
        labels: y_i, each 1 or −1. Data that are not separable are an error that shows a combination
            Σ u_i y_i x_i = 0 with u ≥ 0; all of it is what ``certificate`` returns.

    >>> found = max_margin([[2.0, 0.0], [0.0, -1.0], [3.0, 3.0]], [1, -1, 1])
    >>> found
    margin 0.894427 with 2 support vectors (optimality conditions hold to 0.0e+00)
    >>> found.weights, found.support
    (array([0.5, 1. ]), array([0, 1]))
    """
    signed = _signed(features, labels)
    weights, u = _least_distance(signed)
    if weights is None:
        used = np.flatnonzero(u)
        terms = " + ".join(f"{u[i]:.6g} y[{i}] x[{i}]" for i in used[:_SHOWN])
        more = f" + … ({len(used)} terms)" if len(used) > _SHOWN else ""
        raise _checks.InputError(
            f"labels={_checks.shown(np.asarray(labels))} is not allowed: labels must be separable "
            f"by a hyperplane through 0, but {terms}{more} = 0"
        )
    support = np.flatnonzero(signed @ weights <= 1 + ON_MARGIN)
    multipliers = np.zeros(len(signed))
    multipliers[support], _ = optimize.nnls(signed[support].T, weights)
    return MaxMargin(weights, support, multipliers, _violation(signed, weights, multipliers))


def certificate(features: object, labels: object) -> np.ndarray | None:
    """Weights u ≥ 0 with Σ u_i y_i x_i = 0 and Σ u_i = 1, if data are not separable; else None.

    Gordan: exactly one of the two exists, such a u or a w with y_i⟨w, x_i⟩ > 0 for all i.

    >>> certificate([[1.0, 0.0], [2.0, 0.0]], [1, -1]).round(12)
    array([0.66666667, 0.33333333])
    >>> certificate([[1.0, 0.0], [2.0, 0.0]], [1, 1]) is None
    True
    """
    weights, u = _least_distance(_signed(features, labels))
    return u if weights is None else None


def settling_power(features: object, labels: object) -> float:
    """The power p with which the rest settles: its distance to w̃ in the span falls like t^(−p).

        p = min(ψ − 1, μ),  ψ = min_{i ∉ S} ⟨ŵ, x̄_i⟩,  μ = least eigenvalue of Σ_{i ∈ S} α_i x̄_ix̄_iᵀ

    on the span. Points off the margin pull with t^(−ψ) where support vectors pull with 1/t, as in
    the proof of Thm 4.7; a deviation r obeys ṙ = −(Σ α_i x̄_ix̄_iᵀ) r/t. As ŵ has the eigenvalue 1,
    p ≤ 1; one support vector of small α makes it slow.

    >>> round(settling_power([[2.0, 0.0], [0.0, -1.0]], [1, -1]), 9)
    1.0
    """
    found = max_margin(features, labels)
    signed = _signed(features, labels)
    others = np.delete(signed @ found.weights, found.support)
    weighted = np.sqrt(found.multipliers[found.support])[:, None] * signed[found.support]
    rank = np.linalg.matrix_rank(signed[found.support])
    least = float(np.linalg.svd(weighted, compute_uv=False)[rank - 1] ** 2)
    return min(least, float(others.min()) - 1) if len(others) else least


def offset(features: object, labels: object) -> np.ndarray:
    """The part of w̃ = lim w(t) − ŵ log t in the span of the support vectors.

    It minimises (1/n) Σ_{i ∈ S} exp(−⟨w, x̄_i⟩) + ⟨w, ŵ⟩; for independent support vectors,
    ⟨w̃, x̄_i⟩ = −log(n α_i). The time t is that of the flow; gradient descent with step η has
    t = η · steps.

    Args:
        features: rows x_i.
        labels: y_i, each 1 or −1. Data with a support vector that no combination needs, which have
            measure zero, are an error: there the rest grows like log log t.

    >>> offset([[2.0, 0.0], [0.0, -1.0]], [1, -1]).round(6)
    array([ 0.346574, -0.693147])
    """
    found = max_margin(features, labels)
    signed = _signed(features, labels)
    active, alpha = signed[found.support], found.multipliers[found.support]
    U, values, basis = np.linalg.svd(active, full_matrices=False)
    kept = values > SAME * values[0]
    U, lengths = U[:, kept], values[kept]
    # w = Σ basis (q − log(n Σ α) Uᵀ1)/lengths, as U Uᵀ1 = 1: neither scale nor margin is in q
    shares = alpha / alpha.sum()
    target = U.T @ shares
    start = -U.T @ np.log(np.maximum(shares, 1e-3 * shares.max()))

    def forces(q: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(np.minimum(-U @ q, 300.0)))

    solution = optimize.minimize(
        lambda q: float(np.sum(forces(q)) + q @ target),
        start,
        jac=lambda q: target - U.T @ forces(q),
        hess=lambda q: (U.T * forces(q)) @ U,
        method="trust-exact",
        options={"gtol": SETTLED * np.linalg.norm(target) / 10},
    )
    force = forces(solution.x)
    missed = np.linalg.norm(target - U.T @ force)
    if not missed <= SETTLED * np.linalg.norm(target) or force.min() < IDLE * force.max():
        raise _checks.InputError(
            f"features={_checks.shown(np.asarray(features))} is not allowed: features must have "
            "support vectors with positive multipliers only"
        )
    shift = math.log(len(signed)) + math.log(alpha.sum())
    return np.asarray((solution.x - shift * U.sum(axis=0)) / lengths @ basis[kept])


def _least_distance(signed: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """ŵ and its multipliers; or None and the weights of a combination that vanishes.

    Lawson and Hanson: with u ≥ 0 that minimises ‖Σ u_i x̄_i‖² + (Σ u_i − 1)², ŵ is parallel to
    Σ u_i x̄_i; if that is zero, u is the proof that there is none.
    """
    scale = np.max(np.abs(signed))
    if scale == 0:
        return None, np.full(len(signed), 1 / len(signed))
    rows = signed / scale
    u, _ = optimize.nnls(
        np.vstack([rows.T, np.ones(len(rows))]), np.append(np.zeros(rows.shape[1]), 1.0)
    )
    used = u > 0
    # the support is known now: ŵ is the point nearest to 0 where its products are 1
    exact, *_ = np.linalg.lstsq(rows[used], np.ones(used.sum()))
    if np.min(rows @ exact) > 0.5:  # as no combination of products 1 is the product of 0
        return exact / scale, u
    if np.linalg.norm(rows.T @ u) > VANISHES * u.sum():
        raise _checks.InputError(
            "features are not allowed: features must be separable by more than 1e-8 of their "
            "length, or not at all"
        )
    return None, u / u.sum()


def _violation(signed: np.ndarray, weights: np.ndarray, multipliers: np.ndarray) -> float:
    """Of feasibility, stationarity and complementarity."""
    products = signed @ weights
    unmet = max(0.0, 1 - float(products.min()))
    apart = float(np.linalg.norm(multipliers @ signed - weights) / np.linalg.norm(weights))
    slack = float(multipliers @ np.abs(products - 1)) / float(multipliers.sum())
    return max(unmet, apart, slack)


def _signed(features: object, labels: object) -> np.ndarray:
    """Rows x̄_i = y_i x_i."""
    X = _rows("features", features)
    y = _checks.array("labels", labels, (len(X),))
    if not np.all(np.abs(y) == 1):
        raise _checks.InputError(
            f"labels={_checks.shown(y)} is not allowed: labels must be 1 or −1 each"
        )
    size = float(np.max(np.abs(X)))
    if size > 0 and not SMALLEST <= size <= 1 / SMALLEST:
        raise _checks.InputError(
            f"features are not allowed: features must have a largest entry between {SMALLEST:g} "
            f"and {1 / SMALLEST:g}, not {size:.3g}, as their squares must be numbers"
        )
    return y[:, None] * X


def _rows(name: str, value: object) -> np.ndarray:
    X = _checks.array(name, value, None)
    if X.ndim != 2 or X.size == 0:
        raise _checks.InputError(
            f"{name} has shape {X.shape}, which is not allowed: {name} must be a matrix with a row "
            "for each sample"
        )
    return X
