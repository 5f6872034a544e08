"""On the paper's own example, does the search leave the path that low-confidence remasking cannot leave?"""

from dataclasses import asdict, replace
from typing import Any

from unmask.experiments.experiment import Claim, Experiment, Findings
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine
from unmask.experiments.setup import Part, Setup, draws, pick, single_parts
from unmask.report.search_tree import describe, read_tree
from unmask.report.tables import Table
from unmask.report.tree_drawing import tree_image
from unmask.runs.text import read_prompt
from unmask.runs.trace import Trace
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import ask

BENCHMARK = "Countdown"
NUMBERS, TARGET = [87, 28, 35], 94
LENGTH = 128  # the paper does not say
SEEDS = 32
FEWEST = 6  # with fewer, no outcome is significant
WIDTH = 120  # of the tree as text, in characters


def parts(setup: Setup) -> list[Part]:
    seeds, methods = tuple(range(min(SEEDS, setup.repeats))), pick(setup, "low-confidence", "ots")
    return single_parts(replace(setup, methods=()), [BENCHMARK], LENGTH, lambda _: methods, limit=1, seeds=seeds)


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """Return what each method wrote under the first seed, with its trace, and under which seeds it was right."""
    (part,) = parts(setup)
    countdown = runner.task_of(part)
    problem = Problem("case-study", ask(NUMBERS, TARGET), "", {"numbers": NUMBERS, "target": TARGET})
    model = runner.placement.load(setup.model)
    prompt = read_prompt(model, countdown.messages(problem))
    measured = describe_machine(model, runner.placement)
    for method in part.methods:
        grades, outputs = [], []
        for seed in part.seeds if draws(method) else (0,):
            outputs += runner.generation(model, part, method, seed).outputs([prompt], traced=not seed)
            grades.append(countdown.grade(problem, outputs[-1].text, setup.metric))
        assert outputs[0].trace is not None
        first = {"text": outputs[0].text, "answer": grades[0].answer, "right": grades[0].right}
        rights = [grade.right for grade in grades]
        measured[method.name] = first | {"rights": rights, "trace": asdict(outputs[0].trace)}
    return measured


def findings(results: Results) -> Findings:
    measured = results.measured
    search, path = (Trace(**measured[name]["trace"]) for name in ("ots", "low-confidence"))
    tree = read_tree(search, path)
    body = []
    for name in ("low-confidence", "ots"):
        output = measured[name]
        rights = f"{sum(output['rights'])} of {len(output['rights'])}"
        body.append((results.label(name), " / ".join(output["text"].split("\n")), rights))
    dtype = search.header["dtype"]
    head = ("method", "writes under seed 0", "seeds that are right")
    table = Table.of("accuracy", f"{NUMBERS} → {TARGET} · L={results.parts[0].lengths[0]} · {dtype}", head, body)
    picture = {"case-study": lambda kind: tree_image(tree, kind)}
    return Findings([table], [judge_seeds(measured, dtype)], [], picture, describe(tree, WIDTH))


def judge_seeds(measured: dict[str, Any], dtype: str) -> Claim:
    """Judge by the share of seeds under which the search is right, where the path is wrong."""
    low, rights = measured["low-confidence"], measured["ots"]["rights"]
    text = "Low-confidence fails and the search finds 87 − 28 + 35 under most seeds"
    figures = f"low-confidence answers {low['answer']}; the search is right under {sum(rights)} of {len(rights)} seeds"
    figures += f", in {dtype}"
    if low["right"]:
        return Claim(text, "not decided", f"{figures}; low-confidence is right, so this example shows nothing")
    if len(rights) < FEWEST:
        return Claim(text, "not decided", f"{figures}; too few seeds")
    return Claim(text, "holds" if 2 * sum(rights) > len(rights) else "does not hold", figures)


EXPERIMENT = Experiment("case-study", "Figure S2", __doc__, parts, findings, measure, records=False)
