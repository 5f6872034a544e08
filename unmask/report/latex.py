"""Tables for a paper: LaTeX with the package booktabs, one `table` per table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmask.report.labels import visible
from unmask.report.tables import BEST, SECOND, Table, TableCell

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
    body = [" & ".join(map(_marked, row)) + r" \\" for row in table.rows]
    notes = " ".join(table.notes)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape(table.title)}.{' ' + escape(notes) if notes else ''}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(escape, table.head)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _marked(cell: TableCell) -> str:
    text = escape(cell.text)
    return f"\\textbf{{{text}}}" if cell.rank == BEST else f"\\underline{{{text}}}" if cell.rank == SECOND else text


def escape(text: str) -> str:
    """Text as TeX prints it; signs that its fonts lack become formulas."""
    return _SIGN.sub(lambda sign: _SIGNS[sign[0]], visible(text))
