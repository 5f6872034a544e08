"""`unmask tree`: what a search drew, kept and pruned, from its trace."""

import json as jsons
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.report.figures import keep, kind_of
from unmask.report.lineage import grow
from unmask.report.tree import describe, tree_image
from unmask.runs.trace import Trace


@app.command()
def tree(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file that --trace wrote, of a search.")],
    beside: Annotated[
        Path | None, typer.Option(metavar="TRACE", help="Another decoder's trace of the same prompt, to compare.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it, as .svg or .png.")] = None,
    json: options.Json = False,
) -> None:
    """Show the tree a search grew: every candidate, its score, whose child it is, and what became of it.

    \b
    Examples:
      unmask generate abc --length 8 --decoder 'ots(beams=4, block=4)' --trace abc.jsonl
      unmask tree abc.jsonl
      unmask generate abc --length 8 --decoder low-confidence --trace low.jsonl
      unmask tree abc.jsonl --beside low.jsonl --out abc.svg
    """
    kind = out and kind_of(out)
    grown = grow(Trace.load(trace), beside and Trace.load(beside))
    if out and kind:
        keep(tree_image(grown, kind), out)
    if json:
        print(jsons.dumps(asdict(grown), ensure_ascii=False))
    elif not out:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
        print(describe(grown, width), end="")
