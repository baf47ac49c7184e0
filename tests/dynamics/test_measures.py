"""Risk, error and metrics of one's own, against fresh samples in plain NumPy and closed forms."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, logsumexp
from scipy.stats import norm

import sgdlimits as sl
from sgdlimits.tasks import MultiIndexFamily, Task
from tests.cases import hinge_network
from tests.compilations import compilations

SAMPLES = 10**6


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Samples of a task, as a network sees them: along the last axis."""

    component: np.ndarray
    anchors: np.ndarray
    fields: np.ndarray
    noise: np.ndarray


def draw(task: MultiIndexFamily, state: dict[str, np.ndarray], count: int, seed: int) -> Drawn:
    rng, r, K = np.random.default_rng(seed), len(task.anchors), task.width
    component = rng.choice(len(task.weights), size=count, p=task.weights)
    spread = np.linalg.cholesky(task.gram / task.precision + task.spike)
    anchors = (task.means @ task.gram)[component].T + spread @ rng.normal(size=(r, count))
    values, vectors = np.linalg.eigh(state["R"] / task.precision)
    across = vectors * np.sqrt(np.maximum(values, 0)) @ rng.normal(size=(K, count))
    fields = state["M"] @ np.linalg.solve(task.gram, anchors) + across
    return Drawn(component, anchors, fields, rng.normal(size=count))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Any] = {
    "erf": lambda x: erf(x / 2**0.5),
    "relu": relu,
    "square": np.square,
    "tanh": np.tanh,
}


def classifier(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Losses and mistakes of σ(v·relu(s))."""
    h, y = state["v"] @ relu(seen.fields), task.labels[seen.component]
    return np.logaddexp(0, h) - y * h, (h > 0) != (y == 1)


def softmax(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, np.ndarray]:
    s, y = seen.fields, seen.component
    loss = logsumexp(s, axis=0) - np.take_along_axis(s, y[None], 0)[0]
    return loss, np.argmax(s, axis=0) != y


def committees(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, None]:
    unit, r = ACTIVATIONS[task.activation], len(task.anchors)
    teacher = ACTIVATIONS[task.teacher_activation or task.activation]
    K, T = (task.width, r) if task.scale == "mean" else (1, 1)
    b = np.ones(r) if task.teacher_readout is None else task.teacher_readout
    y = b @ teacher(seen.anchors) / T + task.noise**0.5 * seen.noise
    f = state.get("v", np.ones(task.width)) @ unit(seen.fields) / K
    return (y - f) ** 2 / 2, None


def retrieval(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, None]:
    f = state.get("v", np.ones(task.width)) @ seen.fields**2 / task.width
    return (seen.anchors[0] ** 2 + task.noise**0.5 * seen.noise - f) ** 2 / 2, None


def single(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, None]:
    y = ACTIVATIONS[task.link](seen.anchors[0]) + task.noise**0.5 * seen.noise
    return (y - ACTIVATIONS[task.student](seen.fields[0])) ** 2, None


def component_analysis(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, None]:
    return -(seen.fields[0] ** 2), None


def likelihood(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, None]:
    shift = np.log(task.weight / (1 - task.weight)) / 2
    return -np.log(np.cosh(seen.fields[0] + shift)), None


def hinge(task: Any, state: Any, seen: Drawn) -> tuple[np.ndarray, np.ndarray]:
    h, y = state["v"] @ np.tanh(seen.fields), task.labels[seen.component]
    return relu(1 - y * h), np.sign(h) != y


NETWORKS: list[tuple[Task, Any]] = [
    (sl.tasks.BinaryMixture(precision=4.0, ridge=0.05), classifier),
    (sl.tasks.XorMixture(precision=4.0), classifier),
    (
        sl.tasks.GaussianMixture(
            weights=[0.5, 0.3, 0.2],
            means_gram=[[1.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 0.8]],
            precision=3.0,
        ),
        softmax,
    ),
    (
        sl.tasks.TeacherStudent(
            noise=0.1, teacher_gram=[[1.0, 0.4], [0.4, 1.0]], scale="sum", readout="trained"
        ),
        committees,
    ),
    (sl.tasks.TeacherStudent(activation="relu", noise=0.2, teacher_readout=[2, -1]), committees),
    (
        sl.tasks.TeacherStudent(
            activation="tanh", student_width=1, teacher_activation="erf", teacher_readout=[2, -1]
        ),
        committees,
    ),
    (sl.tasks.PhaseRetrieval(width=2, noise=0.3), retrieval),
    (sl.tasks.PhaseRetrieval(noise=0.1, spherical=False, readout="trained"), retrieval),
    (sl.tasks.SingleIndex("tanh", student="erf", noise=0.1), single),
    (sl.tasks.SingleIndex("relu", spherical=False), single),
    (sl.tasks.OnlinePCA(2.0), component_analysis),
    (sl.tasks.MixtureLikelihood(0.3), likelihood),
    (hinge_network().replace(decide=lambda s, v: jnp.sign(jnp.sum(v * jnp.tanh(s)))), hinge),
]


@pytest.mark.parametrize(("task", "plain"), NETWORKS, ids=lambda x: type(x).__name__)
def test_fresh_samples(task: MultiIndexFamily, plain: Any) -> None:
    """Generalisation is exact; that of another state is told apart."""
    limit = sl.effective_dynamics(task)
    state = task.random_state(task.least_dim + 3, seed=3)
    other = task.random_state(task.least_dim + 3, seed=4)
    losses, mistakes = plain(task, state, draw(task, state, SAMPLES, seed=0))
    measures = [(limit.risk, losses)]
    if mistakes is not None:
        measures.append((limit.error, mistakes.astype(float)))
    else:
        with pytest.raises(sl.InputError, match=r"has no decision rule"):
            limit.error(state)
    for measure, values in measures:
        found, chance = measure(state), values.std() / SAMPLES**0.5
        assert abs(found.value - values.mean()) < 4 * (chance + found.error)
        assert found.error < 2e-3 * max(1.0, abs(found.value))
        wrong = measure(other)
        assert abs(wrong.value - values.mean()) > 4 * (chance + wrong.error)


# --- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task",
    [
        sl.tasks.TeacherStudent(noise=0.1, teacher_gram=[[1.0, 0.4], [0.4, 1.0]]),
        sl.tasks.TeacherStudent(activation="relu", teacher_width=1, scale="sum"),
        sl.tasks.PhaseRetrieval(width=2, noise=0.3, readout="trained"),
        sl.tasks.SingleIndex("relu", noise=0.2),
    ],
    ids=repr,
)
def test_closed_forms_against_quadrature(task: MultiIndexFamily) -> None:
    """The same loss, handed over as a metric, is integrated by a rule."""
    limit = sl.effective_dynamics(task, rtol=1e-7)
    for seed in (0, 1):
        state = task.random_state(8, seed)
        exact, found = limit.risk(state), limit.measure(state, task.loss)
        assert exact.error == 0.0 < found.error
        assert abs(exact.value - found.value) < 1e-6 * exact.value
        assert abs(exact.value * (1 + 1e-5) - found.value) > 3 * found.error


def test_linear_committee() -> None:
    """½‖w⋆ − Σ w_i/K‖², of a task that does not say that it is linear."""

    def loss(s: Any, v: Any, y: Any) -> Any:
        return (y - jnp.mean(s)) ** 2 / 2

    task = sl.tasks.MultiIndexTask(
        loss=loss, width=3, labels=lambda c, a, z: a[0] + 0.3 * z, kinks="none"
    )
    state = task.random_state(10, seed=0)
    M, Q = state["M"][:, 0], state["R"] + state["M"] @ state["M"].T
    exact = (1 - 2 * M.mean() + Q.mean() + 0.09) / 2
    found = sl.effective_dynamics(task).risk(state)
    assert abs(found.value - exact) < 1e-12
    assert found.error < 1e-9


def test_risks_that_papers_print() -> None:
    state = {"M": [[0.5], [-0.2]], "R": [[0.75, 0.1], [0.1, 0.96]]}
    retrieval = sl.effective_dynamics(sl.tasks.PhaseRetrieval(width=2, noise=0.3))
    gram = np.array(state["R"]) + np.outer(state["M"], state["M"])
    paper = sl.theory.phase_retrieval.risk([0.5, -0.2], gram, noise=0.3)
    assert abs(retrieval.risk(state).value - paper) < 1e-12
    tensor = sl.tasks.SpikedTensor(order=3, snr=2.0, ridge=0.4)
    found = sl.effective_dynamics(tensor).risk({"m": 0.5, "r2": 1.2})
    assert (found.value, found.error) == (1.45**3 - 4 * 0.5**3, 0.0)


def test_spiked_matrix_against_drawn_ones() -> None:
    """Up to E‖Y‖²: the difference of two risks does not depend on it."""
    task, n, rng = sl.tasks.SpikedTensor(snr=3.0, ridge=0.5), 6, np.random.default_rng(0)
    spike = np.eye(n)[0]
    x = np.array([[0.5, 0.8, 0, 0, 0, 0], [1.2, 0.1, -0.3, 0, 0, 0]])
    Y = 3.0 * np.outer(spike, spike) + rng.normal(size=(10**5, n, n))
    losses = ((Y[:, None] - x[:, :, None] * x[:, None]) ** 2).sum(axis=(2, 3))
    gap = losses[:, 1] - losses[:, 0]
    limit = sl.effective_dynamics(task)
    risks = [limit.risk({"m": row[0], "r2": row[1:] @ row[1:]}).value for row in x]
    distance = abs(risks[1] - risks[0] - gap.mean())
    assert distance < 4 * gap.std() / len(gap) ** 0.5 < 0.1 * abs(gap.mean())


BY_SIGN = sl.tasks.MultiIndexTask(
    loss=lambda s, v, y: jax.nn.softplus(-y * s[0]),
    means=[[1.0], [-1.0]],
    labels=[1.0, -1.0],
    decide=lambda s, v: jnp.sign(s[0]),
)


@pytest.mark.parametrize("precision", [0.5, 4.0])
def test_decisions_by_one_field(precision: float) -> None:
    """The sign of a Gaussian number, and the larger one of two, are right with probability Φ."""
    task = BY_SIGN.replace(precision=precision)
    found = sl.effective_dynamics(task).error({"M": [[0.8]], "R": [[0.5]]})
    exact = norm.cdf(-0.8 * (precision / (0.64 + 0.5)) ** 0.5)
    assert abs(found.value - exact) < 1e-6
    two = sl.tasks.GaussianMixture(classes=2, precision=precision)
    found = sl.effective_dynamics(two).error({"M": np.diag([0.8, 0.6]), "R": np.diag([0.5, 0.4])})
    variance = (0.8**2 + 0.6**2 + 0.9) / precision
    exact = (norm.cdf(-0.8 / variance**0.5) + norm.cdf(-0.6 / variance**0.5)) / 2
    assert abs(found.value - exact) < 1e-6


# --- metrics of one's own -----------------------------------------------------------------------


def apart(s: Any, v: Any, y: Any) -> Any:
    """Kinks where label and output are equal, noise included."""
    return jnp.abs(y - jnp.sum(jax.nn.relu(s)))


def close(s: Any, v: Any, y: Any) -> Any:
    """Jumps."""
    return jnp.abs(y - jnp.sum(jax.nn.relu(s))) < 0.5


@pytest.mark.parametrize("metric", [apart, close])
def test_own_metric_of_noisy_labels(metric: Any) -> None:
    task = sl.tasks.TeacherStudent(activation="relu", teacher_width=1, noise=0.2)
    limit, state = sl.effective_dynamics(task), task.random_state(6, seed=0)
    seen = draw(task, state, SAMPLES, seed=1)
    y = relu(seen.anchors[0]) + 0.2**0.5 * seen.noise
    gap = np.abs(y - relu(seen.fields).sum(axis=0))
    values = gap if metric is apart else gap < 0.5
    found, chance = limit.measure(state, metric), values.std() / SAMPLES**0.5
    assert found.name == metric.__name__
    assert abs(found.value - values.mean()) < 4 * (chance + found.error)
    assert found.error < 1e-3
    noiseless = np.abs(relu(seen.anchors[0]) - relu(seen.fields).sum(axis=0))
    other = noiseless if metric is apart else noiseless < 0.5
    assert abs(found.value - other.mean()) > 4 * (chance + found.error)


# --- where something is singular ----------------------------------------------------------------


@pytest.mark.parametrize("precision", [3.0, math.inf])
def test_networks_without_weights(precision: float) -> None:
    task = sl.tasks.XorMixture(precision=precision)
    nothing = {name: np.zeros(shape) for name, shape in task.shapes.items()}
    limit = sl.effective_dynamics(task)
    assert abs(limit.risk(nothing).value - math.log(2)) < 1e-12
    assert limit.error(nothing).value == 0.5
    classes = sl.tasks.GaussianMixture(weights=[0.5, 0.3, 0.2], precision=precision)
    nothing = {name: np.zeros(shape) for name, shape in classes.shapes.items()}
    assert sl.effective_dynamics(classes).error(nothing).value == 0.5  # ties go to the first


def test_without_noise_every_mean_counts() -> None:
    task = sl.tasks.BinaryMixture(precision=math.inf)
    limit = sl.effective_dynamics(task)
    state = {"v": [2.0, -1.0], "M": [[0.7], [-0.4]], "R": np.zeros((2, 2))}
    loss = (math.log1p(math.exp(-1.4)) + math.log1p(math.exp(-0.4))) / 2
    assert abs(limit.risk(state).value - loss) < 1e-12
    assert limit.error(state).value == 0.0
    assert limit.error(state | {"v": [-2.0, -1.0]}).value == 0.5


def test_rare_mistakes_are_not_said_to_be_impossible() -> None:
    """No node may meet what happens once in a million samples."""
    task = sl.tasks.GaussianMixture(precision=45.0)
    found = sl.effective_dynamics(task).error({"M": 2 * np.eye(3), "R": np.zeros((3, 3))})
    pair = norm.sf(2 * (45 / 8) ** 0.5)  # one wrong class against the right one; there are two
    assert 0 < found.error < 1e-5
    assert abs(found.value - 2 * pair) < 3 * found.error + pair**2


def test_as_many_nodes_as_are_given() -> None:
    task = sl.tasks.GaussianMixture(precision=2.0)
    state = task.random_state(10, seed=0)
    few, many = (sl.effective_dynamics(task, nodes=n).error(state) for n in (2**10, 2**14))
    fine = sl.effective_dynamics(task).error(state)
    assert abs(few.value - fine.value) < 4 * few.error
    assert abs(many.value - fine.value) < 4 * many.error
    assert few.error > 3 * many.error


def test_equal_neurons_tie() -> None:
    """The first one wins, as in NumPy: to break ties at random would be another error."""
    task = sl.tasks.GaussianMixture(weights=[0.5, 0.3, 0.2], precision=2.0)
    M = np.array([[1.0, 0.2, 0.1], [1.0, 0.2, 0.1], [0.1, 0.2, 1.0]])
    R = np.array([[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 1.0]])
    seen = draw(task, {"M": M, "R": R}, SAMPLES, seed=0)
    s = np.stack([seen.fields[0], seen.fields[0], seen.fields[2]])
    wrong = np.argmax(s, axis=0) != seen.component
    found = sl.effective_dynamics(task).error({"M": M, "R": R})
    chance = wrong.std() / SAMPLES**0.5
    assert abs(found.value - wrong.mean()) < 4 * (chance + found.error)
    second = np.where(np.argmax(s, axis=0) == 0, 1, 2) != seen.component
    assert abs(found.value - second.mean()) > 40 * (chance + found.error)


def test_huge_fields_do_not_overflow() -> None:
    """The loss of a sample that is far on the wrong side is its distance."""
    task = sl.tasks.BinaryMixture(width=1, precision=100.0)
    state = {"v": [-1e3], "M": [[1e3]], "R": [[1.0]]}
    found = sl.effective_dynamics(task).risk(state)
    # label 1: h = −10³ relu(s), s ~ N(10³, (10⁶ + 1)/100); label 0: s < 0 and log 2
    assert abs(found.value - (1e6 + math.log(2)) / 2) < 1e-6 * 5e5 + 3 * found.error
    assert found.error < 1.0


# --- along results ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def softmax_task() -> sl.tasks.GaussianMixture:
    return sl.tasks.GaussianMixture(precision=2.0)


def state_at(dataset: Any, run: int, index: int) -> dict[str, np.ndarray]:
    return sl.results.state(dataset, run=run, time=float(dataset.time[index]))


@pytest.mark.parametrize("metric", ["risk", "error", apart])
def test_along_a_simulation(softmax_task: Any, metric: Any) -> None:
    many = 5 if metric == "risk" else 2  # few states are what a program for one has room for
    runs = sl.simulate(softmax_task, dim=50, runs=many, time=3.0, points=4, seed=0)
    measured = sl.measure(softmax_task, runs, metric)
    name = metric if isinstance(metric, str) else "apart"
    assert measured[name].dims == ("run", "time")
    assert set(measured) == {*runs, name}
    assert measured.attrs == runs.attrs
    stated = measured[name].attrs[f"{name}_error"]
    limit = sl.effective_dynamics(softmax_task)
    for run, index in ((0, 0), (many // 2, 1), (many - 1, 3)):
        alone = limit.measure(state_at(runs, run, index), metric)
        assert abs(measured[name][run, index] - alone.value) < 5 * (stated + alone.error) + 1e-12
        assert abs(measured[name][run, index - 1] - alone.value) > 50 * (stated + alone.error)
    assert measured[name].equals(sl.measure(softmax_task, measured, metric)[name])
    assert sl.results.state(measured, run=1).keys() == runs[["M", "R"]].keys()


def test_along_solutions_and_paths(softmax_task: Any) -> None:
    limit = sl.effective_dynamics(softmax_task)
    start = softmax_task.random_state(50, seed=0)
    path = sl.measure(softmax_task, limit.solve(start, time=3.0, points=5))
    assert path.risk.dims == ("time",)
    assert np.all(np.diff(path.risk) < 0)
    paths = limit.sample_paths(start, dim=50, runs=3, time=1.0, points=3)
    assert sl.measure(softmax_task, paths).risk.dims == ("run", "time")
    both = sl.results.over(
        "step",
        [0.5, 1.0],
        lambda step: limit.solve(start, time=step, points=2).assign_coords(time=[0.0, 1.0]),
    )
    assert sl.measure(softmax_task, both).risk.dims == ("step", "time")
    ends = sl.measure(softmax_task, both.isel(time=-1)).risk
    np.testing.assert_allclose(ends, sl.measure(softmax_task, both).risk[:, -1], rtol=1e-6)


def test_runs_that_diverged_have_no_risk(softmax_task: Any) -> None:
    runs = sl.simulate(softmax_task, dim=50, runs=3, time=2.0, points=3, seed=0)
    runs.M.values[1, 1:] = np.inf
    risk = sl.measure(softmax_task, runs).risk
    assert np.isnan(risk).values.tolist() == [[False] * 3, [False, True, True], [False] * 3]
    runs.M.values[:] = np.nan
    assert np.all(np.isnan(sl.measure(softmax_task, runs).risk))


def test_how_sgd_moves_does_not_matter(softmax_task: Any) -> None:
    """Of slow momentum, the velocity is part of the state but not of the network."""
    state = softmax_task.random_state(50, seed=0)
    plain = sl.effective_dynamics(softmax_task).risk(state)
    for moves in (
        {"momentum": ("slow", 1.0)},
        {"normalised": True},
        {"step": [(0, 1.0), (1, 0.5)]},
    ):
        limit = sl.effective_dynamics(softmax_task, **moves)
        assert limit.risk(state) == plain
        if "momentum" in moves:
            path = sl.measure(softmax_task, limit.solve(state, time=1.0, points=2))
            assert path.risk[1] < path.risk[0]


def test_programs_serve_results_of_any_size(softmax_task: Any) -> None:
    def measured(runs: int, points: int) -> None:
        options: Any = {"dim": 50, "time": 1.0, "seed": 0}
        result = sl.simulate(softmax_task, runs=runs, points=points, **options)
        sl.measure(softmax_task, result, "risk")

    measured(3, 4)
    with compilations() as programs:
        measured(4, 6)
    assert not programs


def test_a_family_from_outside() -> None:
    from tests.families.two_variances import TwoVariances

    task = TwoVariances()
    runs = sl.simulate(task, dim=20, runs=2, time=1.0, points=2)
    gap = (runs.m - task.signal) ** 2 + runs.r2
    expected = (0.5 * gap.sel(block="narrow") + 2.0 * gap.sel(block="wide") + 0.1) / 2
    np.testing.assert_allclose(sl.measure(task, runs).risk, expected)
    with pytest.raises(sl.InputError, match=r"metric='error' .*of TwoVariances no mean is known"):
        sl.measure(task, runs, "error")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda s, v, y: s, r"metric returns shape \(3,\) for one sample.*scalar"),
        (lambda s, v, y: s[jnp.array(3)], r"metric is not allowed: width is 3, but metric looks"),
        (lambda s, v, y: np.tanh(s[0]), r"metric fails .*jax.numpy is needed"),
        ("accuracy", r"metric='accuracy' .*one of 'risk', 'error'"),
        (0.5, r"metric=0.5 .*'risk', 'error' or a function of \(fields, readout, label\)"),
    ],
)
def test_wrong_metrics(softmax_task: Any, metric: Any, message: str) -> None:
    state = softmax_task.random_state(20, seed=0)
    with pytest.raises(sl.InputError, match=message):
        sl.effective_dynamics(softmax_task).measure(state, metric)


def test_wrong_results(softmax_task: Any) -> None:
    runs = sl.simulate(softmax_task, dim=20, runs=2, time=1.0, points=2)

    def R(s: Any, v: Any, y: Any) -> Any:
        return s[0]

    for wrong, metric, message in (
        (runs.drop_vars("R"), "risk", r"dataset=\['M', .*must be a Dataset that holds M, R"),
        ({"M": 0.0}, "risk", r"dataset=\{'M': 0.0\} .*must be a Dataset"),
        (runs.isel(neuron=[0]), "risk", r"dataset\['M'\] with the sizes .*'neuron': 3"),
        (runs, R, r"metric=R is not allowed: the dataset has another R"),
    ):
        with pytest.raises(sl.InputError, match=message):
            sl.measure(softmax_task, wrong, metric)  # type: ignore[arg-type]
    assert sl.measure(softmax_task, runs.isel(run=[])).risk.shape == (0, 2)
    with pytest.raises(sl.InputError, match=r"task='xor' .*one of sgdlimits.tasks"):
        sl.measure("xor", runs)  # type: ignore[arg-type]
