"""`unmask view`: a page that plays traces."""

import json as jsons
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.errors import UnmaskError
from unmask.report.plots import keep
from unmask.view.trace_page import read_shown, trace_page


@app.command()
def view(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE…", help="Traces of one prompt, written by --trace.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; by default beside the first trace, as .html.")
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    json: options.Json = False,
) -> None:
    """Make a page that plays traces: rows, order, confidence, the search and its cost, step by step.

    The page is one file that works offline. Traces of one prompt by several decoders are shown side by side at equal
    rows.

    \b
    Examples:
      unmask generate abc --length 8 --decoder 'ots(beams=4, block=4)' --trace search.jsonl
      unmask view search.jsonl --open
      unmask generate abc --length 8 --decoder low-confidence --trace path.jsonl
      unmask view search.jsonl path.jsonl --out both.html
    """
    path = out or traces[0].with_suffix(".html")
    if path.resolve() in [trace.resolve() for trace in traces]:
        raise UnmaskError(f"{str(path)!r} is the trace itself: name another file by --out")
    api.check_writable(path)
    page = trace_page([read_shown(trace) for trace in traces])
    keep(page.encode(), path)
    if browse:
        webbrowser.open(path.resolve().as_uri())
    print(jsons.dumps({"page": str(path), "bytes": len(page.encode())}) if json else path)
