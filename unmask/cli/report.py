"""`unmask report`: tables, plots and a page of runs."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.errors import UnmaskError
from unmask.report import formats
from unmask.report.plots import keep
from unmask.report.run_report import read_runs, run_report
from unmask.runs.files import check_writable


@app.command()
def report(
    folders: Annotated[list[str], typer.Argument(metavar="DIR…", help="Folders that `unmask eval` wrote.")],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything into one page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX, for booktabs.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every cell's figures, unrounded.")] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the plots as SVG, PNG and PDF.")] = None,
    against: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Compare with this decoder; low-confidence without it.")
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing", help="Also show seconds and memory, which differ from run to run.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Tables, plots and pages of runs.

    \b
    Examples:
      unmask report runs/countdown
      unmask report runs/a runs/b --against 'ots(beams=2)' --html report.html
      unmask report runs/countdown --markdown report.md --csv cells.csv --plots figures
    """
    for path in (html, markdown, latex, csv):
        if path is not None:
            check_writable(path)
    report = run_report(read_runs(folders), against, timing)
    page = partial(report.html, html)
    for path, text in ((html, page), (markdown, report.markdown), (latex, report.latex), (csv, report.csv)):
        if path is not None:
            keep(text().encode("utf-8", "replace"), path)
    if plots is not None:
        if not report.plots:
            raise UnmaskError("there is nothing to plot: a plot needs more than one decoder, length or number of draws")
        for name, image in report.images().items():
            keep(image, plots / name, folder=True)
    if json:
        print_json(report.json())
    else:
        formats.terminal(report.tables)
    sys.stdout.flush()  # the names below come last where both streams are one terminal
    for path in filter(None, (html, markdown, latex, csv, plots)):
        print(f"unmask: wrote {path}", file=sys.stderr)
