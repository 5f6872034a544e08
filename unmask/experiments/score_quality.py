"""How often does each likelihood rank candidates that lead to a right answer above those that do not?

This is not in the paper: it asks why pruning works where it does.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings
from unmask.experiments.methods import Part, pick, single_parts
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine
from unmask.experiments.setup import Setup
from unmask.report.quality import Quality, qualities, quality_plot, quality_table, survival_table
from unmask.report.statistics import FEWEST
from unmask.runs.candidates import BATCH, Candidate, Study
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.tasks import task

BENCHMARKS = ("Countdown", "GSM8K", "MATH500", "HumanEval")
LENGTH = 256
DIGITS = 5  # of a stored score
INTERVAL = 1.96  # standard errors


def parts(setup: Setup) -> list[Part]:
    return single_parts(replace(setup, search_seeds=(0,)), BENCHMARKS, LENGTH, lambda _: pick(setup, "ots"))


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """Return every candidate of every search, without its text, by benchmark."""
    model = runner.placement.load(setup.model)
    measured = describe_machine(model, runner.placement)
    for part in parts(setup):
        benchmark = task.make(part.task, **runner.allowed(part.task))
        decoding = Decoding(decoder.make(part.methods[0].spec), part.lengths[0])
        problems = list(islice(benchmark.problems(), part.limit))
        study = Study(Generation(model, decoding, key=benchmark.key), benchmark)
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
        title = f"{results.setup.model} · {results.setup.tasks[benchmark]}"
        plots.append(quality_plot(measured, f"score-quality-{benchmark.lower()}", title))
    return Findings(tables, claims, plots)


def _claim(name: str, measured: list[Quality]) -> Claim:
    text = f"{name}: the block likelihood ranks right above wrong more often than chance"
    auc = next(each.auc for each in measured if each.score == "block" and each.block is None)
    if auc.value is None or auc.error is None or auc.n < FEWEST:
        return Claim(text, "not decided", "too few problems have candidates of both kinds")
    lead = (auc.value - 0.5) / auc.error if auc.error else 0.0
    outcome = "holds" if lead > INTERVAL else "does not hold" if lead < -INTERVAL else "not decided"
    return Claim(text, outcome, f"AUC {auc.value:.3f} ± {auc.error:.3f}, {auc.n} problems")


EXPERIMENT = Experiment("score-quality", "ours", __doc__, parts, findings, measure, records=False)
