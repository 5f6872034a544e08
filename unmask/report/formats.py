"""Tables in three formats: terminal, Markdown, CSV. The HTML page has its own module. Tables for a paper: LaTeX with the package booktabs, one `table` per table."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from unmask.environment import as_printed
from unmask.report.gather import visible
from unmask.report.tables import BEST, MISSING, SECOND, Table, TableCell

_STYLES = {BEST: "bold", SECOND: "underline"}
NAME = 24  # columns that a row's name has at least, if it needs them


def terminal(tables: Sequence[Table]) -> None:
    """At the terminal's own width; into a pipe or a file, as wide as the tables."""
    console = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 400)
    for table in tables:
        console.print(Text(_shown(table.title), "bold"))
        _print_rows(console, table) if _fits(console, table) else _print_stacked(console, table)
        for note in table.notes:
            console.print(Text(_shown(note), "dim"))
        console.print()


def _fits(console: Console, table: Table) -> bool:
    """Whether a row leaves its name a readable width."""
    columns = [
        [_shown(head), *(_shown(row[place].text) for row in table.rows)] for place, head in enumerate(table.head)
    ]
    widths = [max(map(cell_len, column)) for column in columns]
    return min(widths[0], NAME) + sum(widths[1:]) + 3 * len(widths[1:]) <= console.width


def _print_rows(console: Console, table: Table) -> None:
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(table.head):
        shown.add_column(Text(_shown(name)), justify="right" if place else "left", no_wrap=place > 0)
    for row in table.rows:
        shown.add_row(*(Text(_shown(cell.text), _STYLES.get(cell.rank, "")) for cell in row))
    console.print(shown)


def _print_stacked(console: Console, table: Table) -> None:
    """Each row below its name, for a terminal too narrow for columns."""
    for row in table.rows:
        console.print(Text(_shown(row[0].text)))
        line = Text("  ")
        for head, cell in zip(table.head[1:], row[1:], strict=True):
            part = Text.assemble((f"{_shown(head)} ", "dim"), (_shown(cell.text), _STYLES.get(cell.rank, "")), "  ")
            if cell.text == MISSING:
                continue
            if line.cell_len + part.cell_len - 2 > console.width and line.plain.strip():
                console.print(line)
                line = Text("  ")
            line.append_text(part)
        console.print(line)


def _shown(text: str) -> str:
    return as_printed(visible(text))


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


HEAD = "% Written by `unmask report --latex`. Needs \\usepackage{booktabs}. Bold: best, underlined: second.\n"
_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "÷": r"$\div$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "“": "``",
    "”": "''",
    "τ": r"$\tau$",
    "–": "--",
    "…": r"\dots{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))


def latex(tables: Sequence[Table], legend: Sequence[tuple[str, str]]) -> str:
    parts = [HEAD, *map(table_latex, tables)]
    if legend:
        lines = [f"% {label}: {full}" for label, full in legend]
        parts.append("\n".join(["% The decoders, every setting written out:", *map(visible, lines)]) + "\n")
    return "\n".join(parts)


def table_latex(table: Table) -> str:
    columns = "l" + "r" * (len(table.head) - 1)
    body = [" & ".join(map(_marked_latex, row)) + r" \\" for row in table.rows]
    notes = " ".join(table.notes)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape_latex(table.title)}.{' ' + escape_latex(notes) if notes else ''}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(escape_latex, table.head)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _marked_latex(cell: TableCell) -> str:
    text = escape_latex(cell.text)
    return f"\\textbf{{{text}}}" if cell.rank == BEST else f"\\underline{{{text}}}" if cell.rank == SECOND else text


def escape_latex(text: str) -> str:
    """Text as TeX prints it; signs that its fonts lack become formulas."""
    return _SIGN.sub(lambda sign: _SIGNS[sign[0]], visible(text))
