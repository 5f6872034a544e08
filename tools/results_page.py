"""Write the results page and the marked tables of other pages from stored records: `make results`.

Every `docs/data/results/NAME.jsonl.gz` from `unmask reproduce NAME --compact` becomes a section of `docs/results.md`
with its tables, claims and figures. In README.md and the other pages, the lines between `<!-- results:NAME -->` and
`<!-- /results -->` are replaced by the table of that name in `TABLES`. The same records give the same bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError, nearest
from unmask.experiments import EXPERIMENTS, Experiment
from unmask.experiments.experiment import SIGNS, Findings
from unmask.experiments.results import Results, read_packed
from unmask.experiments.tables import accuracies
from unmask.report.formats import escape, table_markdown

RECORDS, PAGE, FIGURES = Path("data/results"), "results.md", "results"
NOTE = "<!-- Written by `make results` from the records in docs/data/results: run experiments instead of editing. -->"
HEAD = """# Results

No weights of LLaDA or Dream were available: every accuracy here is that of the embedded model on generated problems
(mini-gsm stands for GSM8K, mini-math for MATH500, mini-code for HumanEval), so only differences between decoders bear
on the paper's claims, never their levels. Order-Token Search is above low-confidence remasking and above a vote on
average, by less than in the paper; of its lead on single tasks only that on Countdown is decided. With its default
budget [our search](search.md) is above every other decoder. The first figure shows accuracy against cost, the second
the paper's Table 1. Settings were chosen on validation problems, never on these.

![Accuracy of every decoder against its forward passes](pictures/frontier.svg)

![Table 1 here: Order-Token Search minus each other method](results/table-1.svg)

Accuracy is in percent ± its standard error over problems; **best**, <u>second</u> where all rows have the same
problems; forward passes are the paper's NFE ÷ L: a batch of four sequences counts four. A claim *holds* or *does not
hold* if a two-sided paired test says so at 5 %; otherwise it is *not decided*. No test is corrected for the number of
tests unless its figures say so. [How to run them](reproduce.md)."""

REGION = re.compile(r"(<!-- results:([\w-]+) -->\n).*?(<!-- /results -->)", re.DOTALL)
COMPARED = {
    "low-confidence": "low-confidence remasking",
    "ots": "Order-Token Search, 4 beams (τ = 1.0)",
    "adaptive-995": "`adaptive(sure=0.995, block=64)`",
    "search-100": "`search`",
}
FAMILIES = {
    "GSM8K": "word problems",
    "MATH500": "exercises",
    "Countdown": "Countdown",
    "HumanEval": "programs",
    "Sudoku": "Sudoku",
}
ABLATIONS = {
    "search-100": "nothing",
    "no-deviations": "the first path alone, no second choices",
    "score-path": "second choices, judged by log p when written",
    "score-block": "second choices, judged by the paper's block score",
    "score-two": "second choices, judged by one pair of combs",
    "few-choices": "only second choices that are at least 0.3 as likely",
    "careless": "a less careful path, `sure=0.9`",
    "short-blocks": "blocks of 32 instead of 64",
}
CHECKED = {
    "path": "one adaptive path",
    "search": "`search`",
    "best-of-checked": "`best-of(n=16)`, checked",
    "search-checked": "`search`, checked",
    "search-200-checked": "`search(budget=320)`, checked",
}
APPROXIMATIONS = {
    "prefix": '`cache="prefix"`',
    "dual": '`cache="dual"`',
    "dual-8": '`cache="dual(refresh=8)"`',
    "dual-4": '`cache="dual(refresh=4)"`',
    "dual-2": '`cache="dual(refresh=2)"`',
    "sure": "`ots(sure=0.9)`",
    "early-end": "`early_end=True`",
}


def summary(results: Results) -> Iterator[tuple[str, ...]]:
    n = results.average("search-100").n
    yield ("decoder", f"right, % (mean of {len(results.benchmarks)} families, n = {n:,})", "forward passes", "computed")
    for method, label in COMPARED.items():
        yield (label, _percent(results, method)[-1], *_costs(results, method))


def families(results: Results) -> Iterator[tuple[str, ...]]:
    yield (
        "right, %",
        *map(FAMILIES.__getitem__, results.benchmarks),
        "mean",
        "forward passes",
        "on Countdown",
        "computed",
    )
    for method, label in COMPARED.items():
        passes, computed = _costs(results, method)
        (countdown,) = results.by_length("Countdown", method).values()
        yield (label, *_percent(results, method), passes, f"{countdown.cost['forward_passes']:.0f}", computed)


def ablations(results: Results) -> Iterator[tuple[str, ...]]:
    yield ("change", "right, %", "forward passes")
    for method, label in ABLATIONS.items():
        yield (label, _percent(results, method)[-1], _costs(results, method)[0])


def checked(results: Results) -> Iterator[tuple[str, ...]]:
    yield ("right, %", *map(FAMILIES.__getitem__, results.benchmarks), "mean", "forward passes")
    for method, label in CHECKED.items():
        yield (label, *_percent(results, method), _costs(results, method)[0])


def approximations(results: Results) -> Iterator[tuple[str, ...]]:
    yield ("option", "accuracy minus exact, points", "positions computed")
    for method, label in APPROXIMATIONS.items():
        if (change := results.difference(method, "ots")) is not None:
            points = f"{100 * change.value + 0.0:+.1f} ± {100 * (change.error or 0.0):.1f}".replace("-", "−")
            share = results.mean_cost(method, "positions") / results.mean_cost("ots", "positions")
            yield (label, points, f"{100 * share:.0f} %")


TABLES = {  # by name, the experiment and the rows of a table
    "summary": ("frontier", summary),
    "families": ("frontier", families),
    "ablations": ("frontier", ablations),
    "checked": ("check", checked),
    "approximations": ("approximations", approximations),
}


def _percent(results: Results, method: str) -> list[str]:
    return [f"{100 * (each.value or 0.0):.1f}" for each in accuracies(results, method)]


def _costs(results: Results, method: str) -> tuple[str, str]:
    return f"{results.mean_cost(method):.0f}", f"{results.mean_cost(method, 'computed'):.0f}"


def read_results(docs: Path) -> dict[str, Results]:
    """Return the stored results by experiment."""
    stored = {name: docs / RECORDS / f"{name}.jsonl.gz" for name in EXPERIMENTS}
    return {name: read_packed(path) for name, path in stored.items() if path.exists()}


def pages(docs: Path, results: Mapping[str, Results]) -> dict[Path, bytes]:
    """Return every file that is written, by path: the results page, its figures and the pages with marked tables."""
    if not results:
        return {}
    findings = {name: EXPERIMENTS[name].findings(each) for name, each in results.items()}
    parts, files = [NOTE, HEAD, _overview(findings)], {}
    for name, each in results.items():
        images = findings[name].images("svg")
        parts += [*_section(EXPERIMENTS[name], each, findings[name]), *map(_link, images)]
        files |= {docs / FIGURES / file: image for file, image in images.items()}
    return {docs / PAGE: ("\n\n".join(parts) + "\n").encode()} | files | marked_pages(docs, results)


def marked_pages(docs: Path, results: Mapping[str, Results]) -> dict[Path, bytes]:
    """Return README.md and the pages of the documentation that have marked tables, with these filled in."""
    texts = {
        path: path.read_text("utf-8")
        for path in (docs.parent / "README.md", *sorted(docs.glob("*.md")))
        if path.exists()
    }
    return {path: fill(text, results).encode() for path, text in texts.items() if REGION.search(text)}


def fill(text: str, results: Mapping[str, Results]) -> str:
    """Replace every marked table of a page."""

    def filled(region: re.Match[str]) -> str:
        name = region[2]
        if name not in TABLES:
            raise UnmaskError(f"unknown table 'results:{name}': {nearest(name, TABLES)}")
        experiment, rows = TABLES[name]
        head, *body = rows(results[experiment])
        rule = ["---", *["---:"] * (len(head) - 1)]
        return region[1] + "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *body)) + region[3]

    return REGION.sub(filled, text)


def _overview(findings: Mapping[str, Findings]) -> str:
    lines = ["| experiment | claim | here | figures |", "|---|---|---|---|"]
    for name, each in findings.items():
        for claim in each.claims:
            outcome = f"{SIGNS[claim.outcome]} {claim.outcome}"
            lines.append(f"| [{name}](#{name}) | {escape(claim.text)} | {outcome} | {escape(claim.figures)} |")
    return "\n".join(lines)


def _section(experiment: Experiment, results: Results, findings: Findings) -> Iterator[str]:
    yield f"## {experiment.name}"
    yield f"{experiment.question} ({escape(experiment.source)})"
    yield f"```sh\n{results.command}\n```"
    yield _conditions(results)
    for table in findings.tables:
        yield f"**{escape(table.title)}**"
        yield from table_markdown(table)
    if findings.text:
        yield f"```\n{findings.text.rstrip()}\n```"


def _link(file: str) -> str:
    return f"![{file.removesuffix('.svg')}]({FIGURES}/{file})"


def _conditions(results: Results) -> str:
    """Describe the model, settings, machine, precision, seeds and cost, all as recorded."""
    setup, runs = results.setup, list(results.runs.values())
    words = [f"Model `{setup.model}`; {settings_run(results)}"]
    if runs:
        spec, machine = runs[0].spec, runs[0].head["machine"]
        device = machine["gpu"] if spec["device"] == "cuda" else machine["platform"]
        records = [record for run in runs for record in run.records]
        passes = sum(record.cost.forward_passes for record in records)
        minutes = sum(record.measured.seconds for record in records) / 60
        words.append(_arithmetic(spec["dtype"], spec["precision"], device, machine["torch"]))
        words.append(f"seeds {', '.join(map(str, sorted({record.seed for record in records})))}")
        words.append(f"{len(records):,} answers, {passes:,} forward passes")
        words.append(f"{minutes:.1f} minutes of decoding, summed over processes")
    elif (measured := results.measured) and (machine := measured.get("machine")):
        words.append(_arithmetic(machine.get("dtype"), measured["precision"], machine["name"], machine["torch"]))
    return "; ".join(words) + "."


def _arithmetic(dtype: str | None, precision: str, device: str, torch: str) -> str:
    rounded = " with products in TF32" if precision == "high" and dtype == "float32" else ""
    return f"{dtype}{rounded} on {device}, torch {torch}" if dtype else f"on {device}, torch {torch}"


def settings_run(results: Results) -> str:
    """Describe the settings that ran, such as: K = 4; τ = 1.0 (searches), 0 and 0.7 (paths); votes of 5; L = 64."""
    values: dict[str, set[Any]] = {}
    for spec, length in sorted(_cells(results)):
        values.setdefault("L", set()).add(length)
        for name, value in _settings(decoder.make(spec)):
            values.setdefault(name, set()).add(value)
    words = [f"K = {_list(values['K'])}"] if "K" in values else []
    drawn = [f"{_list(values[kind])} ({kind})" for kind in ("searches", "paths") if kind in values]
    words += [f"τ = {', '.join(drawn)}"] if drawn else []
    words += [f"votes of {_list(values['n'])}"] if "n" in values else []
    return "; ".join([*words, f"L = {_list(values['L'])}"]) if values else ""


def _cells(results: Results) -> set[tuple[str, int]]:
    """Return the decoders and lengths of the records, or of the parts if there are no records."""
    records = {(record.decoder, record.length) for run in results.runs.values() for record in run.records}
    planned = {
        (method.spec, length) for part in results.parts for method, length in product(part.methods, part.lengths)
    }
    return records or planned


def _settings(chosen: Decoder) -> Iterator[tuple[str, Any]]:
    if hasattr(chosen, "n"):
        yield "n", chosen.n  # type: ignore[attr-defined]
    inner: Any = getattr(chosen, "inner", chosen)
    if hasattr(inner, "beams"):
        yield "K", inner.beams
    if hasattr(inner, "temperature"):
        yield "searches" if hasattr(inner, "beams") else "paths", float(inner.temperature)


def _list(values: Iterable[Any]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


def main(docs: Path = Path("docs")) -> None:
    for path, content in pages(docs, read_results(docs)).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
