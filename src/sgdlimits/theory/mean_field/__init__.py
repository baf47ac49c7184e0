"""Wide committees: the mean field of two-layer networks in the summary statistics (L23).

The student is f = (1/p) Σⱼ vⱼ σ(sⱼ), the teacher y = (1/k) Σₙ bₙ τ(aₙ) + √Δ z, the loss ½(y − f)²,
as in ``TeacherStudent(scale="mean")``. Given the teacher's fields a ~ N(0, P), the fields of wide
students are independent,

    sⱼ = mⱼᵀP⁻¹a + √qⱼ ηⱼ,     Q = MP⁻¹Mᵀ + diag(q),     qⱼ = R_jj,

so that p neurons cost O(p), where the ODE of all overlaps costs O(p²) or more. The slides print
Q − MP⁻¹Mᵀ + diag(q) and MPMᵀ; the signs above are right.

Time everywhere in this package is the slides', t/p = step·samples/(dim·p): p times less than the
time δ·steps of the rest of the library. A gradient with respect to one neuron carries 1/p, so that
only this time has a limit as p grows.
"""

from sgdlimits.theory.mean_field.density import solve_density, start_density
from sgdlimits.theory.mean_field.flow import MeanField

__all__ = ["MeanField", "solve_density", "start_density"]
