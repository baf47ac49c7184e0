"""Phase retrieval by two neurons: risk over time by ODE, SDE and SGD, all from the same start."""

from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, experiment
from sgdlimits.experiments.catalogue._retrieval import RiskOverTime


@experiment(
    paper="AKLS23",
    figure="Fig. 3",
    claim="Two neurons: stochastic corrections give the spread, not another exit time.",
    tiny={"dim": 200, "runs": 40, "time": 8.0},
    quick={"dim": 1000, "runs": 80, "time": 8.0},
)
class RetrievalTwoNeurons(RiskOverTime):
    """Two neurons; the paper's γ is the step, and its time is ours divided by p = 2."""

    width: int = 2
    step: float = 0.1
    time: float = 12.0

    def check(self, data: Data) -> list[Check]:
        """SGD against the SDE around the exit; SGD against the ODE once both are at rest."""
        sgd, ode = (data[kind].risk.isel(time=-1) for kind in ("sgd", "ode"))
        rest = checks.mean("risk at the end, SGD against ODE", sgd, ode)
        return [*self.comparisons(data), rest]
