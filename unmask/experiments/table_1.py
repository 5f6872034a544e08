"""Does Order-Token Search answer more problems rightly than the other decoders, at about the cost of a vote?"""

from __future__ import annotations

from unmask.experiments import tuning
from unmask.experiments.cells import Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import ABLATIONS, tabled, ten
from unmask.experiments.paper import MODELS, model_of, paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import averages, cells, paired, picture
from unmask.experiments.verdicts import above, all_of
from unmask.report.tables import Table

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval")
SOURCE = "Table 1"


def parts(setting: Setting) -> list[Part]:
    return tabled(setting, BENCHMARKS, ten(setting)) + (tuning.parts(setting, BENCHMARKS) if setting.grid else [])


def findings(found: Found) -> Findings:
    said = paper("table-1")
    published = {model: {name: row["average"] for name, row in said["models"][model].items()} for model in MODELS}
    tuned = [tuning.table(found)] if found.setting.grid else []
    found = tuning.without(found)
    tables = [_benchmark(found, benchmark) for benchmark in found.benchmarks]
    tables += [averages(found, published), paired(found, "ots")]
    return Findings(tables + tuned, verdicts(found), pictures=picture(found, "ots"))


def _benchmark(found: Found, benchmark: str) -> Table:
    said = paper("table-1")
    rows = said["models"][model_of(found.setting.model) or MODELS[0]]
    beside = {name: (*row["benchmarks"][benchmark], row["averages"][benchmark]) for name, row in rows.items()}
    tuned = said["d1-LLaDA"]
    notes = [f"After post-training, {tuned['source']}: {tuned[benchmark]}."] if benchmark in tuned else []
    return cells(found, benchmark, beside, [*map(str, said["lengths"]), "average"], notes=notes)


def verdicts(found: Found) -> list[Verdict]:
    all_ = found.benchmarks
    rivals = [method.name for method in found.methods if method.name != "ots"]

    def than(claim: str, before: str, *benchmarks: str) -> Verdict:
        return above(found, claim, SOURCE, "ots", before, benchmarks or all_)

    made = [_best(found, "OTS has the best average of all methods", all_, rivals)]
    hard = [benchmark for benchmark in all_ if benchmark != "GSM8K"]
    made.append(
        all_of(
            f"OTS is the best on {', '.join(map(found.shown, hard))} (paper: MATH500, Countdown, HumanEval)",
            SOURCE,
            [_best(found, found.shown(benchmark), [benchmark], rivals) for benchmark in hard],
        )
    )
    made.append(than("OTS is above low-confidence on average (paper: +5.4)", "low-confidence"))
    gains = {"GSM8K": 3.1, "MATH500": 3.8, "Countdown": 7.9, "HumanEval": 6.8}
    for benchmark in all_:
        claim = f"OTS is above low-confidence on {found.shown(benchmark)} (paper, {benchmark}: +{gains[benchmark]})"
        made.append(than(claim, "low-confidence", benchmark))
    made.append(than("OTS is above the vote over low-confidence samples, at equal cost", "low-confidence-vote"))
    made.append(than("OTS is above AR with beam search", "ar-beam"))
    made += [than(f"{found.label(name)} is below OTS", name) for name in ABLATIONS]
    return made


def _best(found: Found, claim: str, benchmarks: list[str], rivals: list[str]) -> Verdict:
    """Against the best of the others, whoever that is here."""
    means = {name: sum(found.accuracy(one, name).value or 0.0 for one in benchmarks) for name in rivals}
    if not means:
        return Verdict(claim, SOURCE, "not asked", "no other method")
    return above(found, claim, SOURCE, "ots", max(means, key=means.__getitem__), benchmarks)


EXPERIMENT = Experiment("table-1", SOURCE, __doc__ or "", parts, findings)
