"""Runs made up for tests: each record is a function of its name, so every order and folder tells the same story."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import unmask.decoders  # noqa: F401
from unmask.core import decoder
from unmask.runs.header import write_head
from unmask.runs.record import Counts, Measured, Record
from unmask.runs.store import Run
from unmask.tasks import task

WORDS = ("so", "then", "we", "add", "subtract", "multiply", "and", "carry", "the", "rest")
SKILL = {"low-confidence": 0.35, "random": 0.2, "order-token-search": 0.55, "vote": 0.45}


def record(
    spec: str = "low-confidence",
    length: int = 64,
    problem: int | str = 0,
    seed: int = 0,
    sample: int = 0,
    model: str = "tiny",
    of: str = "countdown",
    **changes: Any,
) -> Record:
    chosen = decoder.make(spec).resolved(length)
    draw = random.Random(ascii((model, of, decoder.spec(chosen), length, problem, seed, sample)))
    hard = random.Random(ascii((of, problem))).random()
    right = draw.random() < SKILL.get(decoder.name(chosen), 0.4) + 0.3 * (0.5 - hard) + length / 1000
    answer = str(problem) if right else str(draw.randrange(3))
    words = " ".join(draw.choice(WORDS) for _ in range(40))
    fields = {
        "model": model,
        "task": task.spec(task.make(of)),
        "task_version": 1,
        "decoder": decoder.spec(chosen),
        "length": length,
        "seed": seed,
        "sample": sample,
        "problem": f"{of}-{problem}",
        "prompt": f"Numbers: [{problem}, 28, 35]\nTarget: 94",
        "text": f"<reasoning>{words}</reasoning>\n<answer>{answer}</answer>",
        "answer": answer,
        "key": answer,
        "right": right,
        "score": float(right),
        "likelihood": -draw.random(),
        "cost": Counts(
            chosen.max_forward_passes(length),
            chosen.max_forward_passes(length) - 3,
            100 * chosen.max_forward_passes(length),
        ),
        "error": None,
        "measured": Measured(32, random.random(), 2**20, "2026-01-01T00:00:00Z", "host:1", random.randrange(1, 64)),
    }
    return Record(**fields | changes)


def grid(
    specs: Sequence[str] = ("low-confidence", "ots(beams=2)", "random"),
    lengths: Sequence[int] = (64, 128),
    problems: int = 40,
    samples: int = 1,
    **changes: Any,
) -> list[Record]:
    return [
        record(spec, length, problem, sample=sample, **changes)
        for spec in specs
        for length in lengths
        for problem in range(problems)
        for sample in range(samples)
    ]


def run(records: Iterable[Record], name: str = "run") -> Run:
    return Run(Path(name), {"format": 1, "spec": {}}, list(records))


def write_run(folder: Path, records: Iterable[Record]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_head(folder, {"format": 1, "spec": {}})
    (folder / "records.jsonl").write_bytes(b"".join(one.line() for one in records))
    return folder
