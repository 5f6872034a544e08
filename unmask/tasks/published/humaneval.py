"""HumanEval (arXiv 2107.03374): 164 Python functions to complete from signature and docstring.

    {"task_id": "HumanEval/53", "entry_point": "add",
     "prompt": "def add(x: int, y: int):\\n    \\"\\"\\"Add two numbers x and y\\n    >>> add(2, 3)\\n …",
     "canonical_solution": "    return x + y\\n",
     "test": "def check(candidate):\\n    import random\\n\\n    assert candidate(0, 1) == 1\\n …"}

The tests run in a process of their own, out of the program's reach; both metrics are the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from unmask.tasks.checkers import Check, Verdict, examples
from unmask.tasks.data import Dataset
from unmask.tasks.published import programs
from unmask.tasks.published.benchmark import Wording
from unmask.tasks.published.programs import ProgramTask, completed, run_tests
from unmask.tasks.sandbox.run import ProgramTest
from unmask.tasks.task import Problem, question_in, task

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
            program=completed(prompt, entry, text),
            tests=(test, f"check({entry})"),
            names=(entry,),
            prelude=before,  # some tests use the prompt's helpers, which the program could replace in its own process
            before=before,
        )

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        """Return the check of the examples in the docstring."""
        self.ready()
        question = question_in(messages)
        prompt = (programs.fenced_blocks(question) or [question])[-1]
        defined = re.findall(r"^def +(\w{1,99}) *\(", prompt, re.MULTILINE)
        tests = [_assert(call, result) for call, result in examples(prompt)]
        if not defined or not tests:
            return None
        entry = defined[-1]
        before = prompt[: prompt.rfind(f"def {entry}(")]

        def check(text: str) -> Verdict:
            return run_tests(completed(f"{prompt}\n", entry, text), tests, before, sandbox=self.sandbox)

        return check


def _assert(call: ast.Call, result: object) -> str:
    """Return an example as a test; floats of a docstring are rounded."""
    source = ast.unparse(call)
    return f"assert abs({source} - {result}) < 1e-6" if type(result) is float else f"assert {source} == {result!r}"
