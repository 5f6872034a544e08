"""Does Order-Token Search solve more problems than the other decoders, at about the cost of a vote?"""

from __future__ import annotations

from unmask.experiments import tuning
from unmask.experiments.experiment import Claim, Experiment, Findings, above_by_seed, all_hold
from unmask.experiments.methods import ABLATIONS, Part, table_parts, ten
from unmask.experiments.paper import MODELS, model_of, paper, published_columns
from unmask.experiments.paper_tables import averages, benchmark_table, paired_picture, paired_table
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.report.tables import Table

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
LENGTH = 512  # of the published d1-LLaDA figures


def parts(setup: Setup) -> list[Part]:
    return table_parts(setup, BENCHMARKS, ten(setup)) + (tuning.parts(setup, BENCHMARKS) if setup.grid else [])


def findings(evidence: Evidence) -> Findings:
    rows = paper("table-1")["models"]
    published = {f"paper: {model}": {name: row["average"] for name, row in rows[model].items()} for model in MODELS}
    tuned = [tuning.table(evidence)] if evidence.setup.grid else []
    evidence = tuning.without(evidence)
    tables = [_benchmark(evidence, benchmark) for benchmark in evidence.benchmarks]
    tables += [averages(evidence, published), paired_table(evidence, "ots"), *tuned]
    return Findings(tables, _claims(evidence), pictures=paired_picture(evidence, "ots"))


def _benchmark(evidence: Evidence, benchmark: str) -> Table:
    tuned = paper("table-1")["d1-LLaDA"]
    notes = [f"After post-training, {tuned['source']}: {tuned[benchmark]}."] if benchmark in tuned else []
    published = published_columns("table-1", evidence.setup.model, benchmark)
    return benchmark_table(evidence, benchmark, published, notes=notes)


def _claims(evidence: Evidence) -> list[Claim]:
    hard = [benchmark for benchmark in evidence.benchmarks if benchmark != "GSM8K"]
    names = ", ".join(map(evidence.shown, hard))
    best = [_best(evidence, evidence.shown(benchmark), [benchmark]) for benchmark in hard]
    others = {
        "OTS is above the vote over low-confidence samples, at equal cost": "low-confidence-vote",
        "OTS is above AR with beam search": "ar-beam",
        **{f"{evidence.label(name)} is below OTS": name for name in ABLATIONS},
    }
    return [
        _best(
            evidence, "OTS has the best average of all methods (paper: both models, 39.7 and 40.4)", evidence.benchmarks
        ),
        all_hold(f"OTS is the best on {names} (paper: MATH500, Countdown, HumanEval)", best),
        *_gains(evidence),
        *(above_by_seed(evidence, text, "ots", rival) for text, rival in others.items()),
        *_votes(evidence),
        *_post_trained(evidence),
    ]


def _gains(evidence: Evidence) -> list[Claim]:
    """Over low-confidence, beside the paper's for the same model; other models get those of LLaDA-8B."""
    rows = paper("table-1")["models"][model_of(evidence.setup.model) or MODELS[0]]
    ots, path = rows["ots"], rows["low-confidence"]
    text = f"OTS is above low-confidence on average (paper: {ots['average'] - path['average']:+.1f})"
    claims = [above_by_seed(evidence, text, "ots", "low-confidence")]
    for benchmark in evidence.benchmarks:
        gain = ots["averages"][benchmark] - path["averages"][benchmark]
        text = f"OTS is above low-confidence on {evidence.shown(benchmark)} (paper, {benchmark}: {gain:+.1f})"
        claims.append(above_by_seed(evidence, text, "ots", "low-confidence", [benchmark]))
    return claims


def _votes(evidence: Evidence) -> list[Claim]:
    if "Countdown" not in evidence.benchmarks:
        return []
    text = "On Countdown the vote over random samples is below that over low-confidence samples (paper: 12.7 and 20.7)"
    return [above_by_seed(evidence, text, "low-confidence-vote", "random-vote", ["Countdown"])]


def _post_trained(evidence: Evidence) -> list[Claim]:
    """Against a published figure, which has no problems to pair with: by our standard error alone."""
    figures, claims = paper("table-1")["d1-LLaDA"], []
    for benchmark in evidence.benchmarks:
        result = evidence.results(benchmark, "ots").get(LENGTH)
        if benchmark not in figures or result is None or evidence.shown(benchmark) != benchmark:
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


def _best(evidence: Evidence, text: str, benchmarks: list[str]) -> Claim:
    """Against the best of the others."""
    rivals = [method.name for method in evidence.methods if method.name != "ots"]
    if not rivals:
        return Claim(text, "not asked", "no other method")
    means = {name: sum(evidence.accuracy(each, name).value or 0.0 for each in benchmarks) for name in rivals}
    return above_by_seed(evidence, text, "ots", max(means, key=means.__getitem__), benchmarks)


EXPERIMENT = Experiment("table-1", "Table 1", __doc__, parts, findings)
