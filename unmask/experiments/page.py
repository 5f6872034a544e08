"""`python -m unmask.experiments.page [DOCS]`: the results page, written from stored records alone (`make results`).

Every `data/results/NAME.jsonl.gz` that `unmask reproduce NAME --compact` made becomes a section with its tables,
verdicts and figures; the same records give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from unmask.experiments import EXPERIMENTS, Experiment
from unmask.experiments.experiment import Findings
from unmask.experiments.folder import Asked, read_packed
from unmask.experiments.found import Found
from unmask.experiments.reproduce import SIGNS, pictures
from unmask.report.formats import escape, table_markdown

RECORDS, PAGE, FIGURES = Path("data/results"), "results.md", "results"
NOTE = "<!-- Written by `make results` from the records in docs/data/results: run experiments instead of editing. -->"
HEAD = """# Results

What the paper's experiments give here, beside the paper's own figures. Accuracy is in percent ± its standard error
over problems; **best**, <u>second</u>; rows are the paper's NFE ÷ L. A claim *holds* or *does not hold* where a
two-sided paired test says so at 5 %, else it is *not decided*; no test is corrected for how many there are. Settings
were chosen on validation problems, never on these. On the embedded model generated families stand for the benchmarks
(mini-gsm for GSM8K, mini-math for MATH500, mini-code for HumanEval): their figures do not compare with the paper's,
only the differences between decoders do. [How to run them](reproduce.md)."""


def pages(docs: Path) -> dict[str, bytes]:
    """By path under the documentation's folder; nothing where no records are stored."""
    sections, files = [], {}
    for experiment, asked, found in stored(docs / RECORDS):
        findings = experiment.findings(found)
        sections.append((experiment, asked, found, findings))
        files |= {f"{FIGURES}/{name}": image for name, image in pictures(findings, ("svg",)).items()}
    if not sections:
        return {}
    parts = [NOTE, HEAD, _overview([(experiment, findings) for experiment, _, _, findings in sections])]
    for section in sections:
        parts += _section(*section)
    return {PAGE: ("\n\n".join(parts) + "\n").encode()} | files


def stored(folder: Path) -> Iterator[tuple[Experiment, Asked, Found]]:
    for name, experiment in EXPERIMENTS.items():
        path = folder / f"{name}.jsonl.gz"
        if path.exists():
            yield experiment, *read_packed(path)


def _overview(found: list[tuple[Experiment, Findings]]) -> str:
    lines = ["| experiment | claim | here | figures |", "|---|---|---|---|"]
    for experiment, findings in found:
        for one in findings.verdicts:
            link = f"[{experiment.name}](#{experiment.name})"
            words = (escape(one.claim), f"{SIGNS[one.outcome]} {one.outcome}", escape(one.said))
            lines.append(f"| {link} | " + " | ".join(words) + " |")
    return "\n".join(lines)


def _section(experiment: Experiment, asked: Asked, found: Found, findings: Findings) -> Iterator[str]:
    yield f"## {experiment.name}"
    yield f"{experiment.question.strip()} ({escape(experiment.source)})"
    yield f"```sh\n{asked.command}\n```"
    yield _circumstances(found)
    for table in findings.tables:
        yield f"**{escape(table.title)}**"
        yield from table_markdown(table)
    if findings.text:
        yield f"```\n{findings.text.rstrip()}\n```"
    for name in pictures(findings, ("svg",)):
        yield f"![{name.removesuffix('.svg')}]({FIGURES}/{name})"


def _circumstances(found: Found) -> str:
    """Model, machine, precision, seeds, and what it cost."""
    setting = found.setting
    said = [
        f"Model `{setting.model}`, K = {setting.beams}, τ = {setting.temperature} (votes {setting.vote_temperature})"
    ]
    for run in list(found.runs.values())[:1]:
        spec, machine = run.spec, run.head["machine"]
        where = machine["gpu"] if spec["device"] == "cuda" else machine["platform"]
        rounded = " with products in TF32" if spec["precision"] == "high" and spec["dtype"] == "float32" else ""
        said.append(f"{spec['dtype']}{rounded} on {where}, torch {machine['torch']}")
    if found.runs:
        records = [record for run in found.runs.values() for record in run.records]
        seeds = sorted({record.seed for record in records})
        rows, spent = sum(one.cost.rows for one in records), sum(one.measured.seconds for one in records)
        said.append(f"seeds {', '.join(map(str, seeds))}")
        said.append(f"{len(records):,} answers, {rows:,} rows, {spent / 60:.1f} minutes of decoding")
    return "; ".join(said) + "."


def main(docs: Path = Path("docs")) -> None:
    for name, content in pages(docs).items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
