"""How long does a search take beside one path and beside a vote that costs as many rows?

A timing is no evaluation: problems are decoded one at a time, all contenders in turn, and each turn again for the next
problem, so that what slows the machine slows all of them. The paper's vote drew one sample after the other; ours draws
them as one batch as well, which is how it would be used.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from itertools import islice
from statistics import median
from typing import Any

import torch

from unmask.core import decoder
from unmask.experiments.bench import Bench
from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.paper import paper
from unmask.experiments.setting import Setting
from unmask.models import Model
from unmask.report.plots import Plot, Point
from unmask.report.statistics import Estimate
from unmask.report.tables import Entry, Table
from unmask.runs.decoding import Decoding
from unmask.runs.generation import Generation
from unmask.runs.prompt import EncodedPrompt, read_prompt
from unmask.tasks import task

BENCHMARK, SOURCE = "Countdown", "Table S1"
BEAMS, VOTES = 4, 5
PATH, APART, TOGETHER, SEARCH = "path", "vote-apart", "vote-together", "ots"
LABELS = {
    PATH: "One path",
    APART: f"Vote of {VOTES}, one after the other",
    TOGETHER: f"Vote of {VOTES}, as one batch",
    SEARCH: f"Order-Token Search, {BEAMS} beams",
}
BESIDE = {PATH: "path", APART: "vote", SEARCH: "ots"}


def parts(setting: Setting) -> list[Part]:
    if not setting.chosen(BENCHMARK):
        return []
    vote = f"vote(n={VOTES}, inner=low-confidence(temperature={setting.vote_temperature}))"
    specs = {
        PATH: "low-confidence",
        APART: vote,
        TOGETHER: vote,
        SEARCH: f"ots(beams={BEAMS}, temperature={setting.temperature})",
    }
    methods = tuple(Method(name, LABELS[name], spec) for name, spec in specs.items())
    name, task_ = BENCHMARK.lower(), setting.tasks[BENCHMARK]
    return [Part(name, BENCHMARK, task_, methods, setting.axis, limit=setting.repeats)]


def measure(bench: Bench, setting: Setting) -> dict[str, Any]:
    """Seconds of each contender by length, a problem each; the first problem warms up and is timed again."""
    (part,) = parts(setting)
    model = bench.load(setting)
    asked = task.make(part.task)
    problems = list(islice(asked.problems(), setting.repeats))
    prompts = [read_prompt(model, asked.messages(problem)) for problem in problems]
    seconds: dict[str, dict[str, list[float]]] = {method.name: {} for method in part.methods}
    for length in part.lengths:
        turns = {method.name: _turn(model, method, length) for method in part.methods}
        for number, prompt in enumerate([prompts[0], *prompts]):
            for name, turn in turns.items():
                began = time.perf_counter()
                turn(prompt)
                spent = time.perf_counter() - began
                if number:
                    seconds[name].setdefault(str(length), []).append(round(spent, 5))
    return {"seconds": seconds, "machine": _machine(model), "precision": bench.precision}


def _turn(model: Model, method: Method, length: int) -> Callable[[EncodedPrompt], None]:
    """A decoding from start to end; the texts are read at its end, so that a GPU has finished by then."""
    made = decoder.make(method.spec)
    count = VOTES if method.name == APART else 1
    if method.name == APART:
        made = made.inner  # type: ignore[attr-defined]
    many = [Generation(model, Decoding(made.resolved(length), length, seed)) for seed in range(count)]

    def turn(prompt: EncodedPrompt) -> None:
        for generation in many:
            generation.outputs([prompt])

    return turn


def _machine(model: Model) -> dict[str, Any]:
    device = model.denoiser.device
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": device.type, "name": named, "torch": torch.__version__, "threads": torch.get_num_threads()}


def findings(found: Found) -> Findings:
    seconds = found.measured["seconds"]
    lengths = [int(length) for length in next(iter(seconds.values()))]
    said = paper("wall-time")
    head = ("method", *(f"L={length}" for length in lengths), *(f"paper: {length}" for length in said["lengths"]))
    body = []
    for name, by_length in seconds.items():
        ours = [Entry(_spread(by_length[str(length)])) for length in lengths]
        theirs = [Entry(f"{value:.2f}") for value in said[BESIDE[name]]] if name in BESIDE else [Entry("–")] * 4
        body.append((Entry(LABELS[name]), *ours, *theirs))
    machine = found.measured["machine"]
    count = len(next(iter(seconds[PATH].values())))
    note = f"Medians of {count} problems one at a time, contenders in turn, with the range; {machine['name']}, "
    note += f"torch {machine['torch']}, {machine['threads']} threads."
    task_ = found.setting.tasks[BENCHMARK]
    table = Table("timing", f"{BENCHMARK} · {task_} · seconds a problem", head, tuple(body), (note,))
    return Findings([table], _verdicts(seconds, lengths), [_plot(found, seconds, lengths)])


def _plot(found: Found, seconds: dict[str, dict[str, list[float]]], lengths: list[int]) -> Plot:
    """The median, and half the range for an error."""
    lines = []
    for name, by_length in seconds.items():
        points = []
        for length in lengths:
            some = by_length[str(length)]
            points.append(Point(float(length), Estimate(median(some), (max(some) - min(some)) / 2, len(some))))
        lines.append((LABELS[name], tuple(points)))
    title = f"{found.setting.model} · {found.measured['machine']['name']}"
    axis = "seconds a problem  (median, ± half the range)"
    return Plot("wall-time", title, "length of the answer", tuple(lines), y=axis, zero=True, shares=False)


def _verdicts(seconds: dict[str, dict[str, list[float]]], lengths: list[int]) -> list[Verdict]:
    def ratios(after: str, before: str) -> list[float]:
        return [median(seconds[after][str(at)]) / median(seconds[before][str(at)]) for at in lengths]

    def claim(words: str, values: list[float], low: float, high: float) -> Verdict:
        inside = all(low <= value <= high for value in values)
        outside = all(value < low or value > high for value in values)
        said = ", ".join(f"{value:.2f}× at L={length}" for value, length in zip(values, lengths, strict=True))
        return Verdict(words, SOURCE, "holds" if inside else "does not hold" if outside else "not decided", said)

    return [
        claim("OTS takes at most 3 times as long as one path (paper: 2 to 3)", ratios(SEARCH, PATH), 0.0, 3.0),
        claim("OTS takes at most 0.6 of a vote of 5 drawn one after the other", ratios(SEARCH, APART), 0.0, 0.6),
        claim("OTS takes no longer than a vote of 5 drawn as one batch (ours)", ratios(SEARCH, TOGETHER), 0.0, 1.0),
    ]


def _spread(some: list[float]) -> str:
    return f"{median(some):.2f} ({min(some):.2f}–{max(some):.2f})"


EXPERIMENT = Experiment("wall-time", SOURCE, __doc__.split("\n")[0] if __doc__ else "", parts, findings, measure)
