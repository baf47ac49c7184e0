"""Readouts that move faster than weights: Hermite components are learned one after another."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

import sgdlimits as sl
from sgdlimits._types import Index, Real
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting

HALF = 0.5  # of a component: when it counts as learned
POINTS = 400
SGD_POINTS = 81


def link(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """he₁ + he₂, normalised Hermite polynomials of degrees 1 and 2."""
    return x + (x**2 - 1) / 2**0.5


def loss(fields: Float[Array, " K"], readout: Float[Array, " K"], label: Real) -> Float[Array, ""]:
    """½(y − f)² with f the mean of readouts times units."""
    return (label - jnp.mean(readout * link(fields))) ** 2 / 2


def label(
    component: Index,  # noqa: ARG001 - there is one
    anchors: Float[Array, " r"],
    noise: Real,  # noqa: ARG001 - labels have none
) -> Float[Array, ""]:
    """The link of one direction."""
    return link(anchors[0])


@experiment(
    paper="L23",
    figure="single-index models; BMZ23",
    claim="Readouts 1/ε times as fast: degree l is learned at the time ε^(1/(2l)) or later.",
    tiny={"ratios": (1e-5, 1e-6), "particles": 60, "width": 16, "dim": 200, "runs": 10},
    quick={"ratios": (1e-3, 1e-4, 1e-5, 1e-6), "particles": 60, "dim": 400, "runs": 10},
)
class ReadoutSequence(Settings):
    """Student and teacher he₁ + he₂ on the sphere; times are the slides', t/p.

    BMZ23 divide the readout's velocity by ε, where the slides print γ_a = εγ: then readouts hardly
    move, and times do not separate. From m = 0 and readouts uniform on (0, √3), of mean square 1,
    overlaps grow as m = √ε v sinh(τ/√ε), so that half of degree 1 is there at τ = ½√ε log(4/√ε) if
    it is alone. After it v ~ ε^(−1/4) and m ~ ε^(1/4), and degree 2 takes m/(vm) = ε^(1/4). SGD has
    the own term of a neuron besides, which draws its readout to zero at the rate 2/(pε): small for
    p ≫ ε^(−1/2) only.
    """

    ratios: tuple[float, ...] = setting(
        (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
        "ratios ε of both velocities, decreasing",
        above=0,
        most=0.1,
    )
    particles: int = setting(200, "particles of the mean field", least=20)
    ratio: float = setting(0.05, "ratio ε of SGD", above=0, most=0.1)
    width: int = setting(16, "number p of neurons of SGD", least=2)
    dim: int = setting(1000, "dimension d of SGD", least=50)
    step: float = setting(0.2, "step γ of SGD", above=0)
    runs: int = setting(20, "independent runs of SGD", least=10)

    def mean_field(self, ratio: float, readout_step: float) -> xr.Dataset:
        """Both components over time from overlaps of zero, until long after they are learned."""
        flow = sl.theory.mean_field.MeanField(
            activation=link,
            teacher_width=1,
            readout="trained",
            readout_step=readout_step,
            spherical=True,
            nodes=40,
        )
        v = _readouts(self.particles)
        init = {"M": np.zeros((len(v), 1)), "q": np.ones(len(v)), "v": v}
        last = 4 * ratio**0.25 if readout_step > 1 else 20.0
        times = np.append(0.0, np.geomspace(1e-3 * last, last, POINTS))
        return _components(flow.solve(init, times=times), "particle")

    def learned(self, ratio: float) -> xr.Dataset:
        """When each component is half there, with fast readouts and as the slides print it."""
        fast, printed = (self.mean_field(ratio, step) for step in (1 / ratio, ratio))
        found = {"first": _half(fast.first), "second": _half(fast.second)}
        return xr.Dataset({**found, "printed": _half(printed.first)})

    def sgd(self, seed: int) -> xr.Dataset:
        """Both components along SGD from random weights on the sphere."""
        task = sl.tasks.MultiIndexTask(
            loss=loss,
            width=self.width,
            anchors=["teacher"],
            labels=label,
            readout="trained",
            spherical=True,
            kinks="none",
        )
        last = self.width * 1.5 * self.ratio**0.25
        options: Any = {"step": self.step, "readout_step": 1 / self.ratio, "seed": seed}
        runs = range(self.runs)
        init = task.random_state(self.dim, seed, runs=runs, readout=_readouts(self.width))
        size: Any = {"runs": self.runs, "time": last, "points": SGD_POINTS, "init": init}
        sgd = sl.simulate(task, self.dim, **size, **options)
        found = _components(sgd, "neuron")
        return found.assign_coords(time=sgd.time.values / self.width)

    def compute(self, seed: int) -> Data:
        """Learning times over ε, and components over time in SGD and in the mean field."""
        return {
            "learned": sl.results.over("ratio", self.ratios, self.learned),
            "sgd": self.sgd(seed),
            "mean_field": self.mean_field(self.ratio, 1 / self.ratio),
        }

    def check(self, data: Data) -> list[Check]:
        """The exponents in ε, the time of degree 1, the order in SGD."""
        times = data["learned"]
        e = times.ratio.values[-1]
        alone = np.sqrt(e) * np.log(4 / np.sqrt(e)) / 2
        last = times.isel(ratio=slice(-2, None))  # phases overlap where ε is not small
        per_log = last.first / np.log(4 / np.sqrt(last.ratio))
        sgd = data["sgd"]
        gaps = [_half(run.second) - _half(run.first) for _, run in sgd.groupby("run")]
        order = np.sign(np.ravel(gaps))
        exponents = {
            "exponent in ε of the time of degree 1, less its logarithm": (per_log, 0.5),
            "exponent in ε of the time from degree 1 to degree 2": (last.second - last.first, 0.25),
            "exponent of the time of degree 1 where γ_a = εγ as printed": (last.printed, 0.0),
        }
        return [
            *(
                checks.exact(name, checks.exponent(values, "ratio"), expected, 0.03)
                for name, (values, expected) in exponents.items()
            ),
            checks.exact("time of degree 1 over ½√ε log(4/√ε)", times.first[-1] / alone, 1.0, 0.05),
            checks.holds("degree 1 before degree 2 in most runs of SGD", np.mean(order > 0) > 0.5),
        ]

    def draw(self, data: Data) -> Figure:
        """Components over time on the left, learning times over ε on the right."""
        figure, ((left, right),) = sl.plot.panels(1, 2, width=5.0, height=3.6)
        wide, sgd, times = data["mean_field"], data["sgd"], data["learned"]
        for name, colour, degree in zip(("first", "second"), picture.COLOURS, (1, 2), strict=False):
            left.plot(wide.time, wide[name], color=colour, label=f"mean field, degree {degree}")
            words = f"SGD, degree {degree}: mean ± standard deviation"
            look: Any = {"color": colour, "label": words, "axes": left}
            sl.plot.band(sgd[name], spread="deviation", bars=True, **look)
            right.plot(times.ratio, times[name], "os"[degree - 1], color=colour, label="_")
        left.set(xlim=(0, float(sgd.time[-1])), xlabel="time $t/p$", ylabel="component learned")
        left.set_title(f"$\\epsilon = {self.ratio:g}$, $p = {self.width}$, $d = {self.dim}$")
        e = times.ratio.values
        first = np.sqrt(e) * np.log(4 / np.sqrt(e)) / 2
        second = float(times.second[-1]) * (e / e[-1]) ** 0.25
        right.plot(
            e, first, "k--", lw=1, label=r"$\frac{1}{2}\sqrt{\epsilon}\,\log(4/\sqrt{\epsilon})$"
        )
        right.plot(e, second, "k:", lw=1.3, label=r"$\epsilon^{1/4}$")
        right.plot(e, times.printed, "x", color="0.5", label=r"printed $\gamma_a = \epsilon\gamma$")
        right.set(xscale="log", yscale="log", xlabel=r"ratio $\epsilon$ of velocities")
        right.set(ylabel="time $t/p$ of half", title="when degrees are learned")
        return sl.plot.legend_below(figure, 4)


def _readouts(count: int) -> np.ndarray:
    """Evenly spread on (0, √3), and of mean square 1."""
    v = np.arange(count) + 0.5
    return np.asarray(v / np.sqrt(np.mean(v**2)))


def _components(path: xr.Dataset, over: str) -> xr.Dataset:
    """What the student has of the teacher's degrees 1 and 2: means of v m and of v m²."""
    m = path.M.isel(anchor=0, drop=True)
    return xr.Dataset({"first": (path.v * m).mean(over), "second": (path.v * m**2).mean(over)})


def _half(component: xr.DataArray) -> float:
    """The time at which a component first exceeds a half, between recorded ones; else NaN."""
    values, times = component.values.ravel(), component.time.values
    k = int(np.argmax(values > HALF))
    if values[k] <= HALF:
        return float("nan")
    share = (HALF - values[k - 1]) / (values[k] - values[k - 1]) if k else 0.0
    return float(times[k - 1] + share * (times[k] - times[k - 1])) if k else float(times[0])
