"""A self-contained HTML page: tables, plots, and every output beside another decoder's.

Names and texts are untrusted. Markup escapes them; the records are embedded as JSON in which no tag can end or begin,
and the script shows them as text only. The page's content policy allows no other script and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from unmask.report.gather import Group, natural, visible
from unmask.report.plots import Plot, describe
from unmask.report.provenance import Source
from unmask.report.tables import BEST, SECOND, Table, TableCell
from unmask.runs.record import Name, Record

STATIC = Path(__file__).with_name("static")
FIELDS = (
    *("cell", "problem", "seed", "sample", "prompt", "text", "answer"),
    *("right", "score", "likelihood", "forward_passes", "error", "trace"),
)
TITLE = "unmask report"


def render_page(
    groups: Sequence[Group],
    tables: Sequence[Table],
    images: Sequence[tuple[Plot, bytes]],
    legend: Sequence[tuple[str, str]],
    sources: Sequence[Source],
    data: Mapping[str, Any],
) -> str:
    style, script = _static("page.css"), _static("page.js")
    parts = {
        "title": TITLE,
        "summary": html.escape(summary(groups)),
        "style": style,
        "style-hash": _hash(style),
        "script": script,
        "script-hash": _hash(script),
        "tables": "\n".join(map(_table, tables)),
        "plots": "\n".join(_image(plot, svg) for plot, svg in images) or "<p>There is nothing to draw.</p>",
        "sources": "\n".join(map(_source, sources)) or "<p>The runs do not say.</p>",
        "legend": "\n".join(f"<dt>{_text(label)}</dt><dd>{_text(full)}</dd>" for label, full in legend),
        "data": embed(data),
    }
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda match: parts[match[1]], _static("page.html"))


def summary(groups: Sequence[Group]) -> str:
    counts = (
        (len({group.model for group in groups}), "model"),
        (len({group.task for group in groups}), "task"),
        (len(_labels(groups, None)), "decoder"),
        (sum(len(records) for group in groups for records in group.records.values()), "record"),
    )
    return ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in counts)


def embed(value: Any) -> str:
    """JSON for a script element: without <, > and & it cannot hold a tag or a comment.

    Half a surrogate pair cannot be encoded; it becomes a question mark.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = text.encode("utf-8", "replace").decode()
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _source(source: Source) -> str:
    facts = {
        "records": source.progress,
        "begun": source.created,
        "version": source.unmask,
        "machine": source.machine,
    }
    rows = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value)
    commands = "".join(
        f"<dt>command{_text(f' of {date}' if date else '')}</dt><dd><code>{_text(command)}</code></dd>"
        for date, command in zip(source.dates, source.commands, strict=True)
    )
    return f"<h3>{_text(source.folder)}</h3><dl>{rows}{commands}</dl>"


def outputs(groups: Sequence[Group], baseline: str | None, traces: Mapping[Name, Path], page: Path) -> dict[str, Any]:
    """What the page's script shows: every record, and where its trace is."""
    labels = _labels(groups, baseline)
    folders = sorted({path.parent for path in traces.values()})
    first = baseline if baseline in labels else labels[0] if labels else ""
    prompts: dict[str, int] = {}
    cells, rows = [], []
    for group in groups:
        for cell, records in group.records.items():
            named = [each.label for each in group.series if each.samples == 1 and each.cells.get(cell.length) == cell]
            cells.append({"model": cell.model, "task": group.name, "length": cell.length, "labels": named})
            for record in records:
                order = (cell.model, cell.task, cell.length, natural(record.problem), record.seed, record.sample)
                prompt, path = prompts.setdefault(record.prompt, len(prompts)), traces.get(record.name)
                trace = path and (folders.index(path.parent), path.name)
                rows.append((order, [len(cells) - 1, *_fields(record, prompt), trace]))
    rows.sort(key=lambda row: (row[0], row[1][0]))
    return {
        "fields": FIELDS,
        "models": sorted({group.model for group in groups}),
        "tasks": sorted({group.name for group in groups}),
        "lengths": sorted({length for group in groups for length in group.lengths}),
        "labels": labels,
        "first": first,
        "second": next((label for label in reversed(labels) if label != first), ""),
        "cells": cells,
        "prompts": list(prompts),
        "folders": [(quote(os.path.relpath(folder, page.parent)), str(folder)) for folder in folders],
        "records": [row for _, row in rows],
    }


def _fields(record: Record, prompt: int) -> tuple[Any, ...]:
    name = (record.problem, record.seed, record.sample, prompt, record.text, record.answer)
    right = 0 if record.error is not None else None if record.right is None else int(record.right)
    return (*name, right, record.score, record.likelihood, record.cost.forward_passes, record.error)


def _labels(groups: Sequence[Group], baseline: str | None) -> list[str]:
    """The baseline, then the cheapest first, as in the tables."""
    costs = {each.label: each.mean_cost() for group in groups for each in group.series if each.samples == 1}
    return sorted(costs, key=lambda label: (label != baseline, costs[label], label))


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.head)
    body = "\n".join(
        f'<tr><th scope="row">{_text(row[0].text)}</th>{"".join(map(_cell, row[1:]))}</tr>' for row in table.rows
    )
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    title = _text(table.title)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{title}"><table><caption>{title}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{notes}"
    )


def _cell(cell: TableCell) -> str:
    tag = {BEST: "b", SECOND: "u"}.get(cell.rank)
    return f"<td><{tag}>{_text(cell.text)}</{tag}></td>" if tag else f"<td>{_text(cell.text)}</td>"


def _image(plot: Plot, svg: bytes) -> str:
    """As an image and not as markup, so that the ids inside two plots cannot clash."""
    source = base64.b64encode(svg).decode()
    return f'<img src="data:image/svg+xml;base64,{source}" alt="{_text(describe(plot))}" loading="lazy">'


def _text(text: str) -> str:
    return html.escape(visible(text))


def _static(name: str) -> str:
    return STATIC.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
