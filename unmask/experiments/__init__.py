"""The paper's tables and figures, one a file: a question, the cells that answer it, and what their records say."""

from unmask.core.errors import UnmaskError, nearest
from unmask.experiments import pass_at_k, table_1
from unmask.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        table_1,
        pass_at_k,
    )
}


def find(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UnmaskError(f"unknown experiment {name!r}: {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


__all__ = ["EXPERIMENTS", "Experiment", "find"]
