"""Which settings of the search matter, and is it the search that helps rather than its score or its samples?

Each row changes one thing: how often it searches, over how many completions a score is averaged, whether copies may
survive, how many beams there are, and how the answer is chosen. Votes and best-of-n stand at the rows of the search.
"""

from __future__ import annotations

import re

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings, above
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper_tables import paired_picture, paired_table
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.report.plots import ROWS, Plot, Point
from unmask.report.tables import Table

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")  # in the order of Table 1
LENGTH = 256
INTERVALS, SAMPLES, BEAMS = (4, 8, 32), (2, 4), (1, 2, 4, 8, 16)


def parts(setup: Setup) -> list[Part]:
    return single_parts(
        setup, setup.chosen_for_many(*BENCHMARKS), LENGTH, lambda length: selected(setup, methods(setup, length))
    )


def methods(setup: Setup, length: int) -> list[Method]:
    """An interval of 32 steps is longer than a block of 32 masks takes, so it searches less often than every block."""
    tau = f"temperature={setup.temperature}"
    search = f"beams={setup.beams}, {tau}"
    rows = [Method("ots", f"Order-Token Search, K={setup.beams}", f"ots({search})")]
    rows += [Method(f"interval-{n}", f"every {n} steps", f"ots({search}, interval={n})") for n in INTERVALS]
    rows += [Method(f"samples-{m}", f"M={m}", f"ots({search}, samples={m})") for m in SAMPLES]
    rows.append(Method("distinct", "distinct survivors", f"ots({search}, distinct=true)"))
    rows.append(Method("majority", "vote over the final beams", f"ots({search}, answer=majority)"))
    path = f"low-confidence(temperature={setup.vote_temperature})"
    rows.append(
        Method(
            "best-of", "best of n by Eq. 2", _matched(f"best-of(inner={path}, likelihood=block, n=", rows[0], length)
        )
    )
    for beams in (k for k in BEAMS if k <= setup.most_beams):
        wide = Method(f"ots-{beams}", f"K={beams}", f"ots(beams={beams}, {tau})")
        rows += [wide] if beams != setup.beams else []
        rows.append(
            Method(f"vote-{beams}", f"vote at the rows of K={beams}", _matched(f"vote(inner={path}, n=", wide, length))
        )
    return rows


def _matched(opening: str, search: Method, length: int) -> str:
    """The spec with as many samples as cost about the rows of the search, at least one."""
    budget = decoder.make(search.spec).resolved(length).max_forward_passes(length)
    return (
        f"{opening}{max(1, round(budget / decoder.make(f'{opening}1)').resolved(length).max_forward_passes(length)))})"
    )


def findings(evidence: Evidence) -> Findings:
    body = []
    for method in evidence.methods:
        accuracy = [evidence.accuracy(benchmark, method.name) for benchmark in evidence.benchmarks]
        rows = f"{evidence.mean_cost(method.name, 'forward_passes'):,.0f}"
        body.append((method.label, *accuracy, evidence.average(method.name), rows))
    head = ("", *map(evidence.shown, evidence.benchmarks), "average", "forward passes")
    table = Table.of("accuracy", "accuracy, %, and rows per problem", head, body, rank=False)
    tables = [table, paired_table(evidence, "ots")]
    return Findings(tables, _claims(evidence), [_plot(evidence)], paired_picture(evidence, "ots"))


def _plot(evidence: Evidence) -> Plot:
    """More beams beside more votes."""
    lines: dict[str, list[Point]] = {"Order-Token Search": [], "vote at equal rows": []}
    for method in evidence.methods:
        if re.fullmatch(r"(ots|vote)(-\d+)?", method.name):
            label = "Order-Token Search" if method.name.startswith("ots") else "vote at equal rows"
            lines[label].append(Point(evidence.mean_cost(method.name, "forward_passes"), evidence.average(method.name)))
    ordered = tuple((label, tuple(sorted(points, key=lambda point: point.x))) for label, points in lines.items())
    title = f"{evidence.setup.model} · average over {len(evidence.benchmarks)} tasks"
    return Plot("search-settings-beams", title, ROWS, tuple((label, points) for label, points in ordered if points))


def _claims(evidence: Evidence) -> list[Claim]:
    widest = max(BEAMS)
    base = f"ots-{widest}"
    pairs = {
        "Searching every 4 steps is above once per block": ("interval-4", "ots"),
        "Once per block is above every 32 steps": ("ots", "interval-32"),
        "Averaging a score over 4 completions is above one": ("samples-4", "ots"),
        "Distinct survivors are above copies": ("distinct", "ots"),
        "A vote over the final beams is above the highest score": ("majority", "ots"),
        "The search is above its score without search, best of n by Eq. 2 at equal rows": ("ots", "best-of"),
        f"K={widest} is above the search's K": (base, "ots"),
        f"K={widest} is above a vote at equal rows": (base, f"vote-{widest}"),
    }
    known = {method.name for method in evidence.methods}
    return [above(evidence, text, *pair) for text, pair in pairs.items() if set(pair) <= known]


EXPERIMENT = Experiment("search-settings", "ours", __doc__, parts, findings)
