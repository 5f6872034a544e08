"""Is Order-Token Search better than order search and token search, at a third of their cost?"""

from unmask.experiments.experiment import Claim, Experiment, Findings, above_by_seed
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import averages, benchmark_table, paired_table, paper

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
LENGTH = 256  # of the paper
BEAMS = 3  # of the paper, for order search and token search


def parts(setup: Setup) -> list[Part]:
    beams = min(setup.fixed_beams, setup.most_beams)
    methods = [
        Method("token-search", "Token search", f"token-search(beams={BEAMS})"),
        Method("order-search", "Order search", f"order-search(beams={BEAMS})"),
        Method("ots", "Order-Token Search", f"ots(beams={beams}, temperature={setup.temperature})"),
    ]
    return single_parts(setup, BENCHMARKS, LENGTH, lambda _: methods)


def findings(results: Results) -> Findings:
    published = paper("table-2")
    rows = {method.name: published[method.name] for method in results.methods}
    tables = []
    for benchmark in results.benchmarks:
        place = published["benchmarks"].index(benchmark)
        column = {name: figures[place] for name, figures in rows.items()}
        tables.append(benchmark_table(results, benchmark, published={f"paper: L={published['length']}": column}))
    means = {name: sum(figures) / len(figures) for name, figures in rows.items()}
    tables += [averages(results, {f"paper: {published['model']}": means}), paired_table(results, "ots")]
    claims = [
        above_by_seed(results, f"OTS is above {results.label(name).lower()} on average", "ots", name)
        for name in ("order-search", "token-search")
    ]
    return Findings(tables, [*claims, _cost(results)])


def _cost(results: Results) -> Claim:
    """Judge as the paper counts, K²·L for order search, and show the measured forward passes too."""
    text = "OTS takes about a third of the compute (paper: 740 of 2,304; by its own formula 840)"
    ots, order = (results.mean_cost(name) for name in ("ots", "order-search"))
    if not (ots and order):
        return Claim(text, "not asked", "no records of both")
    lengths = [length for group in results.groups.values() for length in group.lengths]
    full = BEAMS**2 * sum(lengths) / len(lengths)
    figures = f"{ots:.0f} of K²·L = {full:.0f} forward passes per problem, {100 * ots / full:.0f} %; order search "
    figures += f"merges equal canvases here and takes {order:.0f}, of which OTS is {100 * ots / order:.0f} %"
    return Claim(text, "holds" if ots / full <= 0.4 else "does not hold", figures)


EXPERIMENT = Experiment("table-2", "Table 2", __doc__, parts, findings)
