"""MBPP (arXiv 2108.07732): small Python functions from a sentence and the asserts they must pass.

    {"task_id": 2, "text": "Write a function to find the similar elements from the given two tuple lists.",
     "code": "def similar_elements(test_tup1, test_tup2):\\r\\n  res = tuple(set(test_tup1) & …",
     "test_setup_code": "", "test_list": ["assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)", …],
     "challenge_test_list": []}

`test` is problems 11 to 510 of the full set; `sanitized` is the 427 that were checked by hand. Both metrics are the
same.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from unmask.tasks.checkers import Check, Verdict
from unmask.tasks.data import Dataset
from unmask.tasks.published.benchmark import Wording
from unmask.tasks.published.programs import ProgramTask, defined_names, import_lines, names_in, parse, read, run_tests
from unmask.tasks.sandbox.run import ProgramTest
from unmask.tasks.task import Problem, question_in, task

_REPO = "google-research-datasets/mbpp"
_IDS = {"test": range(11, 511), "train": range(601, 975)}  # as published
_SPLITS = ("train", "test", "validation", "prompt")


@task("mbpp")
@dataclass(frozen=True)
class MBPP(ProgramTask):
    sources: ClassVar[dict[str, Dataset]] = {
        "test": Dataset("mbpp/mbpp.jsonl", _REPO, ("full/test-00000-of-00001.parquet",)),
        "train": Dataset("mbpp/mbpp.jsonl", _REPO, ("full/train-00000-of-00001.parquet",)),
        "sanitized": Dataset(
            "mbpp/sanitized-mbpp.json",
            _REPO,
            tuple(f"sanitized/{split}-00000-of-00001.parquet" for split in _SPLITS),
        ),
    }
    wording: ClassVar[Wording] = Wording(
        "Write the Python function that is described and that passes the tests shown. Think inside "
        "<reasoning></reasoning>, then give the whole program, with the imports it needs, in one ```python "
        "block inside <answer></answer>.",
        "{question}\n\n```python\n{tests}\n```",
    )

    subset: Literal["test", "sanitized", "train"] = "test"  # train is for choosing settings

    def problems(self) -> list[Problem]:
        rows = sorted(self.sources[self.subset].rows(), key=lambda row: row["task_id"])
        return [_problem(row) for row in rows if row["task_id"] in _IDS.get(self.subset, [row["task_id"]])]

    def program_test(self, problem: Problem, text: str) -> ProgramTest:
        data: Any = problem.data
        return ProgramTest(
            program=read(text, data["names"][0]) or "",
            tests=tuple(data["tests"].split("\n")),
            names=tuple(data["names"]),
            prelude=data["prelude"],
            setup=data["setup"],
        )

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        """Return the check of the asserts that the question shows."""
        self.ready()
        lines = [line.strip() for line in question_in(messages).splitlines() if line.strip().startswith("assert ")]
        tests = [line for line in lines if parse(line)]
        if not tests:
            return None
        expected, _ = names_in(tests[0])
        words = [node.id for node in ast.walk(ast.parse(tests[0])) if isinstance(node, ast.Name)]
        entry = next((word for word in words if word in expected), None)

        def check(text: str) -> Verdict:
            return run_tests(read(text, entry) or "", tests, sandbox=self.sandbox)

        return check


def _problem(row: dict[str, Any]) -> Problem:
    tests, code = row["test_list"], row["code"].replace("\r\n", "\n")
    setup = (row.get("test_setup_code") or "").replace("\r\n", "\n")
    data = {
        "tests": "\n".join(" ".join(test.splitlines()) for test in tests),
        "names": _names(tests, f"{code}\n{setup}"),
        "prelude": "\n".join([*(row.get("test_imports") or ()), import_lines(code)]),
        "setup": setup,
    }
    gold = f"<answer>\n```python\n{code}\n```\n</answer>"
    return Problem(f"mbpp/{row['task_id']}", row.get("text") or row["prompt"], gold, data)


def _names(tests: list[str], code: str) -> list[str]:
    """Return the program's names that the tests use, starting with the outermost call of the first test."""
    known = defined_names(parse(code))
    order: list[str] = []
    for test in tests:
        for node in ast.walk(ast.parse(test)):
            if isinstance(node, ast.Name) and node.id in known and node.id not in order:
                order.append(node.id)
    return order
