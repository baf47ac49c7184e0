"""What ``sgdlimits predict escape`` computes, measures, prints and draws."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table
from scipy.stats import kstest

import sgdlimits as sl
from sgdlimits.cli.printing import print_json
from sgdlimits.experiments.catalogue._retrieval import excess

TAILS = (0.1, 0.9)
LAST = 0.999  # SGD is watched for twice as long as this part of runs should need
# A mean agrees within so many standard errors and this part of it: a tolerance of the comparison.
# What the prediction leaves out is of the order of the square of ``slowing``, below 0.1 % for steps
# up to the reliable one, and half of ``slowing`` itself where runs exit before 1/ω_Q, 1.5 % there.
ERRORS, SHARE = 3.0, 0.03
OUTSIDE = 0.1  # ``slowing`` from which on the prediction is said not to hold
POINTS = 400  # of a curve

Survival = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Row:
    """One prediction of the number of samples until exit."""

    name: str
    about: str
    mean: float
    quantiles: tuple[float, float] | None  # none where it is one number
    survival: Survival | None  # of numbers of samples


@dataclass(frozen=True)
class Prediction:
    """What theory says of one setting."""

    task: sl.tasks.PhaseRetrieval
    dim: int
    step: float
    threshold: float
    fastest_step: float  # as dim → ∞
    reliable_step: float
    trapping_step: float
    largest_step: float
    gain: float
    slowing: float  # of growth by finite dim, a part of it
    rows: list[Row]
    event: Any
    error: float  # of the mean in the last row

    @property
    def best(self) -> Row:
        """The row that SGD is compared with."""
        return self.rows[-1]


@dataclass(frozen=True)
class Measured:
    """What SGD does."""

    passage: xr.Dataset
    mean: float
    error: float
    quantiles: tuple[float, float]
    censored: int
    predicted: float  # the mean
    allowed: float  # distance between both means
    p_value: float  # of the predicted law

    @property
    def agrees(self) -> bool:
        """Whether all runs escape, with the mean that was predicted."""
        return not self.censored and abs(self.mean - self.predicted) <= self.allowed


def predict(
    dim: int, width: int, noise: float, step: float | None, threshold: float, *, seed: int
) -> Prediction:
    """Closed forms of AKLS23, and the escape by the limit.

    Args:
        dim: d.
        width: p.
        noise: Δ.
        step: γ, or None for the reliable one, which is the fastest where dim is large enough.
        threshold: T.
        seed: of the directions of escape.
    """
    retrieval: Any = sl.theory.phase_retrieval
    fastest = retrieval.fastest_step(width, noise)
    largest = retrieval.largest_step(noise, width)
    reliable = retrieval.reliable_step(dim, width, noise)
    gamma = reliable if step is None else step
    options = {"step": gamma, "noise": noise, "threshold": threshold, "unit": "samples"}
    annealed = retrieval.exit_time(dim, width, average="annealed", **options)
    rows = [Row("annealed", "from one mean start", float(annealed), None, None)]
    for name, about, words in (
        ("quenched", "over random starts, without SGD's noise", {"average": "quenched"}),
        ("diffusive, m = 0", "driven by SGD's noise alone", {"average": "diffusive"}),
        (
            "diffusive",
            "both, growth linear up to the threshold",
            {"average": "diffusive", "start": "random"},
        ),
    ):
        law = retrieval.exit_law(dim, width, **words, **options)
        low, high = law.quantile(list(TAILS))
        rows.append(Row(name, about, float(law.mean), (low, high), _closed_form(law)))
    task = sl.tasks.PhaseRetrieval(width=width, noise=noise)
    limit = sl.effective_dynamics(task, step=gamma)
    level = noise / 2 + (1 - threshold) * (1 + 1 / width)
    flat = {"M": np.zeros((width, 1)), "R": np.eye(width)}
    whole = limit.escape(flat).exit_time(dim, ("risk", "<", level), seed=seed)
    slowing = retrieval.growth_slowing(width, step=gamma, noise=noise) / dim
    scale = dim / gamma * (1 + slowing)
    ends = (whole.quantile(TAILS[0]) * scale, whole.quantile(TAILS[1]) * scale)

    def survival(samples: np.ndarray) -> np.ndarray:
        return whole.survival(samples / scale)

    about = "both, growth by the limit's flow and slowed by finite dim"
    rows.append(Row("nonlinear", about, whole.mean * scale, ends, survival))
    used, best = (c * retrieval.growth_rate(width, c, noise) for c in (gamma, fastest))
    event = (excess, "<", level - noise / 2)
    return Prediction(
        task,
        dim,
        gamma,
        threshold,
        fastest,
        reliable,
        retrieval.trapping_step(width, noise),
        largest,
        best / used,
        slowing,
        rows,
        event,
        whole.error * scale,
    )


def _closed_form(law: Any) -> Survival:
    return lambda samples: 1 - law.cdf(samples)


def measure(prediction: Prediction, *, runs: int, seed: int) -> Measured:
    """First passage of the exact chain from random starts."""
    best, scale = prediction.best, prediction.dim / prediction.step
    longest = 2 * _last(best)
    passage = sl.first_passage(
        prediction.task,
        prediction.event,
        prediction.dim,
        runs,
        longest / scale,
        step=prediction.step,
        seed=seed,
    )
    samples = passage.time.values * scale
    error = float(samples.std(ddof=1) / runs**0.5)
    low, high = (float(np.quantile(samples, part)) for part in TAILS)
    survival: Any = best.survival
    return Measured(
        passage=passage,
        mean=float(samples.mean()),
        error=error,
        quantiles=(low, high),
        censored=int(passage.censored.sum()),
        predicted=best.mean,
        allowed=ERRORS * float(np.hypot(error, prediction.error)) + SHARE * best.mean,
        p_value=float(kstest(samples, lambda x: 1 - survival(x)).pvalue),
    )


def _last(row: Row) -> float:
    """The number of samples after which nearly all runs are through."""
    survival: Any = row.survival
    time = row.mean
    while survival(np.array([time]))[0] > 1 - LAST:
        time *= 1.1
    return time


# --- what is shown ------------------------------------------------------------------------------


def print_for_machines(prediction: Prediction, measured: Measured | None) -> None:
    """Numbers of samples, steps, and the verdict."""
    found: dict[str, Any] = {
        "dim": prediction.dim,
        "width": prediction.task.width,
        "noise": float(prediction.task.noise),
        "step": prediction.step,
        "threshold": prediction.threshold,
        "samples": {
            row.name: {"mean": row.mean} | ({} if row.quantiles is None else _named(row.quantiles))
            for row in prediction.rows
        },
        "fastest_step": prediction.fastest_step,
        "reliable_step": prediction.reliable_step,
        "trapping_step": prediction.trapping_step,
        "slowing": prediction.slowing,
        "gain_of_fastest_step": prediction.gain,
        "largest_step": prediction.largest_step,
    }
    if measured is not None:
        found["check"] = {
            "runs": measured.passage.sizes["run"],
            "mean": measured.mean,
            "error": measured.error,
            **_named(measured.quantiles),
            "not_escaped": measured.censored,
            "predicted": measured.predicted,
            "allowed": measured.allowed,
            "p_value": measured.p_value,
            "agrees": measured.agrees,
        }
    print_json(found)


def _named(quantiles: tuple[float, float]) -> dict[str, float]:
    return {"quantile_10": quantiles[0], "quantile_90": quantiles[1]}


def print_for_people(prediction: Prediction, measured: Measured | None) -> None:
    """A table of numbers of samples, and sentences on steps and the verdict."""
    console = Console(highlight=False)
    console.print(f"samples until {_words(prediction)}", markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("mean", "10 %", "90 %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in prediction.rows:
        table.add_row(row.name, *_shown(row.mean, row.quantiles), row.about)
    if measured is not None:
        runs = measured.passage.sizes["run"]
        mean, *tails = _shown(measured.mean, measured.quantiles)
        table.add_row("SGD", mean, *tails, f"{runs} runs, mean ± {measured.error:,.0f}")
    console.print(table)
    fastest, largest = prediction.fastest_step, prediction.largest_step
    where = "" if prediction.reliable_step == fastest else "as dim → ∞ "
    gain = (
        f"{where}which this is"
        if np.isclose(fastest, prediction.step)
        else f"{where}with {prediction.gain:.3g} times fewer samples than {prediction.step:.4g}"
    )
    console.print(f"fastest step: {fastest:.4g}, {gain}", markup=False)
    for line in _warnings(prediction):
        console.print(line, markup=False)
    console.print(f"largest step that learns: below {largest:.4g}", markup=False)
    if measured is not None:
        console.print(_verdict(measured), markup=False)


def _warnings(prediction: Prediction) -> list[str]:
    """Where finite dim makes the fastest step a bad choice, and where no formula holds."""
    told = []
    dim, step, slowing = prediction.dim, prediction.step, prediction.slowing
    reliable, trapping = prediction.reliable_step, prediction.trapping_step
    if reliable < prediction.fastest_step:
        told.append(
            f"reliable step at dim {dim:,}: {reliable:.4g}; beyond it neurons disturb one another "
            "more than these numbers allow for"
        )
    if slowing > OUTSIDE:
        told.append(
            f"step {step:.4g} is too large for dim {dim:,}: finite dim slows growth by "
            f"{slowing:.0%} to first order, no row holds, and all runs may be trapped"
        )
    if step >= trapping and prediction.task.width > 1:
        told.append(
            f"from step {trapping:.4g} on runs whose neurons align are trapped for good, the fewer "
            "the larger dim"
        )
    return told


def _words(prediction: Prediction) -> str:
    p, noise = prediction.task.width, float(prediction.task.noise)
    return (
        f"the risk has lost {100 * prediction.threshold:g} % of its excess: "
        f"dim {prediction.dim:,}, width {p}, noise {noise:g}, step {prediction.step:.4g}"
    )


def _shown(mean: float, quantiles: tuple[float, float] | None) -> tuple[str, str, str]:
    low, high = ("", "") if quantiles is None else (f"{value:,.0f}" for value in quantiles)
    return f"{mean:,.0f}", low, high


def _verdict(measured: Measured) -> str:
    away = measured.mean / measured.predicted - 1
    told = (
        f"its mean is {abs(away):.1%} {'above' if away > 0 else 'below'} the nonlinear prediction "
        f"({measured.allowed / measured.predicted:.1%} is allowed); the law has p = "
        f"{measured.p_value:.2g}"
    )
    if measured.censored:
        told += (
            f"; {measured.censored} of {measured.passage.sizes['run']} runs have not escaped after "
            "twice the time in which all should have, and count as escaping then"
        )
    return f"SGD {'agrees' if measured.agrees else 'does not agree'}: {told}"


def draw(prediction: Prediction, measured: Measured | None, path: Path) -> None:
    """The part of runs that have not escaped, over numbers of samples."""
    figure, panels = sl.plot.panels(1, 1, width=6.8, height=4.4)
    panel, scale = panels[0, 0], prediction.dim / prediction.step
    end = max(_last(row) for row in prediction.rows if row.survival is not None)
    samples = np.linspace(0, end, POINTS)
    looks = {"quenched": ("C2", "--"), "diffusive": ("C1", "-."), "nonlinear": ("k", "-")}
    if measured is not None:
        label = f"SGD, {measured.passage.sizes['run']} runs"
        sl.plot.survival(_in_samples(measured.passage, scale), label=label, axes=panel)
    for row in prediction.rows:
        if row.name in looks and row.survival is not None:
            colour, line = looks[row.name]
            label = f"{row.name}, mean {row.mean:,.0f}"
            panel.plot(samples, row.survival(samples), line, color=colour, label=label, zorder=4)
    annealed = prediction.rows[0].mean
    panel.axvline(annealed, color="C4", ls=":", lw=1.4, label=f"annealed, {annealed:,.0f}")
    panel.set(xlim=(0, end), ylim=(-0.02, 1.04), xlabel="samples")
    panel.set_ylabel("part of runs that have not escaped", fontsize="medium")
    panel.set_title(_words(prediction), fontsize="small")
    sl.plot.save(sl.plot.legend_below(figure, 3), path)


def _in_samples(passage: xr.Dataset, scale: float) -> xr.Dataset:
    return passage.assign(time=passage.time * scale)
