"""HumanEval (arXiv 2107.03374): 164 Python functions to complete from signature and docstring.

    {"task_id": "HumanEval/53", "entry_point": "add",
     "prompt": "def add(x: int, y: int):\\n    \\"\\"\\"Add two numbers x and y\\n    >>> add(2, 3)\\n …",
     "canonical_solution": "    return x + y\\n",
     "test": "def check(candidate):\\n    import random\\n\\n    assert candidate(0, 1) == 1\\n …"}

The tests run in a process of their own, out of the program's reach; both metrics are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unmask.tasks.data import Dataset
from unmask.tasks.published import programs
from unmask.tasks.published.benchmark import Wording
from unmask.tasks.published.programs import ProgramTask, parse, read
from unmask.tasks.sandbox.run import ProgramTest
from unmask.tasks.task import Problem, task

_FIELDS = ("prompt", "entry_point", "test")


@task("humaneval")
@dataclass(frozen=True)
class HumanEval(ProgramTask):
    source: ClassVar[Dataset] = Dataset(
        "humaneval/HumanEval.jsonl.gz",
        "openai/openai_humaneval",
        ("openai_humaneval/test-00000-of-00001.parquet",),
    )
    wording: ClassVar[Wording] = Wording(
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

    def program_test(self, problem: Problem, text: str) -> ProgramTest:
        prompt, entry, test = (problem.data[key] for key in _FIELDS)
        before = prompt[: prompt.rfind(f"def {entry}(")]
        return ProgramTest(
            program=_program(prompt, entry, text),
            tests=(test, f"check({entry})"),
            names=(entry,),
            prelude=before,  # some tests use the prompt's helpers, which the program could replace in its own process
            before=before,
        )


def _program(prompt: str, entry: str, text: str) -> str:
    """Return the program in the output, or the prompt with the output as its body."""
    code = read(text, entry) or ""
    if entry in programs.defined_names(parse(code)):
        return code
    body = code if programs.fenced_blocks(text) else programs.with_plain_spaces(text[: programs.LONGEST])
    completed = programs.longest_beginning(prompt + body)
    return code if len(completed.strip()) <= len(prompt.strip()) else completed
