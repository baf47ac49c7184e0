"""The neural tangent kernel: real networks come to it with width, and train as it says."""

from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, Settings, experiment, setting

THEORY, NETWORKS = sl.theory.ntk, sl.lectures.networks
DEPTH, BIAS = 3, 0.1
ANGLES = np.linspace(0, np.pi, 25)
KNOWN = np.array([-2.4, -1.3, -0.4, 0.7, 1.6, 2.7])  # angles of the training points
ASKED = np.linspace(-np.pi, np.pi, 73)
TRAINED = 12  # networks of each width, at most


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Points with ‖x‖² = d = 2."""
    return np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def target(angles: np.ndarray) -> np.ndarray:
    """What is learned."""
    return np.asarray(np.sin(2 * angles) + 0.5 * np.cos(angles))


@cache
def limits(activation: str) -> tuple[np.ndarray, np.ndarray]:
    """NTK and the kernel of random features over the angle."""
    import jax.numpy as jnp

    known: Any = jnp.tanh if activation == "tanh" else activation
    pairs = on_circle(ANGLES[:1]), on_circle(ANGLES)
    tangent = THEORY.kernels(*pairs, depth=DEPTH, activation=known, bias=BIAS).ntk.value
    features = THEORY.kernels(*pairs, activation=known).nngp.value
    return np.asarray(tangent[0]), np.asarray(features[0])


@experiment(
    paper="J24",
    figure="Thms 8.6, 8.7",
    claim="Tangent kernels tend to a limit as width grows, and networks train as kernels do.",
    tiny={"widths": (16, 128), "networks": 12, "times": (0.0, 5.0)},
    quick={"widths": (16, 64, 256), "networks": 100},
)
class TangentKernel(Settings):
    """Widths, how many networks, and when they are looked at."""

    widths: tuple[int, ...] = setting((16, 64, 256, 512), "widths m, increasing", least=8)
    networks: int = setting(200, "independent networks of each width", least=10)
    times: tuple[float, ...] = setting(
        (0.0, 1.0, 5.0, 25.0, 125.0), "times at which predictions are compared", least=0
    )

    def compute(self, seed: int) -> Data:
        """Kernels over the angle of every activation and width; random features; training."""
        seeds = np.random.SeedSequence(seed).generate_state(self.networks)

        def kernels(activation: str, width: int) -> xr.Dataset:
            network = NETWORKS.Network(
                2, width=width, depth=DEPTH, activation=activation, bias=BIAS
            )
            pairs = on_circle(ANGLES[:1]), on_circle(ANGLES)
            drawn = [
                network.tangent_kernel(network.random_weights(int(s)), *pairs)[0] for s in seeds
            ]
            features = [
                NETWORKS.random_feature_kernel(
                    pairs[0], width, others=pairs[1], activation=activation, seed=int(s)
                )[0]
                for s in seeds
            ]
            return xr.Dataset(
                {"tangent": (("run", "angle"), drawn), "features": (("run", "angle"), features)},
                {"run": np.arange(self.networks), "angle": ANGLES},
            )

        def of(activation: str) -> xr.Dataset:
            return sl.results.over("width", self.widths, partial(kernels, activation))

        return {
            "kernels": sl.results.over("activation", ["relu", "erf", "tanh"], of),
            "training": sl.results.over("width", self.widths, partial(self.train, seed)),
        }

    def train(self, seed: int, width: int) -> xr.Dataset:
        """Predictions of networks on the circle, and of the kernel from the same start."""
        X, Z, y = on_circle(KNOWN), on_circle(ASKED), target(KNOWN)
        network = NETWORKS.Network(2, width=width, depth=DEPTH, bias=BIAS)
        limit = partial(THEORY.kernels, depth=DEPTH, bias=BIAS)
        K, cross = limit(X).ntk.value, limit(Z, X).ntk.value
        runs = []
        for number in range(min(TRAINED, self.networks)):
            path = network.train(X, y, tests=Z, times=self.times, seed=TRAINED * seed + number)
            said = THEORY.predictions(
                K, cross, y, times=path.time.values,
                start=path.fit[0].values, cross_start=path.prediction[0].values,
            )  # fmt: skip
            weights = network.random_weights(TRAINED * seed + number)[1][0]
            size = np.linalg.norm(weights, 2)
            path = path.assign(kernel_prediction=(("time", "test"), said), size=size)
            names = ["prediction", "kernel_prediction", "motion", "kernel_change", "size"]
            runs.append(path[names].assign_coords(time=np.array(self.times)).drop_attrs())
        return xr.concat(runs, "run").assign_coords(test=ASKED)

    def gaps(self, data: Data) -> dict[str, np.ndarray]:
        """‖K_m − K‖²/‖K‖² by name, at every width and for every network."""
        found = {}
        for activation in ("relu", "erf", "tanh"):
            both = limits(activation)
            drawn = data["kernels"].sel(activation=activation)
            for kind, limit in zip(("tangent", "features"), both, strict=True):
                apart = ((drawn[kind] - limit) ** 2).sum("angle") / np.sum(limit**2)
                found[f"{kind} {activation}"] = apart.transpose("width", "run").values
        return found

    def check(self, data: Data) -> list[Check]:
        """Means and slopes of kernels; predictions along time; how far weights move."""
        results, widths = [], np.array(self.widths)
        last = data["kernels"].isel(width=-1)
        for activation in ("relu", "erf", "tanh"):
            limit, features = limits(activation)
            for k in (6, 12, 18):
                drawn = last.sel(activation=activation).isel(angle=k)
                place = f"{activation}, angle {ANGLES[k]:.2f}, m = {widths[-1]}"
                bias = 3 * limit.max() / widths[-1]
                name = f"{place}: tangent kernel"
                results.append(checks.mean(name, drawn.tangent, limit[k], bias=bias))
                name = f"{place}: kernel of random features"
                results.append(checks.mean(name, drawn.features, features[k]))
        for name, squares in self.gaps(data).items():
            results.append(self.slope(f"‖K_m − K‖/‖K‖, {name}", squares))
        training = data["training"]
        apart = (training.prediction - training.kernel_prediction).isel(time=-1)
        squares = (apart**2).mean("test").transpose("width", "run").values
        results.append(self.slope("predictions, network against kernel", squares))
        motion = training.motion.sel(layer=1).max("time").transpose("width", "run").values
        results.append(self.slope("‖(W(t) − W(0))/√n‖ of the middle layer", motion**2))
        # at least ‖W(0)‖(1 − 1/√n) − ‖W(t) − W(0)‖/√n
        grows = training["size"].mean("run").values * (1 - widths**-0.5) - motion.mean(axis=1)
        name = "without parentheses, as printed, ‖W(t)/√n − W(0)‖ grows"
        said = f"at least {grows[0]:.3g} at m = {widths[0]}, {grows[-1]:.3g} at {widths[-1]}"
        results.append(checks.holds(name, np.all(np.diff(grows) > 0), note=said))
        return results

    def slope(self, what: str, squares: np.ndarray) -> Check:
        """The exponent of the width in root mean squares, which is −½."""
        widths = np.array(self.widths)
        centred = np.log(widths) - np.log(widths).mean()
        means, runs = squares.mean(axis=1), squares.shape[1]
        errors = squares.std(axis=1, ddof=1) / np.sqrt(runs) / means / 2  # of the logarithms
        shares = centred / (centred @ centred)
        error = float(np.sqrt(shares**2 @ errors**2))
        bias = float(np.abs(shares) @ (2 / widths))  # of the rate itself, at small width
        tolerance = checks.allowed(runs) * error + bias
        name, note = f"{what}: exponent of the width", f"{runs} networks of each width"
        return checks.Check(name, -0.5, float(shares @ np.log(means) / 2), error, tolerance, note)

    def draw(self, data: Data) -> Figure:
        """Kernels over the angle, their rate, and training: predictions and weights."""
        figure, panels = sl.plot.panels(2, 2, width=5.2, height=3.5)
        (first, second), (third, fourth) = panels
        last = data["kernels"].isel(width=-1)
        for number, activation in enumerate(("relu", "erf", "tanh")):
            limit, colour = limits(activation)[0], f"C{number}"
            drawn = last.tangent.sel(activation=activation)
            low, high = (drawn.quantile(q, "run") for q in (0.1, 0.9))
            first.fill_between(ANGLES, low, high, color=colour, alpha=0.2, lw=0)
            first.plot(ANGLES, limit, color=colour, label=f"{activation}, infinite width")
            first.plot(ANGLES, drawn.mean("run"), "o", color=colour, ms=3.5)
        first.set(title=f"{DEPTH} layers: limit, and networks of width {self.widths[-1]}")
        first.set(xlabel="angle between the inputs", ylabel="tangent kernel $K$")
        first.set_xticks([0, np.pi / 2, np.pi], ["0", r"$\pi/2$", r"$\pi$"])
        for name, squares in self.gaps(data).items():
            gap = np.sqrt(squares.mean(axis=1))
            kind, activation = name.split()
            colour = f"C{('relu', 'erf', 'tanh').index(activation)}"
            look = "o-" if kind == "tangent" else "s:"
            second.plot(self.widths, gap, look, color=colour, ms=4.5, lw=1.2)
        self.root(second, 1.2 * np.sqrt(self.gaps(data)["tangent relu"][0].mean()))
        second.plot([], [], "o-", color="0.4", label="tangent kernel")
        second.plot([], [], "s:", color="0.4", label="kernel of random features")
        second.set(title="distance to the limit", ylabel=r"$\Vert K_m-K\Vert/\Vert K\Vert$")
        self.predictions(third, data["training"].isel(width=-1, run=0))
        training = data["training"]
        apart = training.prediction - training.kernel_prediction
        gap = np.sqrt((apart**2).mean(("run", "test")).max("time"))
        fourth.plot(self.widths, gap, "o-", color="C3", ms=4.5, label="predictions − kernel's")
        motion = training.motion.sel(layer=1).max("time").mean("run")
        label = r"$\Vert(W(t)-W(0))/\sqrt{m}\,\Vert$"
        fourth.plot(self.widths, motion, "^-", color="C4", ms=4.5, label=label)
        change = training.kernel_change.max("time").mean("run")
        label = r"$\Vert K(t)-K(0)\Vert/\Vert K(0)\Vert$"
        fourth.plot(self.widths, change, "D-", color="C5", ms=4, label=label)
        self.root(fourth, 1.6 * float(max(gap[0], motion[0], change[0])))
        fourth.set(title="training: largest over time", ylabel="size")
        for panel in (second, fourth):
            panel.set(xscale="log", yscale="log", xlabel="width $m$")
            panel.set_xticks(self.widths, [str(m) for m in self.widths])
            panel.xaxis.minorticks_off()
        return sl.plot.legend_below(figure, 3)

    def root(self, panel: Axes, height: float) -> None:
        """A line of slope −½."""
        sizes = np.array(self.widths)
        panel.plot(sizes, height * (sizes[0] / sizes) ** 0.5, "k--", lw=1)
        panel.annotate("$m^{-1/2}$", (sizes[1], height / 2), (4, 6), textcoords="offset points")

    def predictions(self, panel: Axes, training: xr.Dataset) -> None:
        """One network on the circle at every time, with the kernel's prediction as a line."""
        from matplotlib import colormaps

        shades = colormaps["viridis"](np.linspace(0.92, 0.0, len(self.times)))
        for row, time in enumerate(self.times):
            shade: Any = shades[row]
            at = training.sel(time=time)
            panel.plot(ASKED, at.kernel_prediction, color=shade, lw=1.5)
            panel.plot(ASKED, at.prediction, "o", color=shade, ms=2.6)
            place = ((row + 0.5) / len(self.times), 0.98)
            look: Any = {"color": shade, "ha": "center", "va": "top", "fontsize": 10}
            panel.text(*place, f"$t={time:g}$", transform=panel.transAxes, **look)
        panel.plot(KNOWN, target(KNOWN), "x", color="C1", ms=8, mew=2, label="training points")
        panel.plot([], [], "o", color="0.4", ms=3, label="a network in training")
        panel.plot([], [], color="0.4", label="the kernel's flow")
        panel.margins(y=0.14)  # the times stand above the curves
        panel.set(title=f"predictions along training, width {self.widths[-1]}")
        panel.set(xlabel="angle of the input", ylabel="$f_t(x)$")
        panel.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
