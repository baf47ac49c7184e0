"""The drift of the engine on the sphere is gradient flow of the population loss φ(m) of theory."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl

HERMITE = sl.theory.hermite


def third(z: Any) -> Any:
    return (z**3 - 3 * z) / np.sqrt(6)


def shifted(z: Any) -> Any:
    return jnp.maximum(z - 0.3, 0.0)


CASES: dict[str, tuple[Any, Any]] = {
    "square": (sl.tasks.SingleIndex("square"), HERMITE.teacher_student("square")),
    "erf": (sl.tasks.SingleIndex("erf", noise=0.3), HERMITE.teacher_student("erf", noise=0.3)),
    "exponent 3": (
        sl.tasks.SingleIndex(third, student=lambda z: 0.2 * third(z)),
        HERMITE.teacher_student(third, lambda z: 0.2 * third(z)),
    ),
    "kink": (sl.tasks.SingleIndex(shifted), HERMITE.teacher_student(shifted)),
    "PCA": (sl.tasks.OnlinePCA(1.7), HERMITE.online_pca(1.7)),
    "mixture": (sl.tasks.MixtureLikelihood(0.8), HERMITE.mixture_likelihood(0.8)),
    "even mixture": (sl.tasks.MixtureLikelihood(0.5), HERMITE.mixture_likelihood(0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_drift_and_risk(name: str) -> None:
    """dm/dt = −(1 − m²) φ'(m) without corrector, φ the risk of the engine, and not half of it."""
    task, loss = CASES[name]
    limit = sl.effective_dynamics(task, rtol=1e-7)
    for m in (0.1, 0.8):
        state = {"M": [[m]], "R": [[1 - m**2]]}
        drift = -float(limit.population_drift(state)["M"][0, 0])
        expected = -(1 - m**2) * float(loss.slope(m).value)
        assert drift == pytest.approx(expected, abs=1e-6)
        assert abs(drift - expected / 2) > 1e-5  # control: that of the loss with a factor ½
        assert float(limit.risk(state)) == pytest.approx(float(loss.value(m).value), abs=1e-6)
