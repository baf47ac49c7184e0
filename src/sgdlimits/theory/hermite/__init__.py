"""How many samples one neuron takes to find a direction: Hermite coefficients and exponents (J24).

For a teacher f and a student g on the sphere the population loss depends on the overlap m alone,
φ(m) = const − 2 Σ u_k(f) u_k(g) mᵏ. The first power in it, the information exponent k, says how
flat the equator is, where SGD starts, and so how many samples it takes: N, N log N or N^(k−1).
"""

from sgdlimits.theory.hermite.assumptions import Assumption, fisher_consistent, moment_bounds
from sgdlimits.theory.hermite.coefficients import coefficients
from sgdlimits.theory.hermite.exponent import InformationExponent, information_exponent
from sgdlimits.theory.hermite.losses import (
    MixtureLikelihood,
    OnlinePCA,
    PopulationLoss,
    mixture_likelihood,
    online_pca,
)
from sgdlimits.theory.hermite.samples import CriticalSamples, critical_samples, search_lower_bound
from sgdlimits.theory.hermite.teacher import TeacherStudent, teacher_student

__all__ = [
    "Assumption",
    "CriticalSamples",
    "InformationExponent",
    "MixtureLikelihood",
    "OnlinePCA",
    "PopulationLoss",
    "TeacherStudent",
    "coefficients",
    "critical_samples",
    "fisher_consistent",
    "information_exponent",
    "mixture_likelihood",
    "moment_bounds",
    "online_pca",
    "search_lower_bound",
    "teacher_student",
]
