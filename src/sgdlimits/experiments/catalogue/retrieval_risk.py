"""Phase retrieval on the sphere: risk over time by ODE, SDE and SGD, all from the same start."""

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, experiment
from sgdlimits.experiments.catalogue._retrieval import RiskOverTime


@experiment(
    paper="AKLS23",
    figure="Fig. 1 left",
    claim="Phase retrieval: the SDE has the spread of SGD that the ODE lacks; exit times agree.",
    tiny={"dim": 200, "runs": 60},
    quick={"dim": 1000, "runs": 120},
    headline=True,
)
class RetrievalRisk(RiskOverTime):
    """One neuron; the paper's γ is the step, and for one neuron its time is ours."""

    def check(self, data: Data) -> list[Check]:
        """The comparisons of SGD and SDE, and the excess risk (8) that remains."""
        excess = data["sgd"].risk.isel(time=-1) - self.noise / 2
        expected = sl.theory.phase_retrieval.excess_risk(self.step, self.noise)
        rest = checks.mean("excess risk at the end, (8)", excess, expected)
        return [*self.comparisons(data), rest]
