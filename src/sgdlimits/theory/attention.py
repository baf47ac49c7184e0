"""Tokens as particles on the sphere: energies of self-attention, its saddles, its rates.

With Q = K = V = I, particles x_i on the unit sphere of ℝᵈ, P_x y = y − ⟨x, y⟩x and the inverse
temperature β, self-attention and its variant without softmax are

    ẋ_i = P_{x_i} Σ_j e^{β⟨x_i, x_j⟩} x_j / Z_i    with Z_i = Σ_j e^{β⟨x_i, x_j⟩}, or n if not normalised

Both climb the same energy, each in a metric of its own, and from almost every start all particles
meet in one point. How fast is known where the law of one inner product is closed: for particles
that all have the same angle to one another, and for two clusters. From d ≥ n on almost every start
is in an open half-space, and convergence is exponential; the rate that holds at all times is
O(e^{−β}), as Fig. 2.1 says, though late in time the rate is 2 at every β.

Open, as far as we know: whether many particles at large β always pass through few clusters that
live long (open question 1; here the life of two clusters is known, not that they form); what random
Q, K, V do (open question 2; measured in ``sgdlimits.lectures.attention``, not predicted).

Source: J24 ch. 14, corrected: E₀ is printed without its 1/2, and the flow with V = QᵀK is called a
gradient flow, which is so if QᵀK is symmetric only. Equal angles: GLPR23.
"""  # noqa: E501 - one formula

import numpy as np
from scipy import integrate

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, WholeNumber

UNIT = 1e-6  # a point is on the sphere if its norm is 1 within this
CRITICAL = 1e-6  # a gradient of E₀ is taken to vanish if no particle's is longer
LARGEST = 700.0  # exponents: beyond, numbers overflow
_TOLERANCE = 1e-11  # of solutions


def energy(points: object, inverse_temperature: Number, interaction: object = None) -> float:
    """The energy that self-attention climbs, (1/(2βn²)) ΣΣ e^{β⟨x_i, A x_j⟩}, and E₀ at β = 0.

        E₀ = (1/2n) Σ_i Σ_j ⟨x_i, A x_j⟩ = lim n (E_β − 1/(2β))

    Args:
        points: x_i, one per row, of norm 1.
        inverse_temperature: β ≥ 0.
        interaction: A = QᵀK, the identity by default.

    >>> energy([[1.0, 0.0], [0.0, 1.0]], 0.0), energy([[1.0, 0.0], [1.0, 0.0]], 0.0)
    (0.5, 1.0)
    """
    X, b, A = _state(points, inverse_temperature, interaction)
    products = X @ A @ X.T
    if b == 0:
        return float(products.sum() / (2 * len(X)))
    return float(np.mean(_exponentials(b, products)) / (2 * b))


def energy_rate(
    points: object, inverse_temperature: Number, normalised: Flag = True, interaction: object = None
) -> float:
    """dE/dt along the flow with V = A, A = QᵀK symmetric: never negative.

        dE_β/dt = (1/n) Σ_i w_i ‖ẋ_i‖²,   w_i = Z_i/n normalised, 1 if not;   dE₀/dt = Σ_i ‖ẋ_i‖²

    so the flow is gradient ascent in the metric (1/n) Σ w_i ‖v_i‖². With softmax, it depends on
    where the particles are.

    Args:
        points: x_i, one per row, of norm 1.
        inverse_temperature: β ≥ 0.
        normalised: whether weights are divided by their sum, or by n.
        interaction: A = V, symmetric; the identity by default. With another A there is no such law.

    >>> round(energy_rate([[1.0, 0.0], [0.0, 1.0]], inverse_temperature=0.0), 12)
    0.5
    >>> energy_rate([[1.0, 0.0], [-1.0, 0.0]], inverse_temperature=3.0)
    0.0
    """
    X, b, A = _state(points, inverse_temperature, interaction)
    softmax = _checks.flag("normalised", normalised)
    if not np.allclose(A, A.T, rtol=1e-9, atol=1e-12):
        raise _checks.InputError(
            f"interaction={_checks.shown(A)} is not allowed: interaction must be symmetric"
        )
    n = len(X)
    weights = _exponentials(b, X @ A @ X.T)
    sums = weights.sum(axis=1, keepdims=True) if softmax else np.full((n, 1), float(n))
    force = weights @ X @ A / sums
    velocity = force - np.sum(force * X, axis=1, keepdims=True) * X
    squares = np.sum(velocity**2, axis=1)
    return float(squares.sum() if b == 0 else sums[:, 0] @ squares / n**2)


def escape_rate(points: object) -> float:
    """The largest eigenvalue of the Hessian of E₀ at a critical point: Lemma 14.3, with its number.

        1 − λ_min((1/n) Σ_i x_i x_iᵀ) ≥ 1 − 1/d,   and 0 where all particles are one

    So every critical point but those is a strict saddle, which the flow at β = 0 leaves like e^{rate · t}.
    The Hessian is v ↦ (1/n)‖Σ_i v_i‖² − Σ_i ⟨m, x_i⟩‖v_i‖² with the mean m, and critical points have
    m = 0, where its largest eigenvalue is that of (1/n) Σ_i P_{x_i}; or x_i = ± m/‖m‖, where its
    eigenvalues along each direction across m solve λ² = λ, but for ±‖m‖.

    Args:
        points: x_i, one per row, of norm 1; a critical point of E₀.

    >>> escape_rate([[1.0, 0.0], [-1.0, 0.0]]), escape_rate([[1.0, 0.0], [1.0, 0.0]])
    (1.0, 0.0)
    >>> round(escape_rate([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), 12)
    0.5
    """  # noqa: E501 - one formula
    X, _, _ = _state(points, 0.0, None)
    mean = X.mean(axis=0)
    gradient = mean - (X @ mean)[:, None] * X
    if np.max(np.linalg.norm(gradient, axis=1)) > CRITICAL:
        raise _checks.InputError(
            f"points={_checks.shown(X)} is not allowed: points must be a critical point of E₀, "
            "with mean zero or all on one line through 0"
        )
    if np.linalg.norm(mean) > 1 - CRITICAL:
        return 0.0
    return float(1 - max(0.0, np.linalg.eigvalsh(X.T @ X / len(X))[0]))


def decay_rate(product: Number, particles: WholeNumber, inverse_temperature: Number) -> float:
    """The rate −d log(1 − γ)/dt at which equal inner products γ come to 1, with softmax.

        2 (1 + (n − 1)γ) / (e^{β(1−γ)} + n − 1)

    It grows with γ: from 2/(e^β + n − 1) at γ = 0, so that 1 − γ(t) ≤ e^{−λt} at all times for this
    λ = O(e^{−β}) and for no larger one, to 2 at γ = 1, whatever β is.

    Args:
        product: γ, from −1/(n − 1) to 1.
        particles: n.
        inverse_temperature: β ≥ 0.

    >>> [round(decay_rate(product, 10, inverse_temperature=5.0), 6) for product in (1.0, 0.0)]
    [2.0, 0.012705]
    """
    n, b = _size(particles), _temperature(inverse_temperature)
    gamma = _product("product", product, n, closed=True)
    return float(2 * (1 + (n - 1) * gamma) / (np.exp(b * (1 - gamma)) + n - 1))


def equal_products(
    times: object,
    particles: WholeNumber,
    inverse_temperature: Number,
    start: Number = 0.0,
    normalised: Flag = True,
) -> np.ndarray:
    """The inner product γ of particles that all have the same one, such as orthonormal ones.

        γ̇ = 2 e^{βγ} (1 − γ)(1 + (n − 1)γ) / Z,   Z = e^β + (n − 1)e^{βγ}, or n if not normalised

    Symmetry keeps products equal. In high dimension independent uniform particles are nearly
    orthonormal, and their products follow γ from 0 within O(√(log d/d)) at each time (GLPR23).

    Args:
        times: increasing, from 0 on.
        particles: n ≥ 2; such particles need d ≥ n, or d = n − 1 where γ = −1/(n − 1).
        inverse_temperature: β ≥ 0.
        start: γ at time 0, above −1/(n − 1), where it rests, and below 1.
        normalised: whether weights are divided by their sum, or by n.

    >>> equal_products([0.0, 1.0, 10.0], particles=2, inverse_temperature=0.0).round(6)  # tanh t
    array([0.      , 0.761594, 1.      ])
    """
    n, b = _size(particles), _temperature(inverse_temperature)
    gamma = _product("start", start, n)
    softmax = _checks.flag("normalised", normalised)

    def rate(gap: float) -> float:
        total = np.exp(b * gap) + n - 1 if softmax else n * np.exp(-b * (1 - gap))
        return float(2 * (n - (n - 1) * gap) / total)

    return 1 - _gaps(_times(times), 1 - gamma, rate)


def least_product(
    times: object, particles: WholeNumber, inverse_temperature: Number, start: Number = 0.0
) -> np.ndarray:
    """A lower bound of all inner products q at each time, if none is negative at time 0.

        q̇ ≥ 2 (1 − q²) / (1 + (n − 1)e^{β(1−q)})   for the least one, with softmax

    Proof: let ⟨x_i, x_j⟩ = q be the least. In its derivative every other particle k pulls with
    A_ik(⟨x_k, x_j⟩ − ⟨x_i, x_k⟩q) ≥ A_ik q(1 − ⟨x_i, x_k⟩) ≥ 0, j itself with A_ij(1 − q²), and
    A_ij ≥ e^{βq}/(e^{βq} + (n − 1)e^β). It is an equality for n = 2.

    Args:
        times: increasing, from 0 on.
        particles: n ≥ 2.
        inverse_temperature: β ≥ 0.
        start: the least product at time 0, at least 0 and below 1.

    >>> least_product([0.0, 1.0, 10.0], particles=2, inverse_temperature=0.0).round(6)
    array([0.      , 0.761594, 1.      ])
    """
    n, b = _size(particles), _temperature(inverse_temperature)
    q = _checks.nonnegative("start", start)
    if not q < 1:
        raise _checks.InputError(f"start={start!r} is not allowed: start must be below 1")
    return 1 - _gaps(
        _times(times), 1 - q, lambda gap: 2 * (2 - gap) / (1 + (n - 1) * np.exp(b * gap))
    )


def meeting_time(
    inverse_temperature: Number, start: Number, end: Number, share: Number = 0.5
) -> float:
    """How long two clusters take from one inner product to another, with softmax.

        T = ∫ dq / ((1 − q²)(p₁/(p₁ + p₂e^{β(1−q)}) + p₂/(p₂ + p₁e^{β(1−q)}))

    with shares p₁ + p₂ = 1 of the particles. At large β it grows like e^{β(1−q)} of the start: the
    clusters are metastable.

    Args:
        inverse_temperature: β ≥ 0.
        start: inner product q of the two at the start, above −1: opposite clusters rest.
        end: the one at the end, from ``start`` to below 1.
        share: p₁, of particles in the first cluster.

    >>> round(meeting_time(0.0, start=0.0, end=0.9), 6), round(float(np.arctanh(0.9)), 6)
    (1.472219, 1.472219)
    >>> meeting_time(20.0, start=0.0, end=0.9) / meeting_time(10.0, start=0.0, end=0.9) > 1e4
    True
    """
    b, p = _temperature(inverse_temperature), _checks.fraction("share", share)
    first, last = (_within(name, value) for name, value in (("start", start), ("end", end)))
    if last < first:
        raise _checks.InputError(f"end={end!r} is not allowed: end must be at least start={first}")

    def slowness(y: float) -> float:  # of q = tanh y
        growth = np.exp(b * (1 - np.tanh(y)))
        return float(1 / (p / (p + (1 - p) * growth) + (1 - p) / (1 - p + p * growth)))

    value, _ = integrate.quad(
        slowness, np.arctanh(first), np.arctanh(last), epsabs=0, epsrel=1e-10, limit=200
    )
    return float(value)


def _gaps(times: np.ndarray, start: float, rate: object) -> np.ndarray:
    """Solutions of gap' = −rate(gap) gap, through their logarithms: small gaps stay accurate."""
    assert callable(rate)
    solution = integrate.solve_ivp(
        lambda _, y: -rate(np.exp(y[0])) * np.ones(1),
        (0.0, max(float(times[-1]), 1e-12)),
        [np.log(start)],
        "LSODA",
        times,
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
    )
    if not solution.success:
        raise RuntimeError(f"the products could not be solved: {solution.message}")
    return np.asarray(np.exp(solution.y[0]))


def _state(
    points: object, inverse_temperature: Number, interaction: object
) -> tuple[np.ndarray, float, np.ndarray]:
    X = _checks.array("points", points, None)
    if X.ndim != 2 or len(X) < 2 or X.shape[1] < 2:
        raise _checks.InputError(
            f"points has shape {X.shape}, which is not allowed: points must be a matrix with a row "
            "for each of at least two particles, in at least two dimensions"
        )
    if np.max(np.abs(np.linalg.norm(X, axis=1) - 1)) > UNIT:
        raise _checks.InputError(
            f"points={_checks.shown(X)} is not allowed: points must have norm 1 each"
        )
    d = X.shape[1]
    A = np.eye(d) if interaction is None else _checks.array("interaction", interaction, (d, d))
    return X, _temperature(inverse_temperature), A


def _exponentials(b: float, products: np.ndarray) -> np.ndarray:
    if b * np.max(np.abs(products)) > LARGEST:
        raise _checks.InputError(
            f"inverse_temperature={b!r} is not allowed: inverse_temperature must be at most "
            f"{LARGEST / np.max(np.abs(products)):.6g} for these points"
        )
    return np.asarray(np.exp(b * products))


def _temperature(inverse_temperature: Number) -> float:
    b = _checks.nonnegative("inverse_temperature", inverse_temperature)
    if b > LARGEST / 2:  # as inner products differ by at most 2
        raise _checks.InputError(
            f"inverse_temperature={inverse_temperature!r} is not allowed: inverse_temperature must "
            "be at most 350"
        )
    return b


def _size(particles: WholeNumber) -> int:
    return _checks.integer("particles", particles, least=2)


def _times(value: object) -> np.ndarray:
    t = _checks.array("times", value, None)
    if t.ndim != 1 or len(t) == 0 or t[0] < 0 or np.any(np.diff(t) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(t)} is not allowed: times must increase from 0 on"
        )
    return t


def _product(name: str, value: Number, particles: int, *, closed: bool = False) -> float:
    """An inner product that n particles can have with one another."""
    low = -1 / (particles - 1)
    number = float(_checks.array(name, value, ()))
    if not (low <= number <= 1 if closed else low < number < 1):
        ends = f"[{low:.6g}, 1]" if closed else f"({low:.6g}, 1)"
        raise _checks.InputError(
            f"{name}={value!r} is not allowed: {name} must lie in {ends} for {particles} particles"
        )
    return number


def _within(name: str, value: Number) -> float:
    number = float(_checks.array(name, value, ()))
    if not -1 < number < 1:
        raise _checks.InputError(f"{name}={value!r} is not allowed: {name} must lie in (-1, 1)")
    return number
