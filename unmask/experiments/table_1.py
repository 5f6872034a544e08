"""Does Order-Token Search solve more problems than the other decoders, at about the cost of a vote?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.errors import UnmaskError
from unmask.experiments.experiment import Claim, Experiment, Findings, above_by_seed, all_hold
from unmask.experiments.methods import ABLATIONS, Method, Part, table_parts, ten
from unmask.experiments.results import Results
from unmask.experiments.setup import Setup
from unmask.experiments.tables import (
    MODELS,
    averages,
    benchmark_table,
    model_of,
    paired_picture,
    paired_table,
    paper,
    published_columns,
)
from unmask.report.tables import Table

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
LENGTH = 512  # of the published d1-LLaDA figures
BEAMS = (3, 5, 8)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)
SEPARATOR = " · "
FEW = 256  # problems of each kind, unless the setup has its own number
OTHERS, TESTED = "others", "tested"  # problems on which to choose, and those of the table


def parts(setup: Setup) -> list[Part]:
    return table_parts(setup, BENCHMARKS, ten(setup)) + (_tuning_parts(setup) if setup.grid else [])


def findings(results: Results) -> Findings:
    rows = paper("table-1")["models"]
    published = {f"paper: {model}": {name: row["average"] for name, row in rows[model].items()} for model in MODELS}
    tuned = [_tuning_table(results)] if results.setup.grid else []
    results = replace(results, parts=[part for part in results.parts if SEPARATOR not in part.benchmark])
    tables = [_benchmark(results, benchmark) for benchmark in results.benchmarks]
    tables += [averages(results, published), paired_table(results, "ots"), *tuned]
    return Findings(tables, _claims(results), pictures=paired_picture(results, "ots"))


def _benchmark(results: Results, benchmark: str) -> Table:
    tuned = paper("table-1")["d1-LLaDA"]
    notes = [f"After post-training, {tuned['source']}: {tuned[benchmark]}."] if benchmark in tuned else []
    published = published_columns("table-1", results.setup.model, benchmark)
    return benchmark_table(results, benchmark, published, notes=notes)


def _claims(results: Results) -> list[Claim]:
    hard = [benchmark for benchmark in results.benchmarks if benchmark != "GSM8K"]
    names = ", ".join(map(results.shown, hard))
    best = [_best(results, results.shown(benchmark), [benchmark]) for benchmark in hard]
    others = {
        "OTS is above the vote over low-confidence samples, at equal cost": "low-confidence-vote",
        "OTS is above AR with beam search": "ar-beam",
        **{f"{results.label(name)} is below OTS": name for name in ABLATIONS},
    }
    return [
        _best(
            results, "OTS has the best average of all methods (paper: both models, 39.7 and 40.4)", results.benchmarks
        ),
        all_hold(f"OTS is the best on {names} (paper: MATH500, Countdown, HumanEval)", best),
        *_gains(results),
        *(above_by_seed(results, text, "ots", rival) for text, rival in others.items()),
        *_votes(results),
        *_post_trained(results),
    ]


def _gains(results: Results) -> list[Claim]:
    """Judge the gains over low-confidence, beside the paper's for the same model or for LLaDA-8B."""
    rows = paper("table-1")["models"][model_of(results.setup.model) or MODELS[0]]
    ots, path = rows["ots"], rows["low-confidence"]
    text = f"OTS is above low-confidence on average (paper: {ots['average'] - path['average']:+.1f})"
    claims = [above_by_seed(results, text, "ots", "low-confidence")]
    for benchmark in results.benchmarks:
        gain = ots["averages"][benchmark] - path["averages"][benchmark]
        text = f"OTS is above low-confidence on {results.shown(benchmark)} (paper, {benchmark}: {gain:+.1f})"
        claims.append(above_by_seed(results, text, "ots", "low-confidence", [benchmark]))
    return claims


def _votes(results: Results) -> list[Claim]:
    if "Countdown" not in results.benchmarks:
        return []
    text = "On Countdown the vote over random samples is below that over low-confidence samples (paper: 12.7 and 20.7)"
    return [above_by_seed(results, text, "low-confidence-vote", "random-vote", ["Countdown"])]


def _post_trained(results: Results) -> list[Claim]:
    """Compare with a published figure by our standard error alone, since there are no problems to pair with."""
    figures, claims = paper("table-1")["d1-LLaDA"], []
    for benchmark in results.benchmarks:
        result = results.by_length(benchmark, "ots").get(LENGTH)
        if benchmark not in figures or result is None or results.shown(benchmark) != benchmark:
            continue
        ours, error = result.accuracy.value, result.accuracy.error
        text = (
            f"OTS at L=512 is above d1-LLaDA, which was post-trained, on {benchmark} (published: {figures[benchmark]})"
        )
        if ours is None or error is None:
            claims.append(Claim(text, "not decided", "too few problems"))
            continue
        lead = 100 * ours - figures[benchmark]
        outcome = "not decided" if abs(lead) <= 196 * error else "holds" if lead > 0 else "does not hold"
        claims.append(Claim(text, outcome, f"{100 * ours:.1f} ± {100 * error:.1f}"))
    return claims


def _best(results: Results, text: str, benchmarks: list[str]) -> Claim:
    """Judge the claim that OTS is above the best of the others."""
    rivals = [method.name for method in results.methods if method.name != "ots"]
    if not rivals:
        return Claim(text, "not asked", "no other method")
    means = {name: sum(results.accuracy(each, name).value or 0.0 for each in benchmarks) for name in rivals}
    return above_by_seed(results, text, "ots", max(means, key=means.__getitem__), benchmarks)


def _tuning_parts(setup: Setup) -> list[Part]:
    tunable = [benchmark for benchmark in setup.chosen(*BENCHMARKS) if benchmark in setup.tuning]
    if not tunable:
        raise UnmaskError(f"--grid has no problems to choose on: those of {', '.join(setup.tuning)} are known")
    methods = tuple(_search(beams, temperature) for beams in BEAMS for temperature in TEMPERATURES)
    limit = setup.few or FEW
    tasks = {
        _kind(benchmark, which): (task, setup.table(benchmark))
        for benchmark in tunable
        for which, task in ((OTHERS, setup.tuning[benchmark]), (TESTED, setup.tasks[benchmark]))
    }
    return [Part(name.lower(), name, task, methods, lengths, limit) for name, (task, lengths) in tasks.items()]


def _tuning_table(results: Results) -> Table:
    """Show K and τ chosen as in the paper, but on problems that are not the tested ones.

    The paper does not say on which split it chose. The best setting on the tested problems is shown as hindsight.
    """
    body = []
    for part in results.parts:
        benchmark, _, which = part.benchmark.partition(SEPARATOR)
        if which != TESTED or part.name not in results.runs:
            continue
        others = _kind(benchmark, OTHERS)
        chosen, best = (_best_setting(results, name, part.methods) for name in (others, part.benchmark))
        figures = [results.accuracy(name, chosen.name) for name in (others, part.benchmark)]
        hindsight = results.accuracy(part.benchmark, best.name)
        body.append((benchmark, results.accuracy(benchmark, "ots"), chosen.label, *figures, best.label, hindsight))
    head = ("benchmark", "OTS as it is", "chosen", "on other problems", "on the tested", "hindsight", "best on test")
    problems = sorted({part.limit for part in results.parts if SEPARATOR in part.benchmark and part.limit})
    title = f"K and τ chosen on other problems, accuracy, %, n={'–'.join(map(str, problems))} of each kind"
    return Table.of("accuracy", title, head, body, rank=False)


def _search(beams: int, temperature: float) -> Method:
    spec = f"ots(beams={beams}, temperature={temperature})"
    return Method(f"ots-{beams}-{temperature}", f"K={beams}, τ={temperature}", spec)


def _best_setting(results: Results, benchmark: str, methods: Sequence[Method]) -> Method:
    """Return the best of the methods; ties go to fewer beams, then to the lower temperature."""
    return max(methods, key=lambda method: results.accuracy(benchmark, method.name).value or 0.0)


def _kind(benchmark: str, which: str) -> str:
    return f"{benchmark}{SEPARATOR}{which}"


EXPERIMENT = Experiment("table-1", "Table 1", __doc__, parts, findings)
