"""Tables for a terminal, as Markdown, as LaTeX with the package booktabs, and the figures of cells as CSV."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from unmask.report.gather import visible
from unmask.report.tables import BEST, MISSING, SECOND, Table, TableCell

NAME_WIDTH = 24  # smallest width of the first column, in characters, if its names are that long
STYLES = {BEST: "bold", SECOND: "underline"}
Legend = Sequence[tuple[str, str]]  # labels of decoders and their full specs


def terminal(tables: Sequence[Table]) -> None:
    """Print tables at the width of the terminal, or as wide as they are into a pipe or a file."""
    console = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 400)
    for table in tables:
        console.print(Text(_shown(table.title), "bold"))
        _print_rows(console, table) if _fits(console, table) else _print_stacked(console, table)
        for note in table.notes:
            console.print(Text(_shown(note), "dim"))
        console.print()


def _fits(console: Console, table: Table) -> bool:
    """Return whether the columns leave a readable width for the names of the rows."""
    columns = zip(table.head, *([cell.text for cell in row] for row in table.rows), strict=True)
    first, *others = (max(cell_len(_shown(text)) for text in column) for column in columns)
    return min(first, NAME_WIDTH) + sum(others) + 3 * len(others) <= console.width


def _print_rows(console: Console, table: Table) -> None:
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(table.head):
        shown.add_column(Text(_shown(name)), justify="right" if place else "left", no_wrap=place > 0)
    for row in table.rows:
        shown.add_row(*(Text(_shown(cell.text), STYLES.get(cell.rank, "")) for cell in row))
    console.print(shown)


def _print_stacked(console: Console, table: Table) -> None:
    """Print each row below its name, for a terminal that is too narrow for columns."""
    for row in table.rows:
        console.print(Text(_shown(row[0].text)))
        parts = [
            Text.assemble((f"{_shown(head)} ", "dim"), (_shown(cell.text), STYLES.get(cell.rank, "")))
            for head, cell in zip(table.head[1:], row[1:], strict=True)
            if cell.text != MISSING
        ]
        console.print(Padding(Columns(parts, padding=(0, 2)), (0, 0, 0, 2)))


def _shown(text: str) -> str:
    """Return a text as standard output will print it, so that columns are aligned."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return visible(text).encode(encoding, "backslashreplace").decode(encoding)


def markdown(tables: Sequence[Table], legend: Legend) -> str:
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
    """Return the table and its notes, each a paragraph."""
    marks = {BEST: "**{}**", SECOND: "<u>{}</u>"}
    rows = [list(map(escape, table.head)), *(_marked(row, escape, marks) for row in table.rows)]
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    rule = f"|---{'|---:' * (len(table.head) - 1)}|"
    return ["\n".join([head, rule, *body]), *map(escape, table.notes)]


def _marked(row: Sequence[TableCell], escaped: Callable[[str], str], marks: dict[int, str]) -> list[str]:
    """Escape the texts of a row, and mark the best and the second."""
    return [marks.get(cell.rank, "{}").format(escaped(cell.text)) for cell in row]


def escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", visible(text))


def comma_separated(cells: Sequence[dict[str, Any]]) -> str:
    """Return one line per cell with unrounded figures, and columns for pass@k and the comparison if there are any."""
    flat = [
        {name: value for name, value in cell.items() if name not in ("pass", "against")}
        | {f"pass@{k}": value for k, value in cell["pass"].items()}
        | {f"against_{name}": value for name, value in (cell["against"] or {}).items() if name in AGAINST}
        for cell in cells
    ]
    known = {name for row in flat for name in row}
    shares = sorted((name for name in known if name.startswith("pass@")), key=lambda name: int(name[5:]))
    plain = [name for name in flat[0] if not name.startswith(("pass@", "against_"))]
    against = [f"against_{name}" for name in AGAINST if f"against_{name}" in known]
    return write_csv(flat, [*plain, *shares, *against])


def write_csv(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


AGAINST = ("n", "difference", "low", "high", "better", "worse", "p", "p_corrected")  # of a comparison
HEAD = "% Written by `unmask report --latex`. Needs \\usepackage{booktabs}. Bold: best, underlined: second.\n"
FORMULAS = "≤≥±·×→Δα÷✓✗τ", ["le", "ge", "pm", "cdot", "times", "to", "Delta", "alpha", "div", "surd", "times", "tau"]
SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "“": "``",
    "”": "''",
    "–": "--",
    "…": r"\dots{}",
    "−": "$-$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"$\\{name}$" for sign, name in zip(*FORMULAS, strict=True)},
}


def latex(tables: Sequence[Table], legend: Legend) -> str:
    parts = [HEAD, *map(table_latex, tables)]
    if legend:
        lines = [f"% {label}: {full}" for label, full in legend]
        parts.append("\n".join(["% The decoders, every setting written out:", *map(visible, lines)]) + "\n")
    return "\n".join(parts)


def table_latex(table: Table) -> str:
    marks = {BEST: r"\textbf{{{}}}", SECOND: r"\underline{{{}}}"}
    caption = " ".join([f"{table.title}.", *table.notes])
    rows = [list(map(escape_latex, table.head)), *(_marked(row, escape_latex, marks) for row in table.rows)]
    head, *body = [" & ".join(row) + r" \\" for row in rows]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
        *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Return text as TeX prints it; signs that its fonts lack become formulas."""
    return visible(text).translate(str.maketrans(SIGNS))
