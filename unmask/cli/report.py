"""`unmask report`, `export`, `tree` and `view`: tables, plots and pages of finished runs and traces."""

import shutil
import sys
import webbrowser
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from unmask.cli import options
from unmask.cli.boundary import print_answer, print_json
from unmask.cli.options import option
from unmask.errors import UnmaskError

Form = Literal["csv", "jsonl", "parquet"]


def report(
    folders: options.RunFolders,
    html: Annotated[Path | None, option("Write everything into one page.", metavar="FILE")] = None,
    markdown: Annotated[Path | None, option("Write the tables as Markdown.", metavar="FILE")] = None,
    latex: Annotated[Path | None, option("Write the tables as LaTeX, for booktabs.", metavar="FILE")] = None,
    csv: Annotated[Path | None, option("Write every cell's figures, unrounded.", metavar="FILE")] = None,
    plots: Annotated[Path | None, option("Write the plots as SVG, PNG and PDF.", metavar="DIR")] = None,
    against: Annotated[str | None, option("Baseline decoder; default: low-confidence.", metavar="SPEC")] = None,
    timing: Annotated[bool, option("Also show seconds and memory, which differ from run to run.", "--timing")] = False,
    json: options.Json = False,
) -> None:
    """Show tables of runs, and write them as files, plots and pages.

    \b
    Examples:
      unmask report runs/countdown
      unmask report runs/a runs/b --against 'ots(beams=2)' --html report.html
      unmask report runs/countdown --markdown report.md --csv cells.csv --plots figures
    """
    from unmask.report import formats
    from unmask.report.plots import keep
    from unmask.report.run_report import read_runs, run_report
    from unmask.runs.files import check_writable

    for path in filter(None, (html, markdown, latex, csv)):
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
    print_json(report.json()) if json else formats.terminal(report.tables)
    sys.stdout.flush()  # the file names come last if both streams are one terminal
    for path in filter(None, (html, markdown, latex, csv, plots)):
        print(f"unmask: wrote {path}", file=sys.stderr)


def export(
    folders: options.RunFolders,
    out: Annotated[Path | None, option("Output file; default: standard output.", "--out", "-o", metavar="FILE")] = None,
    form: Annotated[Form | None, option("Format; default: the file name's extension, else jsonl.", "--format")] = None,
    json: options.Json = False,
) -> None:
    """Write the records of runs as one flat table: CSV, JSON lines or Parquet.

    \b
    Examples:
      unmask export runs/countdown --out records.parquet
      unmask export runs/a runs/b --format csv > records.csv
    """
    from unmask.report.export import export
    from unmask.report.plots import keep
    from unmask.report.run_report import read_runs

    chosen = form or (out.suffix.removeprefix(".") if out and out.suffix else "jsonl")
    runs = read_runs(folders)
    content = export(runs, chosen)
    if out is not None:
        keep(content, out)
    elif json:
        raise UnmaskError("--json describes the written file: give --out as well")
    elif chosen == "parquet" and sys.stdout.isatty():
        raise UnmaskError("Parquet is not text: give --out FILE, or redirect the output to a file")
    else:
        sys.stdout.buffer.write(content)
    if json:
        records = sum(len(run.records) for run in runs)
        print_json({"out": str(out), "format": chosen, "records": records, "bytes": len(content)})


def tree(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace of a search, written by --trace.")],
    beside: Annotated[Path | None, option("A different decoder's trace of the same prompt.", metavar="TRACE")] = None,
    out: Annotated[Path | None, option("Draw it as .svg or .png.", metavar="FILE")] = None,
    json: options.Json = False,
) -> None:
    """Show the tree of a search: every candidate with its score and parent, and whether it was kept.

    \b
    Examples:
      unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --decoder 'ots(beams=4)' --trace search.jsonl
      unmask tree search.jsonl
      unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --decoder low-confidence --trace path.jsonl
      unmask tree search.jsonl --beside path.jsonl --out tree.svg
    """
    from unmask.report.plots import keep, kind_of
    from unmask.report.search_tree import describe, read_tree
    from unmask.report.tree_drawing import tree_image
    from unmask.runs.trace import Trace

    kind = out and kind_of(out)
    tree = read_tree(Trace.load(trace), beside and Trace.load(beside))
    if out and kind:
        keep(tree_image(tree, kind), out)
    if json:
        print_json(asdict(tree))
    elif not out:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
        print(describe(tree, width), end="")


def view(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE…", help="Traces of one prompt, written by --trace.")],
    out: Annotated[Path | None, option("Page; default: beside the first trace, as .html.", metavar="FILE")] = None,
    browse: Annotated[bool, option("Open the page in a browser.", "--open")] = False,
    json: options.Json = False,
) -> None:
    """Make a page that plays traces: texts, order, confidence, the search and its cost, step by step.

    The page is one file that works offline. Traces of one prompt by several decoders are shown side by side at equal
    numbers of forward passes.

    \b
    Examples:
      unmask generate abc --length 8 --decoder 'ots(beams=4, block=4)' --trace search.jsonl
      unmask view search.jsonl --open
      unmask generate abc --length 8 --decoder low-confidence --trace path.jsonl
      unmask view search.jsonl path.jsonl --out both.html
    """
    from unmask.report.plots import keep
    from unmask.runs.files import check_writable
    from unmask.view.trace_page import read_shown, trace_page

    path = out or traces[0].with_suffix(".html")
    if path.resolve() in [trace.resolve() for trace in traces]:
        raise UnmaskError(f"{str(path)!r} is the trace itself: name a different file by --out")
    check_writable(path)
    page = trace_page([read_shown(trace) for trace in traces])
    keep(page.encode(), path)
    if browse:
        webbrowser.open(path.resolve().as_uri())
    print_answer(json, {"page": str(path), "bytes": len(page.encode())}, str(path))
