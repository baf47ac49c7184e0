"""What is observed of a velocity whose momentum is slow: statistics of their own."""

from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic


def velocity_statistics(task: MultiIndexFamily) -> tuple[Statistic, ...]:
    """What is observed of a slow velocity U, besides the statistics of the weights."""
    neurons, names = tuple(range(task.width)), task.anchors
    pairs = ("neuron", "neuron_"), (neurons, neurons)
    v = (Statistic("velocity_v", ("neuron",), (neurons,)),) if task.trained else ()
    return (
        *v,
        Statistic("velocity_M", ("neuron", "anchor"), (neurons, names)),
        Statistic("velocity_R", *pairs, symmetric=True, nonnegative=True),
        Statistic("cross_R", *pairs),
    )
