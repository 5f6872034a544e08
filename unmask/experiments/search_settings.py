"""Which settings of the search matter, and is it the search that helps rather than its score or its samples?

Each row changes one thing: how often it searches, over how many completions a score is averaged, whether copies may
survive, how many beams there are, and how the answer is chosen. Votes and best-of-n cost as much as the search.
"""

import re

from unmask.core import decoder
from unmask.experiments.experiment import Experiment, Findings, above
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import average_plot, cost_table, paired_picture, paired_table
from unmask.report.plots import FORWARD_PASSES

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")  # in the order of Table 1
LENGTH = 256
INTERVALS, SAMPLES, BEAMS = (4, 8, 32), (2, 4), (1, 2, 4, 8, 16)
KINDS = {"ots": "Order-Token Search", "vote": "vote at equal cost"}  # lines of the figure
CLAIMS = {
    "Searching every 4 steps is above once per block": ("interval-4", "ots"),
    "Once per block is above every 32 steps": ("ots", "interval-32"),
    "Averaging a score over 4 completions is above one": ("samples-4", "ots"),
    "Distinct survivors are above copies": ("distinct", "ots"),
    "A vote over the final beams is above the highest score": ("majority", "ots"),
    "The search is above its score without search, best of n by Eq. 2 at equal cost": ("ots", "best-of"),
    "K=16 is above the search's K": ("ots-16", "ots"),
    "K=16 is above a vote at equal cost": ("ots-16", "vote-16"),
}


def parts(setup: Setup) -> list[Part]:
    return single_parts(setup, setup.chosen_for_many(*BENCHMARKS), LENGTH, lambda length: methods(setup, length))


def methods(setup: Setup, length: int) -> list[Method]:
    """Return the rows of the table. An interval of 32 steps is longer than a block takes, so it searches less often."""
    tau = f"temperature={setup.temperature}"
    search = f"beams={setup.beams}, {tau}"
    rows = [Method("ots", f"Order-Token Search, K={setup.beams}", f"ots({search})")]
    rows += [Method(f"interval-{n}", f"every {n} steps", f"ots({search}, interval={n})") for n in INTERVALS]
    rows += [Method(f"samples-{m}", f"M={m}", f"ots({search}, samples={m})") for m in SAMPLES]
    rows.append(Method("distinct", "distinct survivors", f"ots({search}, distinct=true)"))
    rows.append(Method("majority", "vote over the final beams", f"ots({search}, answer=majority)"))
    path = f"low-confidence(temperature={setup.vote_temperature})"
    best_of = _matched(f"best-of(inner={path}, likelihood=block, n=", rows[0], length)
    rows.append(Method("best-of", "best of n by Eq. 2", best_of))
    for beams in (k for k in BEAMS if k <= setup.most_beams):
        wide = Method(f"ots-{beams}", f"K={beams}", f"ots(beams={beams}, {tau})")
        rows += [wide] if beams != setup.beams else []
        vote = _matched(f"vote(inner={path}, n=", wide, length)
        rows.append(Method(f"vote-{beams}", f"vote at the cost of K={beams}", vote))
    return rows


def _matched(opening: str, search: Method, length: int) -> str:
    """Return the spec with as many samples as cost about the forward passes of the search, at least one."""
    costs = [decoder.make(spec).resolved(length).max_forward_passes(length) for spec in (search.spec, f"{opening}1)")]
    return f"{opening}{max(1, round(costs[0] / costs[1]))})"


def findings(results: Results) -> Findings:
    names = [method.name for method in results.methods]
    costs = {"forward passes": lambda method: f"{results.mean_cost(method):,.0f}"}
    table = cost_table(results, "accuracy, %, and forward passes per problem", costs)
    swept = [name for name in names if re.fullmatch(r"(ots|vote)(-\d+)?", name)]
    cells = [(KINDS[name.partition("-")[0]], name, results.mean_cost(name)) for name in swept]
    plot = average_plot(results, "search-settings-beams", FORWARD_PASSES, cells)
    claims = [above(results, text, *pair) for text, pair in CLAIMS.items() if set(pair) <= set(names)]
    return Findings([table, paired_table(results, "ots")], claims, [plot], paired_picture(results, "ots"))


EXPERIMENT = Experiment("search-settings", "ours", __doc__, parts, findings)
