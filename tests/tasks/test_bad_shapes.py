"""No text stalls a reader: 200 kB of any bad shape take less than a second of processor time to read or to grade."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest

from unmask.tasks import Metric, Problem, Task, task
from unmask.tasks.published import programs as listing
from unmask.tasks.published.programs import ProgramTask, read

SIZE = 200_000
UNITS = {
    "boxes open": "\\boxed{",
    "boxes close": "}",
    "boxes with numbers": "\\boxed{1 ",
    "empty boxes": "\\boxed{}",
    "boxes": "\\boxed{1,2}",
    "tags open": "<answer>",
    "tags": "<answer>x</answer>",
    "tags close": "</answer>",
    "fences": "```\n",
    "python fences": "```python\n",
    "blocks": "```python\ndef f(x): return x\n```\n",
    "definitions": "def f(x):\n",
    "definitions cut short": "def f(\n",
    "assignments": "x = (\n",
    "imports": "import os\n",
    "prose like code": "from here on\n",
    "classes": "class A:\n",
    "decorators": "@f\n",
    "brackets": "(",
    "square brackets": "[",
    "braces": "{",
    "minus": "-",
    "digits": "9",
    "digits with commas": "1,",
    "thousands": "1,000,",
    "decimals": "1.",
    "fractions": "\\frac{1}{",
    "signs": "1+",
    "equals": "=1",
    "powers": "2**",
    "spaces": " ",
    "no-break spaces": "\u00a0",
    "tabs": "\t",
    "lines": "\n",
    "carriage returns": "\r",
    "quotes": '"""',
    "backslashes": "\\",
    "texts": "\\text{ ",
    "dollars": "\\$",
    "letters": "a",
    "points": "a.",
    "nulls": "\0",
    "half pairs": "\ud800",
    "f-strings": 'f"{',
    "lambdas": "lambda:",
    "nots": "not ",
    "deeper and deeper": "if x:\n ",
    "begin": "[BEGIN]",
    "done": "[DONE]",
}
SHAPES = {name: (unit * (SIZE // len(unit) + 1))[:SIZE] for name, unit in UNITS.items()}
SHAPES["boxes nested"] = "\\boxed{" * 25_000 + "1" + "}" * 25_000
SHAPES["boxes nested, with numbers"] = "\\boxed{1 " * 20_000 + "}" * 20_000
SHAPES["brackets nested"] = "(" * 100_000 + ")" * 100_000
SHAPES["lines deeper and deeper"] = "\n".join(" " * n + "if x:" for n in range(600))
SHAPES["a box of all"] = "\\boxed{" + "1 + " * 49_000 + "1}"
SHAPES["a tag of all"] = "<answer>" + "\\frac{1}{2}, " * 15_000 + "</answer>"
DATA: dict[str, dict[str, Any]] = {
    "gsm8k": {"answer": "18"},
    "math500": {"answer": "18"},
    "countdown-d1": {"numbers": [30, 100, 93], "target": 23},
    "sudoku-d1": {"puzzle": "3102200002100320", "solution": "3142243142131324"},
    "humaneval": {"prompt": "def f(x):\n", "entry_point": "f", "test": ""},
    "mbpp": {"names": ["f"], "tests": "", "prelude": "", "setup": ""},
}
METRICS: tuple[Metric, ...] = ("ours", "d1")


def problem(source: Task, name: str) -> Problem:
    return Problem("p", "q", "", DATA[name]) if name in DATA else next(islice(source.problems(), 1))


def readings(name: str, text: str) -> Iterator[Callable[[], Any]]:
    source = task.make(name)
    yield lambda: source.key(text)
    for metric in METRICS:
        yield partial(source.answer, text, metric)
        if isinstance(source, ProgramTask):
            yield partial(source.program_test, problem(source, name), text)
        else:
            yield partial(source.grade, problem(source, name), text, metric)


WORST = ("boxes nested", "boxes nested, with numbers", "decorators", "assignments", "tags open", "thousands")


STALLED = 10.0  # seconds; a reader whose time grows with the square of the text takes minutes


def stalling(name: str, texts: dict[str, str]) -> dict[str, float]:
    """Processor time by shape, where it is more than `STALLED`."""
    spent = {shape: max(map(processor_time, readings(name, text))) for shape, text in texts.items()}
    return {shape: seconds for shape, seconds in spent.items() if seconds > STALLED}


def processor_time(reading: Callable[[], Any]) -> float:
    began = time.process_time()
    reading()
    return time.process_time() - began


@pytest.mark.parametrize("name", ["gsm8k", "math500", "countdown-d1", "mbpp"])
def test_the_worst_shapes_do_not_stall_a_reader(name: str):
    assert stalling(name, {shape: SHAPES[shape] for shape in WORST}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("around", ["{}", "<answer>{}</answer>", "\\boxed{{{}}}", "```python\n{}\n```"])
@pytest.mark.parametrize("name", list(task))
def test_no_shape_stalls_a_reader(name: str, around: str):
    assert stalling(name, {shape: around.format(text) for shape, text in SHAPES.items()}) == {}


def test_nested_boxes_take_little_memory():
    tracemalloc.start()
    task.make("gsm8k").grade(Problem("p", "q", "", DATA["gsm8k"]), SHAPES["boxes nested"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20


def test_a_program_of_any_shape_is_read_alike():
    for text in SHAPES.values():
        program = read(text, "f")
        assert program is None or len(program) <= listing.LONGEST
