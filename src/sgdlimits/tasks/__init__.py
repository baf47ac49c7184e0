"""Learning problems: data law, network, loss, ridge, constraint. Nothing else."""

from typing import TYPE_CHECKING, NoReturn

from sgdlimits._names import missing
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.binary_mixture import BinaryMixture
from sgdlimits.tasks.custom import MultiIndexTask
from sgdlimits.tasks.gaussian_mixture import GaussianMixture
from sgdlimits.tasks.layout import Layout, Statistic
from sgdlimits.tasks.mixture_likelihood import MixtureLikelihood
from sgdlimits.tasks.multi_index import MultiIndexFamily
from sgdlimits.tasks.online_pca import OnlinePCA
from sgdlimits.tasks.phase_retrieval import PhaseRetrieval
from sgdlimits.tasks.single_index import SingleIndex
from sgdlimits.tasks.spiked_tensor import SpikedTensor
from sgdlimits.tasks.teacher_student import TeacherStudent
from sgdlimits.tasks.xor_mixture import XorMixture

__all__ = [
    "BinaryMixture",
    "GaussianMixture",
    "Layout",
    "MixtureLikelihood",
    "MultiIndexFamily",
    "MultiIndexTask",
    "OnlinePCA",
    "PhaseRetrieval",
    "SingleIndex",
    "SpikedTensor",
    "Statistic",
    "Task",
    "TeacherStudent",
    "XorMixture",
]

if not TYPE_CHECKING:  # static checkers know by themselves what is not here

    def __getattr__(name: str) -> NoReturn:
        raise missing("sgdlimits.tasks", name, __all__)
