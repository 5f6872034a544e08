"""Does Order-Token Search solve more problems than the other decoders, at about the cost of a vote?"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from unmask.errors import UnmaskError
from unmask.experiments.experiment import Claim, Experiment, Findings, above_by_seed, all_hold, beyond
from unmask.experiments.results import Names, Results
from unmask.experiments.setup import ABLATIONS, TEN, Method, Part, Setup, pick, table_parts
from unmask.experiments.tables import averages, benchmark_table, paired_picture, paired_table, paper, published_columns
from unmask.report.tables import Table, percent

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
LENGTH = 512  # of the published d1-LLaDA figures
BEAMS = (3, 5, 8)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)
FEW = 256  # problems of each kind, unless the setup has its own number
OTHERS, TESTED = KINDS = " · others", " · tested"  # problems on which to choose, and those of the table


def parts(setup: Setup) -> list[Part]:
    return table_parts(setup, BENCHMARKS, pick(setup, *TEN)) + (_tuning_parts(setup) if setup.grid else [])


def findings(results: Results) -> Findings:
    models = paper("table-1")["models"].items()
    published = {f"paper: {model}": {name: row["average"] for name, row in rows.items()} for model, rows in models}
    tuned = [_tuning_table(results)] if results.setup.grid else []
    results = replace(results, parts=[part for part in results.parts if not part.benchmark.endswith(KINDS)])
    tables = [_benchmark(results, benchmark) for benchmark in results.benchmarks]
    tables += [averages(results, published), paired_table(results, "ots"), *tuned]
    return Findings(tables, _claims(results), pictures=paired_picture(results, "ots"))


def _benchmark(results: Results, benchmark: str) -> Table:
    tuned = paper("table-1")["d1-LLaDA"]
    notes = [f"After post-training, {tuned['source']}: {tuned[benchmark]}."] if benchmark in tuned else []
    published = published_columns("table-1", results.setup.model, benchmark)
    return benchmark_table(results, benchmark, published=published, notes=notes)


def _claims(results: Results) -> list[Claim]:
    hard = [benchmark for benchmark in results.benchmarks if benchmark != "GSM8K"]
    text = f"OTS is the best on {', '.join(map(results.shown, hard))} (paper: MATH500, Countdown, HumanEval)"
    others = {
        "OTS is above the vote over low-confidence samples, at equal cost": "low-confidence-vote",
        "OTS is above AR with beam search": "ar-beam",
        **{f"{results.label(name)} is below OTS": name for name in ABLATIONS},
    }
    claims = [
        _best(results, "OTS has the best average of all methods (paper: both models, 39.7 and 40.4)"),
        all_hold(text, (_best(results, results.shown(benchmark), [benchmark]) for benchmark in hard)),
        *_gains(results),
        *(above_by_seed(results, text, "ots", rival) for text, rival in others.items()),
    ]
    if "Countdown" in results.benchmarks:
        text = "On Countdown the vote over random samples is below that over low-confidence samples "
        text += "(paper: 12.7 and 20.7)"
        claims.append(above_by_seed(results, text, "low-confidence-vote", "random-vote", ["Countdown"]))
    return claims + _post_trained(results)


def _gains(results: Results) -> list[Claim]:
    """Judge the gains over low-confidence, beside the paper's for the same model or for LLaDA-8B."""
    rows = paper("table-1", results.setup.model)
    ots, path = rows["ots"], rows["low-confidence"]
    text = f"OTS is above low-confidence on average (paper: {ots['average'] - path['average']:+.1f})"
    claims = [above_by_seed(results, text, "ots", "low-confidence")]
    for benchmark in results.benchmarks:
        gain = ots["averages"][benchmark] - path["averages"][benchmark]
        text = f"OTS is above low-confidence on {results.shown(benchmark)} (paper, {benchmark}: {gain:+.1f})"
        claims.append(above_by_seed(results, text, "ots", "low-confidence", [benchmark]))
    return claims


def _post_trained(results: Results) -> list[Claim]:
    """Compare with a published figure by our standard error alone, since there are no problems to pair with."""
    figures, claims = paper("table-1")["d1-LLaDA"], []
    for benchmark in (each for each in results.benchmarks if each in figures and results.shown(each) == each):
        if result := results.by_length(benchmark, "ots").get(LENGTH):
            text = f"OTS at L={LENGTH} is above d1-LLaDA, which was post-trained, on {benchmark} "
            text += f"(published: {figures[benchmark]})"
            outcome = beyond(result.accuracy, figures[benchmark] / 100)
            claims.append(Claim(text, outcome, percent(result.accuracy).text))
    return claims


def _best(results: Results, text: str, benchmarks: Names = None) -> Claim:
    """Judge the claim that OTS is above the best of the others."""
    chosen = results.benchmarks if benchmarks is None else benchmarks
    rivals = [method.name for method in results.methods if method.name != "ots"]
    if not rivals:
        return Claim(text, "not asked", "no other method")
    means = {name: sum(results.accuracy(each, name).value or 0.0 for each in chosen) for name in rivals}
    return above_by_seed(results, text, "ots", max(means, key=means.__getitem__), benchmarks)


def _tuning_parts(setup: Setup) -> list[Part]:
    tunable = [benchmark for benchmark in setup.chosen(*BENCHMARKS) if benchmark in setup.tuning]
    if not tunable:
        raise UnmaskError(f"--grid has no problems to choose on: those of {', '.join(setup.tuning)} are known")
    methods = tuple(
        Method(f"ots-{beams}-{tau}", f"K={beams}, τ={tau}", f"ots(beams={beams}, temperature={tau})")
        for beams, tau in product(BEAMS, TEMPERATURES)
    )
    parts = []
    for benchmark in tunable:
        for kind, task in ((OTHERS, setup.tuning[benchmark]), (TESTED, setup.tasks[benchmark])):
            name = benchmark + kind
            parts.append(Part(name.lower(), name, task, methods, setup.table(benchmark), setup.few or FEW))
    return parts


def _tuning_table(results: Results) -> Table:
    """Show K and τ chosen as in the paper, but on problems that are not the tested ones.

    The paper does not say on which split it chose. The best setting on the tested problems is shown as hindsight.
    """
    body = []
    for part in (each for each in results.parts if each.benchmark.endswith(TESTED) and each.name in results.runs):
        benchmark = part.benchmark.removesuffix(TESTED)
        kinds = (benchmark + OTHERS, part.benchmark)
        chosen, best = (_best_setting(results, kind, part.methods) for kind in kinds)
        figures = [results.accuracy(kind, chosen.name) for kind in kinds]
        hindsight = results.accuracy(part.benchmark, best.name)
        body.append((benchmark, results.accuracy(benchmark, "ots"), chosen.label, *figures, best.label, hindsight))
    head = ("benchmark", "OTS as it is", "chosen", "on other problems", "on the tested", "hindsight", "best on test")
    problems = sorted({part.limit for part in results.parts if part.benchmark.endswith(KINDS) and part.limit})
    title = f"K and τ chosen on other problems, accuracy, %, n={'–'.join(map(str, problems))} of each kind"
    return Table.of("accuracy", title, head, body, rank=False)


def _best_setting(results: Results, benchmark: str, methods: Sequence[Method]) -> Method:
    """Return the best of the methods; ties go to fewer beams, then to the lower temperature."""
    return max(methods, key=lambda method: results.accuracy(benchmark, method.name).value or 0.0)


EXPERIMENT = Experiment("table-1", "Table 1", __doc__, parts, findings)
