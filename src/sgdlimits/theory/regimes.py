"""Which description of SGD holds at given dimension d, width p and step γ, and how well.

A student f = (1/p) Σᵢ vᵢ σ(sᵢ) with loss ½(y − f)² and learning rate γ/d: a sample moves the
overlaps by γ/(dp), and its noise adds (γ/(dp))²‖x‖² ≈ γ²/(dp²) to the norms. In the time t/p, in
which dp/γ samples are one unit,

    dM = ψ_GF dτ,     dQ = (ψ_GF + (γ/p) ψ_noise) dτ,     fluctuations √(γ/(dp)):

a sum of dp/γ independent increments of size γ/(dp). With γ = d^(−δ), p = d^κ only κ + δ matters:
γ/p = d^(−(κ+δ)). Where γ/p → ∞ the norms diffuse before anything is learned, in a time of dp²/γ²
samples with fluctuations γ/(p√d), which vanish only for κ + δ > −½.

Source: L23; VSLKZ22, whose regions these are; ASKL23 for the mean field.
"""

import math
from dataclasses import dataclass

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


@dataclass(frozen=True, repr=False)
class Regime:
    """The simplest description whose neglected terms are at most ``tolerance``, and those terms.

    They are orders of magnitude relative to what is kept: constants depend on the task.
    """

    dim: int
    width: int
    step: float
    tolerance: float

    @property
    def corrector(self) -> float:
        """γ/p: the step's noise in the norms over the population gradient."""
        return self.step / self.width

    @property
    def fluctuations(self) -> float:
        """√(γ/(dp)): of single runs around the ODE; γ/(p√d) where noise dominates."""
        return max(math.sqrt(self.corrector), self.corrector) / math.sqrt(self.dim)

    @property
    def interaction(self) -> float:
        """1/p: of single neurons, and of correlations that neurons gain. The theorem has p^(−½)."""
        return 1 / self.width

    @property
    def start(self) -> float:
        """d^(−½): overlaps of random weights at the start, taken to be orthogonal."""
        return 1 / math.sqrt(self.dim)

    @property
    def samples(self) -> float:
        """Samples in one unit of the time t/p, in which overlaps move by order one: dp/γ."""
        return self.dim / self.corrector

    @property
    def neglected(self) -> dict[str, float]:
        """What the description leaves out, by name."""
        terms = {"fluctuations": self.fluctuations}
        if self.name in ("gradient flow", "mean field"):
            terms["corrector"] = self.corrector
        if self.name == "mean field":
            terms |= {"interaction": self.interaction, "start": self.start}
        return terms

    @property
    def name(self) -> str:
        """One of "mean field", "gradient flow", "high-dimensional ODE", "noise", "none"."""
        if self.fluctuations > self.tolerance:
            return "none"
        if self.corrector > 1 / self.tolerance:
            return "noise"
        if self.corrector > self.tolerance:
            return "high-dimensional ODE"
        wide = max(self.interaction, self.start) <= self.tolerance
        return "mean field" if wide else "gradient flow"

    def __repr__(self) -> str:
        ratio = f"step/width = {self.corrector:.2g}"
        said = {
            "mean field": "mean field, particles (m, q) at cost O(width) in place of all overlaps; "
            "the ODE of all overlaps, without its corrector, holds too",
            "gradient flow": "gradient flow of the population risk, the classical limit: the ODE "
            "of all overlaps without its corrector",
            "high-dimensional ODE": f"high-dimensional ODE with its corrector ({ratio}), which "
            "keeps the risk above its least value if labels are noisy",
            "noise": f"high-dimensional ODE in which the corrector dominates ({ratio}): norms "
            "grow before anything is learned",
            "none": f"no deterministic description, for single runs scatter ({ratio})",
        }
        where = {
            "fluctuations": "fluctuations of single runs",
            "corrector": "corrector, step/width",
            "interaction": "single neurons, 1/width",
            "start": "overlaps of random weights, dim^(-1/2)",
        }
        terms = ", ".join(f"{size:.2g} ({where[name]})" for name, size in self.neglected.items())
        return (
            f"dim {self.dim}, width {self.width}, step {self.step:g}: {said[self.name]}. "
            f"Neglected, to within constants: {terms}. "
            f"One unit of time/width is {self.samples:.6g} samples."
        )


def regime(
    dim: WholeNumber, width: WholeNumber, step: Number, *, tolerance: Number = 0.1
) -> Regime:
    """Which description of SGD on a two-layer network applies, and how large what it neglects is.

    For networks f = (1/p) Σᵢ vᵢ σ(sᵢ), as in ``TeacherStudent(scale="mean")``: with ``scale="sum"``
    and step η, ask for the step ηp².

    Args:
        dim: d of the data.
        width: p of the student.
        step: γ, the learning rate times dim.
        tolerance: terms up to this size are neglected.

    >>> regime(1500, 8, 0.1)  # doctest: +NORMALIZE_WHITESPACE
    dim 1500, width 8, step 0.1: gradient flow of the population risk, the classical limit: the ODE
    of all overlaps without its corrector. Neglected, to within constants: 0.0029 (fluctuations of
    single runs), 0.013 (corrector, step/width). One unit of time/width is 120000 samples.
    >>> regime(1000, 8, 4.0).name, regime(1000, 200, 4.0).name, regime(10, 1, 4.0).name
    ('high-dimensional ODE', 'mean field', 'none')
    """
    return Regime(
        _checks.integer("dim", dim, least=1),
        _checks.integer("width", width, least=1),
        _checks.positive("step", step),
        _checks.fraction("tolerance", tolerance),
    )


def phase(step_exponent: Number, width_exponent: Number) -> str:
    """What SGD does as d grows with step γ = d^(−δ) and width p = d^κ.

    With κ + δ > 0 the corrector's share γ/p vanishes: "learning", down to the noise floor if
    gradient flow gets there. With κ + δ = 0 it stays: "plateau", for noisy labels the risk levels
    off above the floor. With κ + δ < 0 it dominates: "no learning"; for κ + δ ≤ −½ there is no
    deterministic limit at all, "no limit".

    Args:
        step_exponent: δ.
        width_exponent: κ.

    Source: VSLKZ22; L23.

    >>> phase(0.5, 0.0), phase(-0.5, 0.5), phase(-0.25, 0.0), phase(-1.0, 0.25)
    ('learning', 'plateau', 'no learning', 'no limit')
    """
    delta, kappa = (
        float(_checks.array(name, value, ()))
        for name, value in (("step_exponent", step_exponent), ("width_exponent", width_exponent))
    )
    total = delta + kappa
    if total > 0:
        return "learning"
    if total == 0:
        return "plateau"
    return "no learning" if total > -0.5 else "no limit"
