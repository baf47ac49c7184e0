"""Phase retrieval by two neurons: risk over time by ODE, SDE and SGD, all from the same start."""

from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.catalogue import retrieval_risk
from sgdlimits.experiments.settings import setting


class Parameters(retrieval_risk.Parameters):
    """Two neurons; the paper's γ is the step, and its time is ours divided by p = 2."""

    width: int = setting(2, "number of neurons p", least=1)
    step: float = setting(0.1, "step γ", above=0)
    time: float = setting(12.0, "duration, in units of dim/step samples", above=0)


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """SGD against the SDE around the exit; SGD against the ODE once both are at rest."""
    risks = data["sgd"].risk.values[:, -1]
    rest = checks.mean("risk at the end, SGD against ODE", risks, data["ode"].risk.values[-1])
    return [*retrieval_risk.comparisons(p, data), rest]


EXPERIMENT = Experiment(
    paper="AKLS23",
    figure="Fig. 3",
    claim="Two neurons: stochastic corrections give the spread, not another exit time.",
    parameters=Parameters,
    tiny={"dim": 200, "runs": 40, "time": 8.0},
    quick={"dim": 1000, "runs": 80, "time": 8.0},
    compute=retrieval_risk.compute,
    check=check,
    draw=retrieval_risk.draw,
)
