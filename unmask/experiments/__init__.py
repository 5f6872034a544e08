"""The paper's tables and figures, one per file: a question, the cells that answer it, and what their records show."""

from unmask.errors import UnmaskError, nearest
from unmask.experiments import (
    approximations,
    block_size,
    case_study,
    figure_1d,
    frontier,
    nfe_scaling,
    pass_at_k,
    score_quality,
    search_settings,
    table_1,
    table_2,
    table_s3,
    temperature,
    wall_time,
)
from unmask.experiments.experiment import Experiment

PAPER = (table_1, figure_1d, table_2, pass_at_k, nfe_scaling, wall_time, temperature, block_size, table_s3, case_study)
OURS = (frontier, search_settings, score_quality, approximations)
EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for each in (temperature.FIRST, *(module.EXPERIMENT for module in (*PAPER, *OURS)))
}


def find(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UnmaskError(f"unknown experiment {name!r}: {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


__all__ = ["EXPERIMENTS", "Experiment", "find"]
