"""4×4 Sudoku as d1 (arXiv 2504.12216) evaluates it: 500 puzzles of eight blanks, of which d1 uses 256.

    Puzzle,Solution
    3102200002100320,3142243142131324

The score is the fraction of the blanks that are right. Every puzzle has eight blanks, so a mean of scores is d1's
figure: right cells of all problems by blanks of all problems. `d1` compares with the stored grid. 124 of the 500
puzzles have several solutions, so `ours` compares with the nearest one, and a grade is right if the whole grid obeys
the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from unmask.tasks.checkers import Check
from unmask.tasks.data import Dataset
from unmask.tasks.generated.sudoku import ask, grid_check, share, solutions
from unmask.tasks.published.benchmark import Benchmark, Wording, clip
from unmask.tasks.task import Grade, Metric, Problem, question_in, task

_END = r"<\|eot_id\|>|<\|endoftext\|>"  # either closes an answer, so outputs are read with their special tokens
_FENCED = re.compile(r"```([\d\s]+)```")
_TAGGED = re.compile(rf"(.*?)(?:{_END}|</answer>)", re.DOTALL)
_AFTER = re.compile(rf"(.*?)(?:{_END}|\Z)", re.DOTALL)
_BEFORE = re.compile(r"(\d{16})\s*</answer>")
_WORD = re.compile(r"\b(\d{16})\b")


@task("sudoku-d1")
@dataclass(frozen=True)
class SudokuD1(Benchmark):
    version: ClassVar[int] = 2
    source: ClassVar[Dataset] = Dataset("sudoku4x4/4x4_test_sudoku.csv")
    chosen: ClassVar[Dataset] = Dataset("sudoku4x4/d1_seed42_indices.json")
    wording: ClassVar[Wording] = Wording(
        "Fill in the 4x4 Sudoku. It is written row by row as 16 digits, 0 for a blank; every row, every "
        "column and every 2x2 box must hold 1, 2, 3 and 4. Keep the given digits. Think inside "
        "<reasoning></reasoning>, then give the full grid as 16 digits, row by row and without spaces, inside "
        "<answer></answer>."
    )

    subset: Literal["all", "d1"] = "all"  # all 500, or the 256 that d1 evaluates

    def problems(self) -> list[Problem]:
        problems: list[Problem] = []
        for place, row in enumerate(self.source.rows()):
            puzzle, solution = row["Puzzle"], row["Solution"]
            data = {"puzzle": puzzle, "solution": solution}
            problems.append(Problem(f"sudoku-d1/{place}", ask(puzzle), f"<answer>{solution}</answer>", data))
        return problems if self.subset == "all" else [problems[place] for place in self.chosen.rows()]

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """Return sixteen cells: fewer are padded with blanks, more are cut."""
        grid = re.sub(r"\s" if metric == "d1" else r"[^0-9]", "", _read(clip(text)))
        return grid.ljust(16, "0")[:16] if grid else None

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        if answer is None:
            return Grade(False, 0.0, None, "no answer")
        puzzle = problem.data["puzzle"]
        golds = [problem.data["solution"]] if metric == "d1" else solutions(puzzle)
        score = max(share(puzzle, gold, answer) for gold in golds)
        right = score == 1 if metric == "d1" else answer in golds
        return Grade(right, score, answer, "" if right else "the grid breaks the rules or lacks a given digit")

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        return grid_check(question_in(messages), self.answer)


def _read(text: str) -> str:
    """Return the first that is not empty: a fence after `<answer>`, the tags, the text after them, sixteen digits."""
    opened, closed = (text.partition(tag)[2] for tag in ("<answer>", "</answer>"))
    matches = (
        _FENCED.search(opened),
        _TAGGED.match(opened),
        _AFTER.match(closed),
        _BEFORE.search(text),
        _WORD.search(text),
    )
    return next(filter(None, (match[1].strip() for match in matches if match)), "")
