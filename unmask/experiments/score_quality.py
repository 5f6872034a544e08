"""How well does each likelihood rank candidates on their way to a right answer above those that are not?

Ours, not the paper's: it asks why pruning works, where it does.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from unmask.core import decoder
from unmask.experiments.bench import Bench
from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import alone, pick
from unmask.experiments.setting import Setting
from unmask.report.quality import Quality, qualities, quality_image, quality_table
from unmask.runs.candidates import BATCH, Candidate, Study
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Generation
from unmask.tasks import task

BENCHMARKS = ("Countdown", "GSM8K", "MATH500", "HumanEval")
SOURCE = "ours"
LENGTH = 256
DIGITS = 5  # of a stored score
SURE = 1.96  # standard errors


def parts(setting: Setting) -> list[Part]:
    (method,) = pick(setting, "ots")
    return [
        alone(setting, benchmark, [method], setting.at(benchmark, LENGTH)) for benchmark in setting.chosen(*BENCHMARKS)
    ]


def measure(bench: Bench, setting: Setting) -> dict[str, Any]:
    """By benchmark, every candidate of every search, without its text."""
    model = bench.load(setting)
    found = {}
    for part in parts(setting):
        made = task.make(part.task, **bench.allowed(part.task))
        settings = Decoding(decoder.make(part.methods[0].spec), part.lengths[0])
        problems = list(islice(made.problems(), part.limit))
        study = Study(Generation(model, settings, key=made.key), made)
        found[part.benchmark] = [_kept(one) for one in study.candidates(problems, bench.batch or BATCH)]
    return found


def _kept(one: Candidate) -> list[Any]:
    scores = {name: None if value is None else round(value, DIGITS) for name, value in one.scores.items()}
    return [one.problem, one.step, one.block, one.parent, one.draw, one.kept, scores, one.right]


def _candidate(said: list[Any]) -> Candidate:
    problem, step, block, parent, draw, kept, scores, right = said
    return Candidate(problem, step, block, parent, draw, kept, scores, "", right, None)


def findings(found: Found) -> Findings:
    tables, verdicts, drawn = [], [], {}
    for benchmark, said in found.measured.items():
        measured = qualities(map(_candidate, said))
        title = f"{benchmark} · {found.setting.tasks[benchmark]} · right above wrong, AUC"
        tables.append(quality_table(measured, title))
        verdicts.append(_verdict(found.shown(benchmark), measured))
        for kind in ("svg", "png"):
            name = f"{found.setting.model} · {found.setting.tasks[benchmark]}"
            drawn[f"score-quality-{benchmark.lower()}.{kind}"] = quality_image(measured, kind, name)
    return Findings(tables, verdicts, pictures=drawn)


def _verdict(name: str, measured: list[Quality]) -> Verdict:
    claim = f"{name}: the block likelihood ranks right above wrong more often than a coin"
    whole = next(one.auc for one in measured if one.score == "block" and one.block is None)
    if whole.value is None or whole.error is None:
        return Verdict(claim, SOURCE, "not decided", "too few problems have candidates of both kinds")
    lead = (whole.value - 0.5) / whole.error if whole.error else 0.0
    outcome = "holds" if lead > SURE else "does not hold" if lead < -SURE else "not decided"
    return Verdict(claim, SOURCE, outcome, f"AUC {whole.value:.3f} ± {whole.error:.3f}, {whole.n} problems")


EXPERIMENT = Experiment("score-quality", SOURCE, __doc__.split("\n")[0] if __doc__ else "", parts, findings, measure)
