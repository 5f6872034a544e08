"""No text stalls a reader: the time to read or grade 200 kB of any shape grows with its length, not with its square."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest

from unmask.tasks import Metric, Problem, Task, task
from unmask.tasks.published.programs import LONGEST, ProgramTask, read

SIZE = 200_000
UNITS = [
    *("\\boxed{", "}", "\\boxed{1 ", "\\boxed{}", "\\boxed{1,2}", "<answer>", "<answer>x</answer>"),
    *("</answer>", "```\n", "```python\n", "```python\ndef f(x): return x\n```\n", "def f(x):\n"),
    *("def f(\n", "x = (\n", "import os\n", "from here on\n", "class A:\n", "@f\n", "(", "[", "{", "-"),
    *("9", "1,", "1,000,", "1.", "\\frac{1}{", "1+", "=1", "2**", " ", "\u00a0", "\t", "\n", "\r", '"""'),
    *("\\", "\\text{ ", "\\$", "a", "a.", "\0", "\ud800", 'f"{', "lambda:", "not ", "if x:\n ", "[BEGIN]"),
    *("[DONE]",),
]
SHAPES = {unit: (unit * (SIZE // len(unit) + 1))[:SIZE] for unit in UNITS}
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


WORST = ("boxes nested", "boxes nested, with numbers", "@f\n", "x = (\n", "<answer>", "1,000,")


STALLED = 10.0  # seconds; a reader whose time grows with the square of the text takes minutes


def stalling(name: str, texts: dict[str, str]) -> dict[str, float]:
    """Return the processor time of the shapes that take more than `STALLED`."""
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
        assert program is None or len(program) <= LONGEST
