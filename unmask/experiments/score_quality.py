"""How well does each likelihood rank candidates on their way to a right answer above those that are not?

Not in the paper: it asks why pruning works where it does.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

from unmask.core import decoder
from unmask.experiments.claims import Claim
from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Experiment, Findings
from unmask.experiments.methods import Part, pick, single_part
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.report.quality import Quality, qualities, quality_image, quality_table
from unmask.runs.candidates import BATCH, Candidate, Study
from unmask.runs.generation import Generation
from unmask.runs.settings import Settings
from unmask.tasks import task

BENCHMARKS = ("Countdown", "GSM8K", "MATH500", "HumanEval")
LENGTH = 256
DIGITS = 5  # of a stored score
INTERVAL = 1.96  # standard errors


def parts(setup: Setup) -> list[Part]:
    benchmarks = setup.chosen(*BENCHMARKS)
    return [single_part(setup, each, pick(setup, "ots"), setup.at(each, LENGTH)) for each in benchmarks]


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """By benchmark, every candidate of every search, without its text."""
    model = runner.load(setup)
    measured = {}
    for part in parts(setup):
        benchmark = task.make(part.task, **runner.allowed(part.task))
        settings = Settings(decoder.make(part.methods[0].spec), part.lengths[0])
        problems = list(islice(benchmark.problems(), part.limit))
        study = Study(Generation(model, settings, key=benchmark.key), benchmark)
        measured[part.benchmark] = [_pack(each) for each in study.candidates(problems, runner.batch or BATCH)]
    return measured


def _pack(candidate: Candidate) -> list[Any]:
    scores = {name: None if value is None else round(value, DIGITS) for name, value in candidate.scores.items()}
    place = (candidate.problem, candidate.step, candidate.block, candidate.parent, candidate.draw)
    return [*place, candidate.kept, scores, candidate.right]


def _unpack(fields: list[Any]) -> Candidate:
    problem, step, block, parent, draw, kept, scores, right = fields
    return Candidate(problem, step, block, parent, draw, kept, scores, "", right, None)


def findings(evidence: Evidence) -> Findings:
    measured = {benchmark: qualities(map(_unpack, drawn)) for benchmark, drawn in evidence.measured.items()}
    return Findings(
        [quality_table(each, f"{evidence.title(name)} · right above wrong, AUC") for name, each in measured.items()],
        [_claim(evidence.shown(name), each) for name, each in measured.items()],
        pictures={
            f"score-quality-{name.lower()}": partial(
                quality_image, each, title=f"{evidence.setup.model} · {evidence.setup.tasks[name]}"
            )
            for name, each in measured.items()
        },
    )


def _claim(name: str, measured: list[Quality]) -> Claim:
    text = f"{name}: the block likelihood ranks right above wrong more often than chance"
    auc = next(each.auc for each in measured if each.score == "block" and each.block is None)
    if auc.value is None or auc.error is None:
        return Claim(text, "not decided", "too few problems have candidates of both kinds")
    lead = (auc.value - 0.5) / auc.error if auc.error else 0.0
    outcome = "holds" if lead > INTERVAL else "does not hold" if lead < -INTERVAL else "not decided"
    return Claim(text, outcome, f"AUC {auc.value:.3f} ± {auc.error:.3f}, {auc.n} problems")


EXPERIMENT = Experiment("score-quality", "ours", __doc__, parts, findings, measure)
