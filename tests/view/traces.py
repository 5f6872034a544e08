"""Traces for the tests of pages: of any decoder, of any size, and with any text."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import unmask
from tests.report.pages import HOSTILE
from unmask.runs.trace import Trace

ATTACKS = (*HOSTILE, "👩‍👩‍👧‍👦🏳️‍🌈", "x" * 10_000)


@cache
def model() -> unmask.Model:
    return unmask.load("toy-transformer(letters=5)")


@cache
def traced(spec: str, length: int = 12, prompt: str = "abc") -> Trace:
    trace = unmask.generate(model(), prompt, decoder=spec, length=length, trace=True).trace
    assert trace is not None
    return trace


def hostile() -> Trace:
    """A search whose every word is an attack."""
    trace = traced("ots(beams=2, block=6)")
    words = {token: ATTACKS[int(token) % len(ATTACKS)] for token in trace.end["words"]}
    texts = ["".join(ATTACKS) for _ in trace.end["texts"]]
    header = trace.header | {"prompt": "".join(ATTACKS), "model": HOSTILE[0], "decoder": HOSTILE[1]}
    return Trace(header, trace.steps, trace.end | {"words": words, "texts": texts})


def large(rows: int = 16, positions: int = 512, steps: int = 256, searches: int = 16, words: int = 2000) -> Trace:
    """Beams that write two positions per step, and draft all others anew; every 16th step they are searched."""
    dice = random.Random(0)
    mask = words
    header: dict[str, Any] = {
        "format": "unmask-trace",
        "version": 1,
        "model": "random",
        "decoder": f"ots(beams={rows})",
    }
    header |= {"length": positions, "seed": 0, "prompt": "a prompt", "ids": [1, 2, 3], "mask": mask, "eos": [0]}
    orders = [dice.sample(range(positions), positions) for _ in range(rows)]
    lines, per = [], positions // steps
    for step in range(1, steps + 1):
        places = [(row, place) for row in range(rows) for place in orders[row][(step - 1) * per : step * per]]
        line: dict[str, Any] = {"step": step, "source": list(range(rows)) if step > 1 else [0] * rows}
        line["writes"] = [[row, 3 + at, dice.randrange(1, words), -dice.random()] for row, at in places]
        line["drafts"] = [
            [row, 3 + at, dice.randrange(1, words)] for row in range(rows) for at in orders[row][step * per :: 16]
        ]
        line |= {"score": [-dice.random() * step for _ in range(rows)], "forward_passes": rows * step}
        if step % (steps // searches) == 0:
            line["branch"] = _branch(dice, line, rows, positions, words)
        lines.append(line)
    end = {"chosen": 0, "texts": ["done"] * rows, "words": {str(n): f" w{n}" for n in range(words)}}
    return Trace(
        header, lines, end | {"cost": {"forward_passes": rows * steps, "computed": rows * steps, "positions": 0}}
    )


def _branch(dice: random.Random, line: dict[str, Any], rows: int, positions: int, words: int) -> dict[str, Any]:
    """Each row keeps its first candidate; completions differ in a tenth of their positions, as real draws do."""
    whole = [dice.randrange(1, words) for _ in range(positions)]
    count = rows * 4
    return {
        "parent": [number // 4 for number in range(count)],
        "draw": [number % 4 for number in range(count)],
        "score": [-dice.random() for _ in range(count)],
        "blocks": [[-dice.random() for _ in range(16)] for _ in range(count)],
        "kept": [number % 4 == 0 for number in range(count)],
        "writes": [[4 * row + draw, *write] for row, *write in line["writes"] for draw in range(4)],
        "completion": [
            [token if dice.random() > 0.1 else dice.randrange(1, words) for token in whole] for _ in range(count)
        ],
    }
