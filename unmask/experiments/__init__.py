"""The paper's tables and figures: for each a question, the cells that answer it, and what their records show."""

from unmask.errors import check_known
from unmask.experiments import (
    approximations,
    block_size,
    case_study,
    checks,
    frontier,
    lengths,
    nfe_scaling,
    pass_at_k,
    score_quality,
    search_settings,
    table_1,
    table_2,
    temperature,
    wall_time,
)
from unmask.experiments.experiment import Experiment

PAPER = (table_1.EXPERIMENT, lengths.FIGURE_1D, table_2.EXPERIMENT, pass_at_k.EXPERIMENT, nfe_scaling.EXPERIMENT)
MORE = (wall_time.EXPERIMENT, temperature.EXPERIMENT, block_size.EXPERIMENT, lengths.TABLE_S3, case_study.EXPERIMENT)
OURS = (frontier.EXPERIMENT, checks.EXPERIMENT, search_settings.EXPERIMENT, score_quality.EXPERIMENT)
EXPERIMENTS = {each.name: each for each in (temperature.FIRST, *PAPER, *MORE, *OURS, approximations.EXPERIMENT)}


def find(name: str) -> Experiment:
    check_known(EXPERIMENTS, experiment=name)
    return EXPERIMENTS[name]


__all__ = ["EXPERIMENTS", "Experiment", "find"]
