"""`unmask export`: records of runs for other tools."""

import json as jsons
import sys
from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.errors import UnmaskError
from unmask.report.export import FORMATS, export
from unmask.report.plots import keep
from unmask.report.run_report import read_runs


@app.command("export")
def export_(
    folders: Annotated[list[str], typer.Argument(metavar="DIR…", help="Folders that `unmask eval` wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to; standard output without it.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="|".join(FORMATS), help="By default what the file's name ends in, else jsonl."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the records of runs as one flat table: CSV, JSON lines or Parquet.

    \b
    Examples:
      unmask export runs/countdown --out records.parquet
      unmask export runs/a runs/b --format csv > records.csv
    """
    chosen = form or (out.suffix.removeprefix(".") if out and out.suffix else "jsonl")
    runs = read_runs(folders)
    content = export(runs, chosen)
    if out is not None:
        keep(content, out)
    elif json:
        raise UnmaskError("--json tells what was written: give --out as well")
    elif chosen == "parquet" and sys.stdout.isatty():
        raise UnmaskError("Parquet is not text: give --out FILE, or send the output to a file")
    else:
        sys.stdout.buffer.write(content)
    if json:
        records = sum(len(run.records) for run in runs)
        print(jsons.dumps({"out": str(out), "format": chosen, "records": records, "bytes": len(content)}))
