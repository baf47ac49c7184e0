"""The generator of problems written as JAX functions, against the effective dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._types import Estimate
from sgdlimits.triples import averages as averages_module
from sgdlimits.triples.generator import generator
from sgdlimits.triples.triple import Triple
from tests.triples.triples import Twin, logistic_twin, pca_twin, xor_twin

TWINS = {"pca": pca_twin, "xor": xor_twin, "logistic": logistic_twin}
FAR = 5.0  # standard errors from 20 batches: beyond it one entry in 10⁴


def start(twin: Twin, dim: int) -> object:
    """A draw of the initial law, moved by order one along the first axis."""
    with jax.enable_x64(True):
        params = twin.triple.init(jax.random.key(3), dim)
    if isinstance(params, dict):
        W = np.array(params["W"])
        W[:, 0] += [0.5, -0.5, 0.2, 0.0]
        return {"v": np.asarray(params["v"]), "W": W}
    moved = np.array(params)
    moved[0] = 0.5
    return moved


def distance(found: Estimate, expected: np.ndarray, slack: float = 0.0) -> float:
    """The largest distance in standard errors; ``slack`` is a relative finite-dimension gap."""
    gap = np.maximum(np.abs(found.value - expected) - slack * np.max(np.abs(expected)), 0.0)
    return float(np.max(gap / (found.error + 1e-12)))


@pytest.mark.parametrize(
    ("name", "dim", "samples"), [("pca", 400, 400), ("xor", 1600, 2000), ("logistic", 400, 10_000)]
)
def test_agrees_with_effective_dynamics(name: str, dim: int, samples: int) -> None:
    twin = TWINS[name]()
    limit = sl.effective_dynamics(twin.task, step=twin.step)
    params = start(twin, dim)
    found = generator(twin.triple, params, twin.step, samples=samples)
    state = twin.state(params)
    np.testing.assert_allclose(found.statistics, limit.ravel(state), atol=1e-12)
    f, g = limit.ravel(limit.population_drift(state)), limit.ravel(limit.corrector(state))
    # the population drift is the same at every dim; in the corrector and the diffusion a few
    # directions out of dim are special
    assert distance(found.population_drift, f) < FAR
    assert distance(found.corrector, g, slack=4 / dim) < FAR
    assert distance(found.drift, g - f, slack=4 / dim) < FAR
    assert distance(found.drift, -f, slack=4 / dim) > FAR  # more than gradient flow
    total = Estimate(*(dim * part for part in found.total_covariance_rate))
    assert distance(total, limit.diffusion(state), slack=8 / dim) < FAR
    assert distance(found.corrector, -g, slack=4 / dim) > 2 * FAR


def test_fluctuations_of_the_second_order_term_count() -> None:
    """Remark 2 of BGJ22: without them the diffusion of R is not that of SGD."""
    twin, dim = logistic_twin(), 400
    params = start(twin, dim)
    found = generator(twin.triple, params, twin.step, samples=10_000)
    expected = sl.effective_dynamics(twin.task, step=twin.step).diffusion(twin.state(params))
    total = Estimate(*(dim * part for part in found.total_covariance_rate))
    gradient_only = Estimate(*(dim * part for part in found.covariance_rate))
    assert distance(total, expected, slack=8 / dim) < FAR
    assert distance(gradient_only, expected, slack=8 / dim) > 2 * FAR


def make_quadratic() -> Triple:
    """L = ½|x − y|², y ~ N(0, diag(1, …, 2)): all is known exactly at every dim."""

    def sample(key: jax.Array, dim: int) -> jax.Array:
        return jnp.sqrt(jnp.linspace(1, 2, dim)) * jax.random.normal(key, (dim,))

    def statistics(x: jax.Array, dim: int) -> jax.Array:
        return jnp.stack([x[0] ** 3, x @ x])

    return Triple(
        lambda x, y: jnp.sum((x - y) ** 2) / 2, sample, statistics, lambda key, dim: jnp.ones(dim)
    )


QUADRATIC = make_quadratic()  # one triple, one compilation


def test_exact_gaussian_case() -> None:
    """V is diagonal, ∇Φ = x is not small: its square must not enter the corrector."""
    dim, step = 30, 0.7
    x = np.linspace(-1, 1, dim)
    found = generator(QUADRATIC, x, step, samples=20_000)
    variance, delta = np.linspace(1, 2, dim), step / dim
    J = np.stack([3 * x[0] ** 2 * np.eye(dim)[0], 2 * x])
    assert distance(found.population_drift, J @ x) < FAR
    assert distance(found.corrector, delta * np.array([3 * x[0], variance.sum()])) < FAR
    assert distance(found.covariance_rate, delta * (J * variance) @ J.T) < FAR
    with_mean = delta * np.array([3 * x[0] * (1 + x[0] ** 2), variance.sum() + x @ x])
    assert distance(found.corrector, with_mean) > 2 * FAR


def test_standard_errors_are_calibrated() -> None:
    x = np.linspace(-1, 1, 10)
    scores = []
    for seed in range(40):
        found = generator(QUADRATIC, x, 1.0, samples=400, seed=seed).corrector
        scores.append((found.value - np.array([-0.3, 1.5])) / found.error)
    assert 0.8 < np.std(scores) < 1.3
    assert abs(np.mean(scores)) < 4 * 1.1 / np.sqrt(80)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-1, 1, 10)
    whole = generator(QUADRATIC, x, 1.0, samples=300)
    monkeypatch.setattr(averages_module, "ENTRIES", 400)
    chunked = generator(QUADRATIC, x, 1.0, samples=300)
    other = generator(QUADRATIC, x, 1.0, samples=300, seed=1)
    np.testing.assert_allclose(chunked.corrector.value, whole.corrector.value, rtol=1e-12)
    np.testing.assert_allclose(
        chunked.covariance_rate.error, whole.covariance_rate.error, rtol=1e-9
    )
    assert np.all(other.corrector.value != whole.corrector.value)


def test_non_finite_gradients_are_an_error() -> None:
    good = QUADRATIC
    bad = Triple(lambda x, y: jnp.sum(jnp.sqrt(x - y)), good.sample, good.statistics, good.init)
    with pytest.raises(ValueError, match="not finite"):
        generator(bad, np.ones(10), 1.0, samples=40)


def test_precision_of_the_caller_is_left_alone() -> None:
    generator(QUADRATIC, np.ones(10), 1.0, samples=40)
    assert jnp.zeros(1).dtype == jnp.float32
