"""The limit is JAX: differentiate a rest point in a parameter, and solve for many values at once.

`limit.model` holds the drift h(u; p) as a function of the flat statistics u, with the parameters of
the task as its leaves. By the implicit function theorem a rest point h(u*; p) = 0 moves like
du*/dp = −(∂h/∂u)⁻¹ ∂h/∂p; and one solve, vmapped over p, draws a whole curve.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import sgdlimits as sl

STEP, SNR = 0.7, 1.6
SNRS = np.linspace(0.3, 2.4, 64)

limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=SNR), step=STEP)
found = [state for point in limit.fixed_points() for state in point.orbit]
rest = max(found, key=lambda state: float(state["m"]))


def drift(u, snr):
    """h(u; snr): the model with another value in the place of its snr."""
    return eqx.tree_at(lambda model: model.task.snr, limit.model, snr).drift(u)


def end(snr):
    """Where SGD from a small overlap is after a long time."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda _time, u, snr: drift(u, snr)),
        diffrax.Tsit5(),
        t0=0.0,
        t1=200.0,
        dt0=0.01,
        y0=jnp.asarray(limit.ravel({"m": 0.01, "r2": 1.0})),
        args=snr,
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
        max_steps=100_000,
    )
    return solution.ys[-1]


with jax.enable_x64(True):  # the limit computes in float64, whatever your own settings are
    u, snr = jnp.asarray(limit.ravel(rest)), jnp.asarray(SNR)
    along_u, along_snr = jax.jit(jax.jacfwd(drift, argnums=(0, 1)))(u, snr)
    slope = -np.linalg.solve(along_u, along_snr)
    ends = np.asarray(jax.jit(jax.vmap(end))(SNRS))

# closed form: m*² = snr − step and r2* = step, so that dm*/dsnr = 1/(2 m*) and dr2*/dsnr = 0
m_star = np.sqrt(SNR - STEP)
print(f"dm*/dsnr by the implicit function theorem {slope[0]:.12f}, closed form {0.5 / m_star:.12f}")
np.testing.assert_allclose(slope, [0.5 / m_star, 0.0], atol=1e-9)
away = np.abs(SNRS - STEP) > 0.05  # at the transition growth is slow
expected = np.sqrt(np.maximum(SNRS - STEP, 0.0))
np.testing.assert_allclose(ends[away, 0], expected[away], atol=1e-3)

with sl.plot.style.figure_style():
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    panel = figure.subplots()
    panel.plot(SNRS, expected, "k", lw=1.2, label="closed form √(snr − step)")
    panel.plot(SNRS, ends[:, 0], "o", ms=4, color=sl.plot.style.SIMULATION, label="vmapped solve")
    near = np.array([-0.45, 0.45])
    panel.plot(
        SNR + near,
        m_star + slope[0] * near,
        color=sl.plot.style.PATHS,
        lw=2,
        label="slope by the implicit function theorem",
    )
    panel.set(xlabel="snr", ylabel=f"overlap {sl.plot.symbol('m')} at rest", title=f"{limit!r}")
    panel.title.set_fontsize(9)
    panel.legend()
sl.plot.save(figure, "pictures/differentiate_the_limit.png")
