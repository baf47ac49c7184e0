"""What the experiments on teacher and student committees share."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments.base import Axes, Settings, setting

POINTS = 61


class Committee(Settings):
    """The slides differentiate (y − f)², we (y − f)²/2: our step is 2γ, our time 2p theirs."""

    width: int = setting(10, "number of student neurons p", least=1)
    gamma: float = setting(0.05, "learning rate γ of the slides", above=0)
    noise: float = setting(1e-3, "variance Δ of the label noise", above=0)
    rest: float = setting(1e5, "when the limit has come to rest, in units of dim/step", above=1)

    def task(self, teachers: int) -> sl.tasks.TeacherStudent:
        """Both committees are means of erf units."""
        return sl.tasks.TeacherStudent(
            activation="erf",
            teacher_width=teachers,
            student_width=self.width,
            noise=self.noise,
            scale="mean",
        )

    @property
    def later(self) -> np.ndarray:
        """Times at which the limit is shown, until it has come to rest."""
        return np.append(0.0, np.geomspace(0.3, self.rest, POINTS - 1))

    @property
    def least_excess(self) -> float:
        """What the excess risk at rest is of the order of: the step on each gradient, 2γ/p."""
        return 2 * self.gamma / self.width

    def draw_limit(self, panel: Axes, risk: xr.DataArray) -> None:
        """The excess risk of the limit and the noise floor, on logarithmic axes."""
        panel.set(xscale="log", yscale="log", xlabel=sl.plot.style.TIME_LABEL)
        panel.plot(self.later[1:], risk[1:], "k", label="limit")
        panel.axhline(self.noise / 2, color="k", ls=":", lw=1, label="noise floor Δ/2")
        panel.set_ylabel("excess risk")


def excess_risk(result: xr.Dataset) -> xr.Dataset:
    """½E(f* − f)², from the arcsine law of erf units with coefficients 1/k and −1/p."""
    overlaps = result.M.transpose(..., "neuron", "anchor").values
    orthogonal = result.R.transpose(..., "neuron", "neuron_").values
    width, teachers = overlaps.shape[-2:]
    gram = orthogonal + overlaps @ np.swapaxes(overlaps, -1, -2)
    identity = np.broadcast_to(np.eye(teachers), (*gram.shape[:-2], teachers, teachers))
    upper = np.concatenate([gram, overlaps], axis=-1)
    lower = np.concatenate([np.swapaxes(overlaps, -1, -2), identity], axis=-1)
    covariance = np.concatenate([upper, lower], axis=-2)
    scale = np.sqrt(1 + np.diagonal(covariance, axis1=-2, axis2=-1))
    signs = np.concatenate([np.full(width, -1 / width), np.full(teachers, 1 / teachers)])
    angles = np.arcsin(covariance / (scale[..., :, None] * scale[..., None, :]))
    over = [dim for dim in ("run", "time") if dim in result.dims]
    risk = np.einsum("...ab,a,b->...", angles, signs, signs) / np.pi
    return xr.Dataset({"risk": (over, risk)}, {x: result[x] for x in over}, result.attrs)
