"""A self-contained HTML page of a report: tables, plots, and every output beside that of a second decoder.

Names and texts are untrusted. The template escapes them; the records are embedded as JSON in which no tag can end or
begin, and the script shows them as text only. The content policy of a page allows no other script and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from unmask.report.gather import Group, natural, visible
from unmask.report.plots import describe, draw
from unmask.report.tables import BEST, SECOND, ordered_labels
from unmask.runs.files import strict_json
from unmask.runs.record import Cell, Record

if TYPE_CHECKING:
    from unmask.report.run_report import RunReport

STATIC = Path(__file__).with_name("static")
SHOWN = ("problem", "seed", "sample", "text", "answer", "score", "likelihood", "error")  # fields of a record


def render_template(template: Path, style: str, script: str, **values: Any) -> str:
    """Render a page whose content policy allows exactly this style and this script."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, STATIC]),  # every page extends `document.html`
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else visible(str(value)),
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    own = {"style": Markup(style), "style_hash": content_hash(style)}
    own |= {"script": Markup(script), "script_hash": content_hash(script)}
    return environment.get_template(template.name).render(own | values)


def content_hash(text: str) -> Markup:
    """Return the name of a style or script in a content policy."""
    return Markup("sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())


def embed(value: Any) -> Markup:
    """Return JSON for a script element; it holds no <, > or &, and so no tag or comment."""
    return htmlsafe_json_dumps(value, dumps=strict_json)


def render_page(report: RunReport, page: Path) -> str:
    """Return the page of a report, with links to traces relative to the file `page`."""
    style, script = (STATIC.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    images = [(describe(plot), base64.b64encode(draw(plot, "svg")).decode()) for plot in report.plots]
    return render_template(
        STATIC / "page.html",
        style,
        script,
        report=report,
        summary=summary(report.groups),
        tags={BEST: "b", SECOND: "u"},
        images=images,
        data=embed(outputs(report, page)),
    )


def summary(groups: Sequence[Group]) -> str:
    counts = (
        (len({group.model for group in groups}), "model"),
        (len({group.task for group in groups}), "task"),
        (len(_labels(groups, None)), "decoder"),
        (sum(len(records) for group in groups for records in group.records.values()), "record"),
    )
    return ", ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in counts)


def _labels(groups: Sequence[Group], baseline: str | None) -> list[str]:
    return ordered_labels((each for group in groups for each in group.series if each.samples == 1), baseline)


def outputs(report: RunReport, page: Path) -> dict[str, Any]:
    """Return what the script of the page shows: every record, and the place of its trace."""
    labels = _labels(report.groups, report.baseline)
    first = report.baseline if report.baseline in labels else labels[0] if labels else ""
    folders = sorted({path.parent for path in report.traces.values()})
    prompts: dict[str, int] = {}
    cells, rows = [], []
    for group in report.groups:
        for cell, records in group.records.items():
            for record in records:
                path = report.traces.get(record.name)
                trace = path and (folders.index(path.parent), path.name)
                prompt = prompts.setdefault(record.prompt, len(prompts))
                rows.append((_order(record), {"cell": len(cells), "prompt": prompt, "trace": trace} | _shown(record)))
            cells.append(_cell(group, cell))
    rows.sort(key=lambda row: (row[0], row[1]["cell"]))
    return {
        "models": sorted({group.model for group in report.groups}),
        "tasks": sorted({group.name for group in report.groups}),
        "lengths": sorted({length for group in report.groups for length in group.lengths}),
        "labels": labels,
        "first": first,
        "second": next((label for label in reversed(labels) if label != first), ""),
        "cells": cells,
        "prompts": list(prompts),
        "folders": [(quote(os.path.relpath(folder, page.parent)), str(folder)) for folder in folders],
        "fields": list(rows[0][1]) if rows else [],
        "records": [list(row.values()) for _, row in rows],
    }


def _cell(group: Group, cell: Cell) -> dict[str, Any]:
    labels = [each.label for each in group.series if each.samples == 1 and each.cells.get(cell.length) == cell]
    return {"model": cell.model, "task": group.name, "length": cell.length, "labels": labels}


def _order(record: Record) -> tuple[Any, ...]:
    return record.model, record.task, record.length, natural(record.problem), record.seed, record.sample


def _shown(record: Record) -> dict[str, Any]:
    """Return the fields of a record that the page shows; the script finds them by name."""
    right = 0 if record.error is not None else None if record.right is None else int(record.right)
    own = {name: getattr(record, name) for name in SHOWN}
    return own | {"right": right, "forward_passes": record.cost.forward_passes}
