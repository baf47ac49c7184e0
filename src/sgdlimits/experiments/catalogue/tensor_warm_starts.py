"""Tensor PCA from warm starts: below the overlap m† of a saddle they fail, above they succeed."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SHARES = (0.4, 1.6)  # warm starts on the two sides of m†, in units of m†
SHOWN = 6  # runs in a picture from each side
OFFSETS = np.linspace(-2, 2, 9)  # starts next to m†, in units of the noise that decides


class Parameters(Settings):
    """Orders of the tensor, the signal, and how many runs start where."""

    orders: tuple[int, ...] = setting((3, 4), "orders k of the tensor", least=3, most=5)
    excess: float = setting(1.3, "signal-to-noise ratio in units of its critical value", least=1.1)
    dim: int = setting(2000, "dimension n", least=1000)
    runs: int = setting(256, "independent runs of SGD from each start", least=32)
    time: float = setting(3.0, "duration, in units of dim samples", least=2)


def compute(p: Parameters, seed: int) -> Data:
    """Rest points by search; SGD from both sides of m† and from its microscopic neighbourhood."""
    data = {}
    m, r2 = (x.ravel() for x in np.meshgrid(np.linspace(-2, 2, 11), [0.5, 1.0]))
    for order in p.orders:
        snr, dagger, _ = _known(p, order)
        task = sl.tasks.SpikedTensor(order=order, snr=snr)
        limit = sl.effective_dynamics(task)
        points = [point.state for point in limit.fixed_points(init={"m": m, "r2": r2})]
        data[f"rest_{order}"] = xr.Dataset(
            {name: ("point", [float(point[name]) for point in points]) for name in ("m", "r2")}
        )
        saddle = {"m": dagger, "r2": 1.0}
        noise = _deciding_noise(limit.jacobian(saddle), limit.diffusion(saddle))
        data[f"saddle_{order}"] = xr.Dataset({"noise": noise})
        for kind, starts in (
            ("warm", dagger * np.array(SHARES)),
            ("near", dagger + OFFSETS * noise / np.sqrt(p.dim)),
        ):
            overlap = np.repeat(starts, p.runs)
            init = {"m": overlap, "r2": np.ones_like(overlap)}
            data[f"{kind}_{order}"] = sl.simulate(
                task,
                dim=p.dim,
                runs=len(overlap),
                time=p.time,
                seed=seed + order,
                init=init,
                points=201 if kind == "warm" else 2,
            )
    return data


def _known(p: Parameters, order: int) -> tuple[float, float, float]:
    """λ, m† and m⋆."""
    snr = p.excess * sl.theory.spiked_tensor.critical_snr(order)
    return snr, *sl.theory.spiked_tensor.overlaps(order, snr)


def _deciding_noise(drift: np.ndarray, diffusion: np.ndarray) -> float:
    """Standard deviation, in √n·m, of the noise that decides on which side of a saddle a run ends.

    Along the left eigenvector l of the growing rate a, x = √n·(u − u†) becomes e^{at}·(l·x + ξ),
    where ξ is Gaussian with variance l·Σl/2a.
    """
    rates, vectors = np.linalg.eig(drift.T)
    left = vectors[:, np.argmax(rates)] / vectors[0, np.argmax(rates)]
    return float(np.sqrt(left @ diffusion @ left / (2 * np.max(rates))))


def _learned(p: Parameters, data: Data, kind: str, order: int) -> np.ndarray:
    """Whether each run ends near m⋆, one row for each start."""
    star = _known(p, order)[2]
    ends = data[f"{kind}_{order}"].m.values[:, -1]
    return np.reshape(abs(ends - star) < star / 2, (-1, p.runs))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Rest points against closed forms; where warm starts end; who decides next to m†."""
    found, outcomes = [], []
    for order in p.orders:
        rest = data[f"rest_{order}"]
        exact = sl.theory.spiked_tensor.fixed_points(order, _known(p, order)[0])
        apart = [
            np.hypot(rest.m - point.overlap, rest.r2 - point.radius_squared).min()
            for point in exact
        ]
        name = f"distance of rest points by search from closed forms, k = {order}"
        found.append(checks.exact(name, max(apart), 0.0, 1e-6, note=f"{len(exact)} points"))
        outcomes.append(_learned(p, data, "warm", order))
    lost, learned = np.concatenate(outcomes, axis=1)
    for word, hits, expected in (("below", lost, 0.0), ("above", learned, 1.0)):
        name = f"share of starts {word} m† that learn, all k"
        found.append(checks.proportion(name, int(hits.sum()), hits.size, expected))
    for order in p.orders:
        near = _learned(p, data, "near", order)
        # on both sides, so that the first correction in 1/√n, which favours one, cancels
        stayed = near[OFFSETS == 1].sum() + (~near[OFFSETS == -1]).sum()
        name = f"share that ends on its side of m† from one s.d. away, k = {order}"
        found.append(checks.proportion(name, int(stayed), 2 * p.runs, float(stats.norm.cdf(1))))
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """Portraits with warm starts; below, the probability to learn across m†."""
    figure, panels = picture.panels(2, len(p.orders), height=3.4)
    for (upper, lower), order in zip(panels.T, p.orders, strict=True):
        snr, _, star = _known(p, order)
        limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=order, snr=snr))
        sl.plot.portrait(
            limit,
            "m",
            "r2",
            x_range=(-0.15 * star, 1.25 * star),
            y_range=(0.7, 1.3),
            fixed_points=False,
            axes=upper,
            points=61,
        )
        _draw_runs(upper, p, data[f"warm_{order}"])
        for point in sl.theory.spiked_tensor.fixed_points(order, snr):
            if point.radius_squared > 0 and point.overlap >= 0:
                picture.rest_point(upper, point.overlap, point.radius_squared, stable=point.stable)
        upper.set_title(f"k = {order}, λ = {snr:.3g}")
        _draw_probability(lower, p, data, order)
    picture.legend(figure, panels, columns=3 if len(p.orders) > 1 else 1)
    return figure


def _draw_runs(panel: Axes, p: Parameters, runs: xr.Dataset) -> None:
    for first, colour, word in ((0, "purple", "below"), (p.runs, "blue", "above")):
        few = runs.isel(run=slice(first, first + SHOWN))
        shade = sl.plot.style.PALETTE[colour]
        panel.plot(few.m.T, few.r2.T, color=shade, alpha=0.5, lw=0.6)
        label = f"{SHOWN} runs of SGD that start {word} $m_\\dagger$"
        panel.plot(few.m[:, -1], few.r2[:, -1], ".", color=shade, ms=7, label=label)


def _draw_probability(panel: Axes, p: Parameters, data: Data, order: int) -> None:
    noise = float(data[f"saddle_{order}"].noise)
    hits = _learned(p, data, "near", order).sum(axis=1)
    interval = [stats.binomtest(int(hit), p.runs).proportion_ci(0.95) for hit in hits]
    errors = [hits / p.runs - [i.low for i in interval], [i.high for i in interval] - hits / p.runs]
    label = f"share of {p.runs} runs from each start, 95 % interval"
    colour = sl.plot.style.SIMULATION
    panel.errorbar(noise * OFFSETS, hits / p.runs, errors, fmt="o", color=colour, ms=4, label=label)
    x = np.linspace(-2.5, 2.5, 201)
    panel.plot(noise * x, stats.norm.cdf(x), "k", label=r"diffusive limit at $(m_\dagger, 1)$")
    panel.set(
        xlabel=r"start: $\sqrt{n}\,(m - m_\dagger)$", ylabel=r"probability to reach $m_\star$"
    )


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Prop. 3.2, Remark 3",
    claim="Tensor PCA above λ_c: warm starts with m < m† fail, with m > m† they reach m⋆.",
    parameters=Parameters,
    tiny={"orders": (3,), "dim": 1000, "runs": 48, "time": 2.0},
    quick={"runs": 128},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)
