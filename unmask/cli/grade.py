"""`unmask grade`: outputs made elsewhere, graded as ours would be."""

import json
import sys
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask.cli.app import app
from unmask.cli.options import one_of
from unmask.errors import UnmaskError
from unmask.tasks import Metric, Task, data, grading, task
from unmask.tasks.sandbox import Confinement


@app.command()
def grade(
    file: Annotated[str, typer.Argument(help='JSON lines of {"id" or "question", "output"}; - for standard input.')],
    task_: Annotated[str, typer.Option("--task", "-t", help="Such as gsm8k or mbpp(subset=sanitized).")],
    metric: Annotated[str, typer.Option(help="ours, or d1 for figures that compare with published ones.")] = "ours",
    data_: Annotated[str | None, typer.Option("--data", help="The folder that holds the benchmark files.")] = None,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Run programs that a model wrote.")] = False,
    sandbox: Annotated[str | None, typer.Option(help="namespaces, or rlimits to accept less.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with every problem's result.")] = False,
) -> None:
    """Grade a file of outputs and print the accuracy."""
    if data_ is not None:
        data.use(data_)
    made = task.make(task_)
    made = _set(made, task_, {"allow_code": allow_code or None, "sandbox": one_of(Confinement, "--sandbox", sandbox)})
    measure = one_of(Metric, "--metric", metric)
    with _open(file) as lines:
        report = grading.grade(made, lines, measure, _progress if sys.stderr.isatty() else None)
    n = len(report.grades)
    if as_json:
        head = {"task": task.spec(made), "version": made.version, "metric": metric, "n": n}
        figures = {"right": report.right, "accuracy": report.accuracy, "results": report.results()}
        print(json.dumps(head | figures))
        return
    print(f"right {report.right} of {n}")
    print(f"accuracy {report.accuracy:.2f} (n={n})")


def _set(made: Task, spec: str, settings: dict[str, Any]) -> Task:
    """Options that were given become settings; a task without such a setting refuses them."""
    given = {key: value for key, value in settings.items() if value is not None}
    known = {field.name for field in fields(made)}  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            raise UnmaskError(f"task {spec!r} runs no programs: leave out --{key.replace('_', '-')}")
    return task.make(made, **given)


def _open(file: str) -> Any:
    if file == "-":
        return nullcontext(sys.stdin)
    try:
        return Path(file).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnmaskError(f"{file} cannot be read: {error.strerror}") from None


def _progress(done: int, of: int) -> None:
    print(f"\rgraded {done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)
