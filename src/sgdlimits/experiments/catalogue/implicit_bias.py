"""Gradient descent chooses: the separator of largest margin, the nearest interpolant."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY, DESCENT = sl.theory.implicit_bias, sl.lectures.descent
STARTS = {"from 0": (0.0, 0.0), "from (−3, 4)": (-3.0, 4.0), "from (4, 9)": (4.0, 9.0)}
LOSSES = ("logistic", "exponential")
BOUNDARIES = (0, 2, 4, 8)  # decades of the times at which the separating line is drawn
ROUNDING = 1e-6  # of the flow, whose tolerance is 1e-10
GAP = 0.3  # between the data and the line that labels them
PARAMETERS = 30  # of least squares
DISTANCES = (0.0, 5.0, 20.0)  # from 0, of the starts of least squares


@experiment(
    paper="J24",
    figure="Thm 4.7",
    claim="On separable data the flow is ŵ log t + w̃: its direction is that of the largest margin.",
    tiny={"steps": 2000, "rounds": 400},
    quick={"steps": 20_000},
)
class ImplicitBias(Settings):
    """Points in the plane, how long, and points for least squares."""

    samples: int = setting(16, "points in the plane", least=4)
    decades: int = setting(30, "the flow runs to time 10 to this power", least=12, most=200)
    steps: int = setting(200_000, "steps of gradient descent on the logistic loss", least=1000)
    rounds: int = setting(2000, "steps of gradient descent on least squares", least=100)
    equations: int = setting(10, "points of least squares with 30 parameters", least=2, most=20)

    def compute(self, seed: int) -> Data:
        """Flows of both losses from several starts; gradient descent; least squares."""
        X, y = DESCENT.separable_data(2, self.samples, gap=GAP, seed=seed)
        found, offset = THEORY.max_margin(X, y), THEORY.offset(X, y)
        times = np.logspace(-1, self.decades, 4 * self.decades + 5)
        compared = partial(compare, found.weights, offset, X[found.support])

        def flow(loss: str, start: str) -> xr.Dataset:
            return compared(
                DESCENT.gradient_flow(X, y, loss=loss, times=times, start=STARTS[start])
            )

        def flows(loss: str) -> xr.Dataset:
            return sl.results.over("start", list(STARTS), partial(flow, loss))

        steps = DESCENT.gradient_descent(X, y, loss="logistic", steps=self.steps)
        points = {
            "x": (("point", "coordinate"), X),
            "y": ("point", y),
            "support": ("point", np.isin(np.arange(self.samples), found.support)),
            "max_margin": ("coordinate", found.weights),
            "offset": ("coordinate", offset),
            "residual": found.residual,
            "power": THEORY.settling_power(X, y),
        }
        return {
            "points": xr.Dataset(points),
            "flows": sl.results.over("loss", LOSSES, flows),
            "descent": compared(steps.isel(time=slice(1, None))),
            "least_squares": self.least_squares(np.random.default_rng([seed, 1])),
        }

    def least_squares(self, rng: np.random.Generator) -> xr.Dataset:
        """Distances to the nearest interpolant, and to the one of least norm, from three starts."""
        A = rng.standard_normal((self.equations, PARAMETERS))
        b = rng.standard_normal(self.equations)

        def one(distance: float) -> xr.Dataset:
            start = rng.standard_normal(PARAMETERS)
            start *= distance / np.linalg.norm(start)
            path = DESCENT.gradient_descent(A, b, start=start, steps=self.rounds)
            targets = {
                "nearest": THEORY.nearest_interpolant(A, b, start),
                "least_norm": THEORY.nearest_interpolant(A, b),
            }
            apart = {
                name: ("step", np.linalg.norm(path.weights - target, axis=1))
                for name, target in targets.items()
            }
            return xr.Dataset(apart, {"step": np.round(path.time.values / path.attrs["step"])})

        return sl.results.over("distance", DISTANCES, one)

    def check(self, data: Data) -> list[Check]:
        """The rest w̃, the direction; the interpolant that is found from each start."""
        points, flows = data["points"], data["flows"]
        end = f"t = 1e{self.decades}"
        name = "max margin: violation of the optimality conditions"
        results = [checks.exact(name, points.residual, 0.0, 1e-9)]
        square = float(points.max_margin @ points.max_margin)
        expected = float(points.offset @ points.max_margin) / square
        power, half = float(points.power), self.decades // 2
        across = float(np.linalg.norm(points.offset - expected * points.max_margin))
        for loss, start in product(LOSSES, STARTS):
            path = flows.sel(loss=loss, start=start)
            middle = path.sel(time=10.0**half, method="nearest")
            last = path.isel(time=-1)
            allowed = 2 * 10 ** (power * (half - self.decades)) * float(middle.apart) + ROUNDING
            name = f"{loss} loss {start}, {end}: distance of the rest to w̃"
            said = f"twice that at 1e{half}, times t^(−p), p = {power:.4g}"
            results.append(checks.exact(name, last.apart, 0.0, allowed, note=said))
            name = f"{loss} loss {start}, {end}: ⟨w, ŵ⟩/‖ŵ‖² − log t"
            printed = expected + np.log(self.samples)  # w̃ without the 1/n of the loss
            length = np.sqrt(square)
            results.append(
                checks.exact(name, last.along, expected, allowed / length, printed=printed)
            )
            if points.support.sum() == 2:  # w̃ in all of the plane: its start does not matter
                name = f"{loss} loss {start}, {end}: angle between w and ŵ"
                reached = length * (np.log(float(last.time)) + expected)
                angle = np.arctan2(across, reached)
                results.append(checks.exact(name, last.angle, angle, 2 * allowed / reached))
        for distance in DISTANCES:
            left = data["least_squares"].nearest.sel(distance=distance).isel(step=-1)
            name = f"least squares from a distance of {distance:g}: to the nearest interpolant"
            results.append(checks.exact(name, left, 0.0, 1e-6))
        return results

    def draw(self, data: Data) -> Figure:
        """Points with lines; the rest; the angle; least squares."""
        figure, panels = sl.plot.panels(2, 2, width=5.2, height=3.7)
        (first, second), (third, fourth) = panels
        points, flows = data["points"], data["flows"]
        self.lines(first, points, flows.isel(loss=0, start=1))
        for panel, name in ((second, "along"), (third, "angle")):
            for number, ((start, colour), loss) in enumerate(
                product(picture.coloured(STARTS), LOSSES)
            ):
                path = flows[name].sel(start=start, loss=loss)
                label = f"flow {start}" if number % 2 == 0 else None
                panel.plot(path.time, path, color=colour, ls="-" if label else ":", label=label)
            steps = data["descent"]
            chosen = steps.isel(time=slice(None, None, 8))
            label = "gradient descent from 0"
            panel.plot(chosen.time, chosen[name], "kx", ms=5, label=label)
            panel.set(xscale="log", xlim=(0.1, None), xlabel="time $t$ (= step × steps)")
        square = float(points.max_margin @ points.max_margin)
        expected = float(points.offset @ points.max_margin) / square
        second.axhline(expected, color="k", ls="--", lw=1.2, label="theory")
        printed = expected + np.log(self.samples)
        second.axhline(printed, color="0.5", ls="-.", lw=1.2, label="theory as printed")
        second.set(title="length: a bounded rest", ylim=(expected - 2, printed + 4))
        losses = "solid: logistic loss\ndotted: exponential loss"
        second.text(
            0.97, 0.9, losses, transform=second.transAxes, color="0.3", ha="right", va="top"
        )
        second.set_ylabel(r"$\langle w,\hat w\rangle/\Vert\hat w\Vert^2-\log\,t$")
        if points.support.sum() == 2:
            late = flows.time.values[flows.time.values > np.exp(2 - expected)]
            across = float(np.linalg.norm(points.offset - expected * points.max_margin))
            reached = np.sqrt(square) * (np.log(late) + expected)
            third.plot(late, np.arctan2(across, reached), "k--", lw=1.2)
        third.set(yscale="log", title="direction: like 1/log t", ylabel=r"angle of $w$ to $\hat w$")
        least = data["least_squares"]
        for distance, colour in zip(DISTANCES, ("C4", "C5", "0.3"), strict=True):
            part = least.sel(distance=distance)
            label = rf"from $\Vert\theta_0\Vert={distance:g}$"
            fourth.plot(part.step + 1, part.nearest, color=colour, label=label)
            fourth.plot(part.step + 1, part.least_norm, color=colour, ls=":")
        fourth.set(xscale="log", yscale="log", ylim=(1e-12, None), xlabel="steps + 1")
        fourth.set(title="least squares: the nearest interpolant", ylabel="distance to interpolant")
        text = "solid: to the one nearest to the start\ndotted: to the one of least norm"
        fourth.text(0.03, 0.08, text, transform=fourth.transAxes, color="0.3")
        return sl.plot.legend_below(figure, 4)

    def lines(self, panel: Axes, points: xr.Dataset, flow: xr.Dataset) -> None:
        """The data, the lines that separate them over time, and the widest band between them."""
        for sign, colour in ((1.0, "C0"), (-1.0, "C1")):
            own = points.x.values[points.y.values == sign]
            panel.plot(*own.T, "o", color=colour, ms=5)
        held = points.x.values[points.support.values]
        look: Any = {"ms": 12, "markerfacecolor": "none", "color": "k", "label": "support vectors"}
        panel.plot(*held.T, "o", **look)
        reach = 1.1 * np.abs(points.x.values).max()
        ends = np.array([-3 * reach, 3 * reach])
        for number, decade in enumerate(BOUNDARIES):
            w = flow.weights.sel(time=10.0**decade, method="nearest").values
            panel.plot(
                *line(w, 0.0, ends), color="C3", lw=1.4, alpha=0.3 + 0.2 * number,
                label="$w(t)$, $t=1, 10^2, 10^4, 10^8$" if number == 3 else None,
            )  # fmt: skip
        best = points.max_margin.values
        panel.plot(*line(best, 0.0, ends), "k", label="largest margin")
        for side in (-1.0, 1.0):
            panel.plot(*line(best, side, ends), "k--", lw=0.8)
        panel.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$x_1$", ylabel="$x_2$")
        panel.set(title="the line turns to the widest band")


def compare(best: np.ndarray, offset: np.ndarray, held: np.ndarray, path: xr.Dataset) -> xr.Dataset:
    """A path beside ŵ log t + w̃: its rest along ŵ and in the span of support vectors, its angle."""
    w, size = path.weights.values, np.linalg.norm(best)
    rest = w - np.log(path.time.values)[:, None] * best
    basis = np.linalg.svd(held, full_matrices=False)[2]
    along = w @ best / size
    across = np.linalg.norm(w - along[:, None] * best / size, axis=1)
    described = {
        "along": ("time", rest @ best / size**2),
        "apart": ("time", np.linalg.norm((rest - offset) @ basis.T, axis=1)),
        "angle": ("time", np.arctan2(across, along)),
    }
    return path[["weights"]].assign(described).drop_attrs()


def line(w: np.ndarray, level: float, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where ⟨w, x⟩ is at this level."""
    unit = w / np.linalg.norm(w)
    foot, along = level * w / (w @ w), np.array([-unit[1], unit[0]])
    return foot[0] + ends * along[0], foot[1] + ends * along[1]
