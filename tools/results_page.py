"""Write the results page from stored records: `python -m tools.results_page [DOCS]`, or `make results`.

Every `data/results/NAME.jsonl.gz` from `unmask reproduce NAME --compact` becomes a section with its tables, claims and
figures. The same records give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from unmask.experiments import EXPERIMENTS, Experiment
from unmask.experiments.archive import read_packed
from unmask.experiments.experiment import SIGNS, Findings
from unmask.experiments.results import Evidence, settings_run
from unmask.report.formats import escape, table_markdown

RECORDS, PAGE, FIGURES = Path("data/results"), "results.md", "results"
NOTE = "<!-- Written by `make results` from the records in docs/data/results: run experiments instead of editing. -->"
HEAD = """# Results

No weights of LLaDA or Dream were at hand: every accuracy here is that of the embedded model on generated problems
(mini-gsm stands for GSM8K, mini-math for MATH500, mini-code for HumanEval), so only differences between decoders bear
on the paper's claims, never their levels. Order-Token Search is above low-confidence remasking and above a vote on
average, by less than in the paper; of its lead on single tasks only that on Countdown is decided. With its default
budget [our search](search.md) is above every other decoder. The first figure shows accuracy against cost, the second
the paper's Table 1. Settings were chosen on validation problems, never on these.

![Accuracy of every decoder against its rows](pictures/frontier.svg)

![Table 1 here: Order-Token Search minus each other method](results/table-1.svg)

Accuracy is in percent ± its standard error over problems; **best**, <u>second</u> where all rows have the same
problems; rows are the paper's NFE ÷ L. A claim *holds* or *does not hold* if a two-sided paired test says so at 5 %;
otherwise it is *not decided*. No test is corrected for the number of tests unless its figures say so. [How to run
them](reproduce.md)."""


def pages(docs: Path) -> dict[str, bytes]:
    """By path under the documentation's folder; empty if no records are stored."""
    stored = {name: docs / RECORDS / f"{name}.jsonl.gz" for name in EXPERIMENTS}
    evidence = {name: read_packed(path) for name, path in stored.items() if path.exists()}
    if not evidence:
        return {}
    findings = {name: EXPERIMENTS[name].findings(each) for name, each in evidence.items()}
    parts, files = [NOTE, HEAD, _overview(findings)], {}
    for name, each in evidence.items():
        images = findings[name].images("svg")
        parts += [*_section(EXPERIMENTS[name], each, findings[name]), *map(_link, images)]
        files |= {f"{FIGURES}/{file}": image for file, image in images.items()}
    return {PAGE: ("\n\n".join(parts) + "\n").encode()} | files


def _overview(findings: Mapping[str, Findings]) -> str:
    lines = ["| experiment | claim | here | figures |", "|---|---|---|---|"]
    for name, each in findings.items():
        for claim in each.claims:
            outcome = f"{SIGNS[claim.outcome]} {claim.outcome}"
            lines.append(f"| [{name}](#{name}) | {escape(claim.text)} | {outcome} | {escape(claim.figures)} |")
    return "\n".join(lines)


def _section(experiment: Experiment, evidence: Evidence, findings: Findings) -> Iterator[str]:
    yield f"## {experiment.name}"
    yield f"{experiment.question} ({escape(experiment.source)})"
    yield f"```sh\n{evidence.command}\n```"
    yield _circumstances(evidence)
    for table in findings.tables:
        yield f"**{escape(table.title)}**"
        yield from table_markdown(table)
    if findings.text:
        yield f"```\n{findings.text.rstrip()}\n```"


def _link(file: str) -> str:
    return f"![{file.removesuffix('.svg')}]({FIGURES}/{file})"


def _circumstances(evidence: Evidence) -> str:
    """Model, settings, machine, precision, seeds and cost, all of them as recorded."""
    setup, runs = evidence.setup, list(evidence.runs.values())
    words = [f"Model `{setup.model}`; {settings_run(evidence)}"]
    if runs:
        spec, machine = runs[0].spec, runs[0].head["machine"]
        device = machine["gpu"] if spec["device"] == "cuda" else machine["platform"]
        records = [record for run in runs for record in run.records]
        rows = sum(record.cost.forward_passes for record in records)
        minutes = sum(record.measured.seconds for record in records) / 60
        words.append(_arithmetic(spec["dtype"], spec["precision"], device, machine["torch"]))
        words.append(f"seeds {', '.join(map(str, sorted({record.seed for record in records})))}")
        words.append(
            f"{len(records):,} answers, {rows:,} rows, {minutes:.1f} minutes of decoding, added up over processes"
        )
    elif (measured := evidence.measured) and (machine := measured.get("machine")):
        words.append(_arithmetic(machine.get("dtype"), measured["precision"], machine["name"], machine["torch"]))
    return "; ".join(words) + "."


def _arithmetic(dtype: str | None, precision: str, device: str, torch: str) -> str:
    """Records of earlier versions may lack the dtype."""
    rounded = " with products in TF32" if precision == "high" and dtype == "float32" else ""
    return f"{dtype}{rounded} on {device}, torch {torch}" if dtype else f"on {device}, torch {torch}"


def main(docs: Path = Path("docs")) -> None:
    for name, content in pages(docs).items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
