"""On the paper's own example, does the search leave the path that low-confidence remasking cannot leave?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from unmask.core import decoder
from unmask.experiments.bench import Bench
from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import pick
from unmask.experiments.setting import Setting
from unmask.report.lineage import grow
from unmask.report.tables import Entry, Table
from unmask.report.tree import describe, tree_image
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Generation
from unmask.runs.prompt import read_prompt
from unmask.runs.trace import Trace
from unmask.tasks import Problem, task
from unmask.tasks.countdown import ask

BENCHMARK, SOURCE = "Countdown", "Figure S2"
NUMBERS, TARGET = [87, 28, 35], 94
LENGTH = 128  # the paper does not say
WIDTH = 120  # characters of the tree as text


def parts(setting: Setting) -> list[Part]:
    if not setting.chosen(BENCHMARK):
        return []
    methods = tuple(pick(setting, "low-confidence", "ots"))
    length = setting.at(BENCHMARK, LENGTH)
    return [Part(BENCHMARK.lower(), BENCHMARK, setting.tasks[BENCHMARK], methods, (length,), limit=1)]


def measure(bench: Bench, setting: Setting) -> dict[str, Any]:
    """What each wrote, and how."""
    (part,) = parts(setting)
    made = task.make(part.task)
    problem = Problem("case-study", ask(NUMBERS, TARGET), "", {"numbers": NUMBERS, "target": TARGET})
    model = bench.load(setting)
    prompt = read_prompt(model, made.messages(problem))
    found = {}
    for method in part.methods:
        settings = Decoding(decoder.make(method.spec), part.lengths[0])
        (output,) = Generation(model, settings, key=made.key).outputs([prompt], traced=True)
        grade = made.grade(problem, output.text, setting.metric)
        assert output.trace is not None
        trace = asdict(output.trace)
        found[method.name] = {"text": output.text, "answer": grade.answer, "right": grade.right, "trace": trace}
    return found


def findings(found: Found) -> Findings:
    traces = {name: Trace(**said["trace"]) for name, said in found.measured.items()}
    tree = grow(traces["ots"], traces["low-confidence"])
    body = [
        (Entry(found.label(name)), Entry(" / ".join(said["text"].split("\n"))), Entry("✓" if said["right"] else "✗"))
        for name, said in found.measured.items()
    ]
    table = Table("accuracy", f"{NUMBERS} → {TARGET}", ("method", "writes", "right"), tuple(body))
    drawn = {f"case-study.{kind}": tree_image(tree, kind) for kind in ("svg", "png")}
    return Findings([table], [_verdict(found.measured)], pictures=drawn, text=describe(tree, WIDTH))


def _verdict(measured: dict[str, Any]) -> Verdict:
    low, search = measured["low-confidence"], measured["ots"]
    said = f"low-confidence answers {low['answer']}, the search {search['answer']}"
    if not search["right"]:
        outcome = "does not hold"
    else:
        outcome = "not decided" if low["right"] else "holds"
        said += "; both are right, so the example shows nothing here" if low["right"] else ""
    return Verdict("Low-confidence fails and the search finds 87 − 28 + 35", SOURCE, outcome, said)


EXPERIMENT = Experiment("case-study", SOURCE, __doc__ or "", parts, findings, measure)
