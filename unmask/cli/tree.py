"""`unmask tree`: what a search drew, kept and pruned, from its trace."""

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.report.plots import keep, kind_of
from unmask.report.search_tree import describe, read_tree
from unmask.report.tree_drawing import tree_image
from unmask.runs.trace import Trace


@app.command()
def tree(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A search's trace, written by --trace.")],
    beside: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Another decoder's trace of the same prompt, to compare.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it as .svg or .png.")] = None,
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
    kind = out and kind_of(out)
    tree = read_tree(Trace.load(trace), beside and Trace.load(beside))
    if out and kind:
        keep(tree_image(tree, kind), out)
    if json:
        print_json(asdict(tree))
    elif not out:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
        print(describe(tree, width), end="")
