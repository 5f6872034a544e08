"""HumanEval (arXiv 2107.03374): 164 Python functions to complete from signature and docstring.

    {"task_id": "HumanEval/53", "entry_point": "add",
     "prompt": "def add(x: int, y: int):\\n    \\"\\"\\"Add two numbers x and y\\n    >>> add(2, 3)\\n …",
     "canonical_solution": "    return x + y\\n",
     "test": "def check(candidate):\\n    import random\\n\\n    assert candidate(0, 1) == 1\\n …"}

The tests are hidden from the program (`inside.py`); both metrics are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unmask.tasks import listing
from unmask.tasks.data import Source
from unmask.tasks.program_task import ProgramTask, read
from unmask.tasks.prompts import Prompt
from unmask.tasks.sandbox import Trial
from unmask.tasks.task import Problem, task

_FIELDS = ("prompt", "entry_point", "test")


@task("humaneval")
@dataclass(frozen=True)
class HumanEval(ProgramTask):
    source: ClassVar[Source] = Source(
        "humaneval/HumanEval.jsonl.gz",
        "openai/openai_humaneval",
        ("openai_humaneval/test-00000-of-00001.parquet",),
    )
    wording: ClassVar[Prompt] = Prompt(
        "Complete the Python function. Think inside <reasoning></reasoning>, then give the whole function, "
        "with the imports it needs, in one ```python block inside <answer></answer>.",
        "```python\n{question}```",
    )

    def problems(self) -> list[Problem]:
        return [
            Problem(
                row["task_id"],
                row["prompt"],
                f"<answer>\n```python\n{row['prompt']}{row['canonical_solution']}```\n</answer>",
                {key: row[key] for key in _FIELDS},
            )
            for row in self.source.rows()
        ]

    def trial(self, problem: Problem, text: str) -> Trial:
        prompt, entry, test = (problem.data[key] for key in _FIELDS)
        given = listing.defined(listing.parse(prompt))
        return Trial(
            program=_program(prompt, entry, text),
            tests=(test, f"check({entry})"),
            names=(entry, *sorted(name for name in given - {entry} if name in test)),
            prelude=listing.imports(prompt),
        )


def _program(prompt: str, entry: str, text: str) -> str:
    """What the output defines, after the imports and helpers it was given; or the prompt with the output for a body."""
    before = prompt[: prompt.rfind(f"def {entry}(")] + "\n"
    code = read(text, entry) or ""
    if entry in listing.defined(listing.parse(code)):
        return before + listing.reachable(code, entry)
    body = code if listing.fences(text) else text[: listing.LONGEST]
    whole = listing.head(prompt + body)
    grown = len(whole.strip()) > len(prompt.strip())
    return before + listing.reachable(whole, entry) if grown else code
