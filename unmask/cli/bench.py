"""`unmask bench`: seconds, forward passes and memory of each decoder beside the published loops."""

from __future__ import annotations

import json as jsons
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unmask.cli import options
from unmask.cli.boundary import print_json
from unmask.cli.options import option
from unmask.errors import UnmaskError

if TYPE_CHECKING:
    from unmask.bench.run import Plan
    from unmask.bench.subject import Subject

SWEEP = "Vary beams, length or problems, or beams=2,4,8; repeatable."
SERVE = "Measure this decoder in an engine at 1, 4 and 16 clients instead; repeatable."
SHAPE_SIZES, MODEL_SIZES = {"prompt": 160, "length": 256}, {"length": 64}  # defaults


@options.expand("precision", "compiled", "batch", "memory", length=None)
def bench(
    shape: Annotated[str | None, option("Random weights of a shape, such as llada-8b.", metavar="NAME")] = None,
    model: Annotated[str | None, option("Model by name; default: tiny.", "--model", "-m", metavar="MODEL")] = None,
    *,
    sizes: Annotated[dict[str, Any], ("unmask.bench.subject", "Sizes")],
    repeat: Annotated[int, option("Measured rounds, after a warm-up.", metavar="N")] = 3,
    sweep: Annotated[list[str] | None, option(SWEEP, metavar="AXIS")] = None,
    only: Annotated[list[str] | None, option("Measure only this contender; repeatable.", metavar="NAME")] = None,
    serve: Annotated[list[str] | None, option(SERVE, metavar="SPEC")] = None,
    limit: Annotated[float | None, option("Start no run after this many seconds.", metavar="SECONDS")] = None,
    seed: options.Seed = 0,
    note: Annotated[str, option("Remark that is stored with the results.", metavar="TEXT")] = "",
    out: Annotated[Path | None, option("Write the results as JSON, again after every run.", metavar="FILE")] = None,
    plot: Annotated[Path | None, option("Write a plot: .svg, .png or .pdf.", metavar="FILE")] = None,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Measure the published loops and this package's decoders in turn, on the same weights and prompts.

    \b
    Examples:
      unmask bench --problems 4 --repeat 1
      unmask bench --shape llada-8b --device cuda --sweep beams --sweep problems=1,16 --out h200.json
      unmask bench --only plain-ots --only ots --plot bench.svg
      unmask bench --serve low-confidence --serve threshold --length 32 --json
    """
    from unmask.bench import report
    from unmask.bench.contenders import CONTENDERS, choose
    from unmask.bench.run import BenchmarkRun, Plan, read_sweep
    from unmask.bench.subject import Sizes, Subject
    from unmask.models.devices import choose_device
    from unmask.report import formats, plots
    from unmask.runs.files import check_writable
    from unmask.runs.settings import Placement

    if shape is not None and model is not None:
        raise UnmaskError("--shape makes random weights and --model loads a model: choose one of them")
    for path in filter(None, (out, plot)):
        check_writable(path)
    kind = plots.kind_of(plot) if plot is not None else ""
    sweeps, where = tuple(map(read_sweep, sweep or ())), Placement(**placement)
    contenders = choose(only or (), choose_device(where.chosen_device))
    chosen = Sizes(**(MODEL_SIZES if shape is None else SHAPE_SIZES) | sizes)
    plan = Plan(chosen, contenders, sweeps, repeat, limit, seed)  # refused before the model is loaded
    random = shape and Subject.of_shape(shape, where.chosen_device, where.dtype)
    subject = random or Subject.of_model(where.load(model or options.MODEL))
    if serve:
        _measure_serving(serve, subject, plan, out, note, json)
        return
    if not only:
        contenders = tuple(name for name in contenders if CONTENDERS[name].fits(subject))
        plan = Plan(chosen, contenders, sweeps, repeat, limit, seed)
    results = BenchmarkRun(plan, subject, partial(_show, time.monotonic()), partial(_save, out), note).run()
    if plot is not None:
        plots.keep(report.draw(results, kind), plot)
    print_json(results) if json else formats.terminal(report.tables(results))


def _measure_serving(
    decoders: list[str], subject: Subject, plan: Plan, out: Path | None, note: str, json: bool
) -> None:
    from unmask.bench.serving import Workload, table  # an optional extra
    from unmask.report import formats

    show = partial(_show, time.monotonic())
    workload = Workload(subject, plan.sizes.prompt or SHAPE_SIZES["prompt"], plan.sizes.length, plan.repeat, show)
    rows = workload.measure(decoders)
    _save(out, {"model": subject.name, "device": str(subject.network.device), "note": note, "serve": rows})
    title = f"{subject.name} · {subject.network.device} · prompt {workload.prompt} · L={workload.length}"
    print_json(rows) if json else formats.terminal([table(rows, title)])


def _show(began: float, line: str) -> None:
    print(f"{time.monotonic() - began:7.1f} s  {line}", file=sys.stderr, flush=True)


def _save(path: Path | None, results: dict[str, Any]) -> None:
    from unmask.runs.files import write_whole

    if path is not None:
        write_whole(path, jsons.dumps(results, indent=1, ensure_ascii=False) + "\n")
