"""What the experiments on softmax regression share."""

import sgdlimits as sl
from sgdlimits.experiments.base import Settings, setting


class Softmax(Settings):
    """k classes, equally likely, with orthonormal means and noise of variance 1/λ."""

    classes: int = setting(10, "number k of classes", least=2)
    ridge: float = setting(0.01, "ridge β", above=0)

    def task(self, precision: float) -> sl.tasks.GaussianMixture:
        """At one precision λ."""
        return sl.tasks.GaussianMixture(classes=self.classes, precision=precision, ridge=self.ridge)

    def rest_overlap(self, ridge: float) -> float:
        """Of a class vector with its own mean, at rest without noise (BGHJ23, Section 5.3.1)."""
        return float(
            sl.theory.gaussian_mixture.orthonormal_overlap(self.classes, 1 / self.classes, ridge)
        )
