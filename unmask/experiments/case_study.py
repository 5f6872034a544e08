"""On the paper's own example, does the search leave the path that low-confidence remasking cannot leave?"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from unmask.core import decoder
from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Claim, Experiment, Findings
from unmask.experiments.methods import Part, pick, single_parts
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.report.search_tree import read_tree
from unmask.report.tables import Table
from unmask.report.tree_drawing import describe, tree_image
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Generation
from unmask.runs.prompt import read_prompt
from unmask.runs.trace import Trace
from unmask.tasks import Problem, task
from unmask.tasks.countdown import ask

BENCHMARK = "Countdown"
NUMBERS, TARGET = [87, 28, 35], 94
LENGTH = 128  # the paper does not say
WIDTH = 120  # of the tree as text, in characters


def parts(setup: Setup) -> list[Part]:
    parts = single_parts(setup, [BENCHMARK], LENGTH, lambda _: pick(setup, "low-confidence", "ots"))
    return [replace(part, limit=1) for part in parts]


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """What each method wrote, with its trace."""
    (part,) = parts(setup)
    countdown = task.make(part.task)
    problem = Problem("case-study", ask(NUMBERS, TARGET), "", {"numbers": NUMBERS, "target": TARGET})
    model = runner.placement.load(setup.model)
    prompt = read_prompt(model, countdown.messages(problem))
    measured = {}
    for method in part.methods:
        decoding = Decoding(decoder.make(method.spec), part.lengths[0])
        (output,) = Generation(model, decoding, key=countdown.key).outputs([prompt], traced=True)
        grade = countdown.grade(problem, output.text, setup.metric)
        assert output.trace is not None
        trace = asdict(output.trace)
        measured[method.name] = {"text": output.text, "answer": grade.answer, "right": grade.right, "trace": trace}
    return measured


def findings(evidence: Evidence) -> Findings:
    measured = evidence.measured
    search, path = (Trace(**measured[name]["trace"]) for name in ("ots", "low-confidence"))
    tree = read_tree(search, path)
    body = [
        (evidence.label(name), " / ".join(output["text"].split("\n")), "✓" if output["right"] else "✗")
        for name, output in measured.items()
    ]
    table = Table.of("accuracy", f"{NUMBERS} → {TARGET}", ("method", "writes", "right"), body)
    picture = {"case-study": lambda kind: tree_image(tree, kind)}
    return Findings([table], [_claim(measured)], [], picture, describe(tree, WIDTH))


def _claim(measured: dict[str, Any]) -> Claim:
    low, search = measured["low-confidence"], measured["ots"]
    text = "Low-confidence fails and the search finds 87 − 28 + 35"
    figures = f"low-confidence answers {low['answer']}, the search {search['answer']}"
    if not search["right"]:
        return Claim(text, "does not hold", figures)
    if low["right"]:
        return Claim(text, "not decided", f"{figures}; both are right, so the example shows nothing here")
    return Claim(text, "holds", figures)


EXPERIMENT = Experiment("case-study", "Figure S2", __doc__, parts, findings, measure, records=False)
