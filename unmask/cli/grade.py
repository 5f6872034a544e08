"""`unmask grade`: grade outputs made elsewhere like our own."""

import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json, read_stdin
from unmask.cli.options import one_of
from unmask.errors import UnmaskError
from unmask.tasks import Metric, data, grading, task
from unmask.tasks.sandbox.run import Confinement
from unmask.tasks.task import configure


@app.command()
def grade(
    file: Annotated[str, typer.Argument(help='JSON lines of {"id" or "question", "output"}; - for standard input.')],
    spec: Annotated[str, typer.Option("--task", "-t", help="Such as gsm8k or mbpp(subset=sanitized).")],
    metric: options.MetricName = "ours",
    data_: options.DataFolder = None,
    allow_code: options.AllowCode = False,
    sandbox: options.Sandbox = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with every problem's result.")] = False,
) -> None:
    """Grade a file of outputs and print the accuracy."""
    if data_ is not None:
        data.use(data_)
    (source,) = configure([spec], allow_code=allow_code, sandbox=one_of(Confinement, "--sandbox", sandbox))
    measure = one_of(Metric, "--metric", metric)
    with _open(file) as lines:
        report = grading.grade(source, lines, measure, _progress if sys.stderr.isatty() else None)
    n = len(report.grades)
    if as_json:
        head = {"task": task.spec(source), "version": source.version, "metric": metric, "n": n}
        figures = {"right": report.right, "accuracy": report.accuracy, "results": report.results()}
        print_json(head | figures)
        return
    print(f"right {report.right} of {n}")
    print(f"accuracy {report.accuracy:.2f} (n={n})")


def _open(file: str) -> Any:
    if file == "-":
        return io.StringIO(read_stdin("the file").decode("utf-8", "replace"))
    try:
        return Path(file).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnmaskError(f"{file} cannot be read: {error.strerror}") from None


def _progress(done: int, of: int) -> None:
    print(f"\rgraded {done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)
