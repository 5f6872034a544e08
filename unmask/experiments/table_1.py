"""Does Order-Token Search solve more problems than the other decoders, at about the cost of a vote?"""

from __future__ import annotations

from unmask.experiments import tuning
from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Claim, Experiment, Findings, above, all_hold
from unmask.experiments.methods import ABLATIONS, Part, table_parts, ten
from unmask.experiments.paper import MODELS, paper, published_columns
from unmask.experiments.paper_tables import averages, benchmark_table, paired_picture, paired_table
from unmask.experiments.setup import Setup
from unmask.report.tables import Table

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
GAINS = {"GSM8K": 3.1, "MATH500": 3.8, "Countdown": 7.9, "HumanEval": 6.8}  # of the paper, over low-confidence


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
    shown = {benchmark: evidence.shown(benchmark) for benchmark in evidence.benchmarks}
    gains = {
        f"OTS is above low-confidence on {name} (paper, {benchmark}: +{GAINS[benchmark]})": benchmark
        for benchmark, name in shown.items()
    }
    others = {
        "OTS is above the vote over low-confidence samples, at equal cost": "low-confidence-vote",
        "OTS is above AR with beam search": "ar-beam",
        **{f"{evidence.label(name)} is below OTS": name for name in ABLATIONS},
    }
    return [
        _best(evidence, "OTS has the best average of all methods", evidence.benchmarks),
        all_hold(f"OTS is the best on {names} (paper: MATH500, Countdown, HumanEval)", best),
        above(evidence, "OTS is above low-confidence on average (paper: +5.4)", "ots", "low-confidence"),
        *(above(evidence, text, "ots", "low-confidence", [benchmark]) for text, benchmark in gains.items()),
        *(above(evidence, text, "ots", rival) for text, rival in others.items()),
    ]


def _best(evidence: Evidence, text: str, benchmarks: list[str]) -> Claim:
    """Against the best of the others."""
    rivals = [method.name for method in evidence.methods if method.name != "ots"]
    if not rivals:
        return Claim(text, "not asked", "no other method")
    means = {name: sum(evidence.accuracy(each, name).value or 0.0 for each in benchmarks) for name in rivals}
    return above(evidence, text, "ots", max(means, key=means.__getitem__), benchmarks)


EXPERIMENT = Experiment("table-1", "Table 1", __doc__, parts, findings)
