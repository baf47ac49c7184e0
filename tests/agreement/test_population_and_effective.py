"""With endless data the effective spectrum is that of the population matrix of the lemmas."""

from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.theory import population_spectra as population

ENDLESS = 1e8  # samples per dimension


def outliers(task: Any, state: Any, matrix: str, block: Any) -> np.ndarray:
    found = sl.spectra.effective(task, state, ENDLESS, matrix, block)
    return np.sort([o.value for o in found.outliers for _ in range(o.multiplicity)])


@pytest.mark.parametrize("block", [(0, 0), (0, 1)])
@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_softmax(matrix: str, block: Any) -> None:
    """Lemmas 3.1 to 3.3 of BGHJ23, corrected: the low rank on top of the identity."""
    weights = [0.5, 0.3, 0.2]
    task = sl.tasks.GaussianMixture(classes=3, weights=weights, precision=6.0)
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(3, 3))
    state = {"M": rng.normal(size=(3, 3)), "R": 0.3 * factor @ factor.T}
    function = {"hessian": population.softmax_hessian, "gradient": population.softmax_gradient}
    found = function[matrix](state["M"], state["R"], weights=weights, precision=6.0, block=block)
    # softmax sees differences of rows only: one of the six directions is in the bulk
    low_rank = np.linalg.eigvalsh(found.low_rank)
    expected = np.delete(low_rank, np.argmin(np.abs(low_rank))) + found.identity
    assert outliers(task, state, matrix, block) == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_xor_first_layer(matrix: str) -> None:
    """Lemmas 4.4 and 4.5: to leading order, with errors that fall as the precision grows."""
    four = np.array([[1, 0.3], [-0.8, 0.4], [0.2, 1], [0.3, -1.2]])
    state = {"v": np.array([1, 0.8, -1, -1.2]), "M": four, "R": 0.2 * np.eye(4)}
    function = {"hessian": population.xor_hessian, "gradient": population.xor_gradient}
    gaps = []
    for precision in (100.0, 400.0):
        task = sl.tasks.XorMixture(width=4, precision=precision)
        lemma = function[matrix](
            state["v"], four[:, 0], four[:, 1], state["R"], precision=precision, neuron=0
        )
        leading = outliers(task, state, matrix, 0)[-2:]
        gaps.append(np.max(np.abs(leading / np.sort(np.diag(lemma)) - 1)))
    assert gaps[0] < 0.25
    assert gaps[1] < 0.5 * gaps[0]


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_xor_readout(matrix: str) -> None:
    four = np.array([[1, 0.3], [-0.8, 0.4], [0.2, 1], [0.3, -1.2]])
    v = np.array([1, 0.8, -1, -1.2])
    names = {"hessian": population.xor_readout_hessian, "gradient": population.xor_readout_gradient}
    lemma = np.linalg.eigvalsh(names[matrix](v, four[:, 0], four[:, 1]))
    gaps = []
    for precision in (100.0, 400.0):
        task = sl.tasks.XorMixture(width=4, precision=precision)
        state = {"v": v, "M": four, "R": 0.2 * np.eye(4)}
        found = np.sort(sl.spectra.effective(task, state, ENDLESS, matrix, "vv").eigenvalues)
        gaps.append(np.max(np.abs(found - lemma)))
    assert gaps[1] < 0.5 * gaps[0] < 0.05
