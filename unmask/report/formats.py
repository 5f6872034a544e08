"""Tables in three formats: terminal, Markdown, CSV. The HTML page has its own module."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from unmask.report.labels import visible
from unmask.report.tables import BEST, SECOND, Table, TableCell

_STYLES = {BEST: "bold", SECOND: "underline"}


def terminal(tables: Sequence[Table]) -> None:
    """At the terminal's own width; into a pipe or a file, as wide as the tables."""
    console = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 400)
    for table in tables:
        shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for place, name in enumerate(table.head):
            shown.add_column(Text(visible(name)), justify="right" if place else "left", no_wrap=place > 0)
        for row in table.rows:
            shown.add_row(*(Text(visible(cell.text), _STYLES.get(cell.rank, "")) for cell in row))
        console.print(Text(visible(table.title), "bold"))
        console.print(shown)
        for note in table.notes:
            console.print(Text(visible(note), "dim"))
        console.print()


def markdown(tables: Sequence[Table], legend: Sequence[tuple[str, str]]) -> str:
    parts = [
        "# Report",
        "Accuracy ± standard error over problems, or a 95 % interval where they all agree; **best**, <u>second</u>.",
    ]
    parts += [part for table in tables for part in (f"## {escape(table.title)}", *table_markdown(table))]
    if legend:
        lines = [f"- {escape(label)}: {escape(full)}" for label, full in legend]
        parts += ["## Decoders, every setting written out", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> list[str]:
    """The table and its notes, each a paragraph."""
    head = "| " + " | ".join(map(escape, table.head)) + " |"
    rule = "|" + "|".join(["---"] + ["---:"] * (len(table.head) - 1)) + "|"
    body = ["| " + " | ".join(map(_marked, row)) + " |" for row in table.rows]
    return ["\n".join([head, rule, *body]), *map(escape, table.notes)]


def comma_separated(cells: Sequence[dict[str, Any]]) -> str:
    """One line per cell, figures unrounded; columns for pass@k and the comparison where there are any."""
    ks = sorted({int(k) for cell in cells for k in cell["pass"]})
    against = (
        ("n", "difference", "low", "high", "better", "worse", "p", "p_corrected")
        if any(c["against"] for c in cells)
        else ()
    )
    plain = [key for key in cells[0] if key not in ("pass", "against")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*plain, *(f"pass@{k}" for k in ks), *(f"against_{word}" for word in against)])
    for cell in cells:
        figures = [cell[word] for word in plain]
        figures += [cell["pass"].get(str(k)) for k in ks]
        figures += [(cell["against"] or {}).get(word) for word in against]
        writer.writerow(["" if value is None else value for value in figures])
    return text.getvalue()


def _marked(cell: TableCell) -> str:
    text = escape(cell.text)
    return f"**{text}**" if cell.rank == BEST else f"<u>{text}</u>" if cell.rank == SECOND else text


def escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", visible(text))
