"""How often does each likelihood rank candidates that lead to a right answer above those that do not?

This is not in the paper: it asks why pruning works where it does.
"""

from dataclasses import replace
from itertools import islice
from typing import Any

from unmask.experiments.experiment import Claim, Experiment, Findings, beyond
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine
from unmask.experiments.setup import Part, Setup, pick, single_parts
from unmask.report.quality import Quality, qualities, quality_plot, quality_table, survival_table
from unmask.report.statistics import FEWEST
from unmask.runs.candidates import BATCH, Candidate, Study

BENCHMARKS = ("Countdown", "GSM8K", "MATH500", "HumanEval")
LENGTH = 256
DIGITS = 5  # of a stored score


def parts(setup: Setup) -> list[Part]:
    return single_parts(replace(setup, methods=()), BENCHMARKS, LENGTH, lambda _: pick(setup, "ots"), seeds=(0,))


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """Return every candidate of every search, without its text, by benchmark."""
    model = runner.placement.load(setup.model)
    measured = describe_machine(model, runner.placement)
    for part in parts(setup):
        benchmark = runner.task_of(part)
        problems = list(islice(benchmark.problems(), part.limit))
        study = Study(runner.generation(model, part, part.methods[0]), benchmark)
        measured[part.benchmark] = [_pack(each) for each in study.candidates(problems, runner.placement.batch or BATCH)]
    return measured


def _pack(candidate: Candidate) -> list[Any]:
    scores = {name: None if value is None else round(value, DIGITS) for name, value in candidate.scores.items()}
    place = (candidate.problem, candidate.step, candidate.block, candidate.parent, candidate.draw)
    return [*place, candidate.kept, scores, candidate.right]


def findings(results: Results) -> Findings:
    tables, claims, plots = [], [], []
    for benchmark in [name for name in results.measured if name in results.setup.tasks]:
        packed = results.measured[benchmark]
        drawn = [Candidate(*fields, text="", right=right, finished=None) for *fields, right in packed]
        measured = qualities(drawn)
        tables.append(quality_table(measured, f"{results.title(benchmark)} · right above wrong, AUC"))
        tables.append(survival_table(drawn, f"{results.title(benchmark)} · problems with a right answer, %"))
        claims.append(_claim(results.shown(benchmark), measured))
        plots.append(quality_plot(measured, f"score-quality-{benchmark.lower()}", results.plot_title(benchmark)))
    return Findings(tables, claims, plots)


def _claim(name: str, measured: list[Quality]) -> Claim:
    text = f"{name}: the block likelihood ranks right above wrong more often than chance"
    auc = next(each.auc for each in measured if each.score == "block" and each.block is None)
    if auc.value is None or auc.error is None or auc.n < FEWEST:
        return Claim(text, "not decided", "too few problems have candidates of both kinds")
    return Claim(text, beyond(auc, 0.5), f"AUC {auc.value:.3f} ± {auc.error:.3f}, {auc.n} problems")


EXPERIMENT = Experiment("score-quality", "ours", __doc__, parts, findings, measure, records=False)
