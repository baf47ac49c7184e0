"""Wrong input meets our own ValueError, in every parameter of every closed form."""

import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sgdlimits import theory

# For each parameter a value that is right for two neurons or classes, unless a model differs.
RIGHT: dict[str, Any] = {
    "activation": "erf",
    "bias": 0.1,
    "cross": np.eye(2),
    "cross_start": [0.0, 1.0],
    "depth": 2,
    "inputs": [[1.0, 0.5]],
    "jacobian": np.eye(2),
    "kernel": np.eye(2),
    "lipschitz": 0.1,
    "misfit": 1.0,
    "others": [[0.2, -1.0]],
    "angle": 0.5,
    "average": "quenched",
    "bandwidth": 0.5,
    "block": (0, 1),
    "ceiling": 1.0,
    "classes": 2,
    "constant": 1.0,
    "deviation": 0.1,
    "dim": 100,
    "end": 0.5,
    "exponent": 3,
    "extra": 0.1,
    "farthest": 1.0,
    "flow": theory.mean_field.MeanField(teacher_width=1, nodes=8),
    "features": [[1.0, 0.5], [0.2, -1.0]],
    "gram": np.eye(2),
    "init": theory.mean_field.start_density(
        dim=99, farthest=8.0, largest=8.0, overlap_cells=16, norm_cells=16
    ),
    "initial": 1.0,
    "link": "relu",
    "loss": theory.hermite.online_pca(1.0),
    "largest": 2.0,
    "height": 0.5,
    "high": 2.0,
    "interaction": np.eye(2),
    "inverse_temperature": 1.5,
    "kurtosis": 3.0,
    "labels": [1.0, -1.0],
    "low": 1.0,
    "matrix": np.eye(2),
    "means_gram": np.eye(2),
    "mu_overlaps": [0.1, 0.2],
    "neighbours": 3,
    "neuron": 0,
    "nodes": 64,
    "noise": 0.1,
    "norm_cells": 10,
    "normalised": True,
    "nu_overlaps": [0.1, 0.2],
    "order": 3,
    "orthogonal": np.eye(2),
    "overlap": 0.1,
    "overlap_cells": 10,
    "overlaps": [0.1, 0.2],
    "part": 0.5,
    "particles": 4,
    "point": theory.binary_mixture.QuarterRing(1, theory.binary_mixture.ring_radius_squared(0.1))
    .at(0.5)
    .readout,
    "points": 2,
    "precision": 2.0,
    "product": 0.5,
    "radius_squared": 1.0,
    "ratio": 0.5,
    "readout": [1.0, 1.0],
    "rate": 0.1,
    "residual": [1.0, 2.0],
    "ridge": 0.1,
    "samples": 50,
    "scaled_overlap": 1.0,
    "scaled_snr": 1.0,
    "scale": 1.0,
    "share": 0.5,
    "signal": 1.0,
    "smallest": 1.0,
    "snr": 4.0,
    "smoothness": 0.5,
    "spherical": True,
    "square_norm": 1.0,
    "start": None,
    "slowing": 0.03,
    "step": 0.05,
    "steps": [0, 10],
    "student": "erf",
    "step_exponent": 0.5,
    "student_gram": np.eye(2),
    "targets": [0.5, 2.0],
    "teacher_gram": np.eye(2),
    "threshold": 0.1,
    "time": 1.0,
    "unit": "time",
    "times": None,  # as time and points say
    "tolerance": 0.1,
    "transform": lambda z: 1 / (0.5 - z),
    "variance": 1.0,
    "watched": True,
    "weight": 0.5,
    "weights": [0.5, 0.5],
    "width": 2,
    "width_exponent": 0.5,
    "x": [1.0, 2.0],
    "z": 4.0,
}
MATRIX = {"overlaps": np.eye(2)}
SIDE = np.sqrt(theory.xor.ring_radius_squared(0.1) / 2)
RINGS = {"point": [SIDE, SIDE, -SIDE, -SIDE]}
TOKENS = {"points": [[1.0, 0.0], [-1.0, 0.0]], "start": 0.1, "times": [0.0, 1.0]}
DIFFERENT: dict[ModuleType, dict[str, Any]] = {
    theory.attention: TOKENS,
    theory.gaussian_mixture: MATRIX,
    theory.lazy: {"times": [0.0, 1.0]},
    theory.implicit_bias: {"start": [1.0, 2.0]},
    theory.ntk: {"start": [1.0, 2.0], "times": [0.0, 1.0]},
    theory.saad_solla: MATRIX,
    theory.population_spectra: MATRIX,
    theory.xor: RINGS,
}
# functions that want another value than others of their model
OWN: dict[str, dict[str, Any]] = {
    "climbing_barrier": {"snr": 0.01},
    "climbing_time": {"snr": 0.01},
}


def functions(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and name in getattr(module, "__all__", [name])
        and value.__module__.startswith(module.__name__)
    ]


CASES = [
    pytest.param(
        function,
        RIGHT | DIFFERENT.get(module, {}) | OWN.get(function.__name__, {}),
        name,
        id=f"{model}-{function.__name__}-{name}",
    )
    for model in theory.__all__
    for module in [getattr(theory, model)]
    for function in functions(module)
    for name in inspect.signature(function).parameters
]


def test_closed_forms_are_found() -> None:
    assert {case.values[2] for case in CASES} == set(RIGHT)


def taken(function: Callable[..., Any], right: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function among those that are right."""
    return {key: right[key] for key in inspect.signature(function).parameters}


@pytest.mark.parametrize(
    ("function", "right"),
    {
        case.values[0]: pytest.param(*case.values[:2], id=str(case.id).rpartition("-")[0])
        for case in CASES
    }.values(),
)
def test_right_values_are_allowed(function: Callable[..., Any], right: dict[str, Any]) -> None:
    """Once: what is refused below is refused for the one value that is changed."""
    function(**taken(function, right))


@pytest.mark.parametrize(("function", "right", "name"), CASES)
@pytest.mark.parametrize("wrong", ["x", [[1.0], [2.0, 3.0]], math.nan, {}, 1j], ids=repr)
def test_wrong_values_are_named(
    function: Callable[..., Any], right: dict[str, Any], name: str, wrong: Any
) -> None:
    if name == "z" and wrong == 1j:
        wrong = math.inf  # z is complex
    arguments = taken(function, right)
    with pytest.raises(ValueError, match=rf"^{name}(=| has shape ).* is not allowed: {name} must"):
        function(**arguments | {name: wrong})
