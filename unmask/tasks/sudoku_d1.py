"""4×4 Sudoku as d1 (arXiv 2504.12216) evaluates it: 500 puzzles of eight blanks, of which it takes 256.

    Puzzle,Solution
    3102200002100320,3142243142131324

The score is the share of the blanks that are right. `d1` compares with the stored grid; 124 of the 500
puzzles have more solutions than that one, so `ours` compares with the nearest of them, and a grade is right
where the whole grid obeys the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from unmask.tasks.benchmark import Benchmark
from unmask.tasks.data import Source
from unmask.tasks.prompts import Prompt
from unmask.tasks.reading import clip, tagged
from unmask.tasks.sudoku import ask, share
from unmask.tasks.sudoku_rules import solutions
from unmask.tasks.task import Grade, Metric, Problem, task

_BEFORE = re.compile(r"([0-9]{16})\s{0,99}</answer>")
_WORD = re.compile(r"\b([0-9]{16})\b")


@task("sudoku-d1")
@dataclass(frozen=True)
class SudokuD1(Benchmark):
    source: ClassVar[Source] = Source("sudoku4x4/4x4_test_sudoku.csv")
    chosen: ClassVar[Source] = Source("sudoku4x4/d1_seed42_indices.json")
    wording: ClassVar[Prompt] = Prompt(
        "Fill in the 4x4 Sudoku. It is written row by row as 16 digits, 0 for a blank; every row, every "
        "column and every 2x2 box must hold 1, 2, 3 and 4. Keep the given digits. Think inside "
        "<reasoning></reasoning>, then give the full grid as 16 digits, row by row and without spaces, inside "
        "<answer></answer>."
    )

    subset: Literal["all", "d1"] = "all"  # all 500, or the 256 that d1 evaluates

    def problems(self) -> list[Problem]:
        made: list[Problem] = []
        for place, row in enumerate(self.source.rows()):
            puzzle, solution = row["Puzzle"], row["Solution"]
            data = {"puzzle": puzzle, "solution": solution}
            made.append(Problem(f"sudoku-d1/{place}", ask(puzzle), f"<answer>{solution}</answer>", data))
        if self.subset == "all":
            return made
        return [made[place] for place in self.chosen.rows()]

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """Sixteen cells: short of that filled up with blanks, beyond it cut."""
        read = _read(clip(text))
        kept = re.sub(r"\s" if metric == "d1" else r"[^0-9]", "", read or "")
        return kept.ljust(16, "0")[:16] if kept else None

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        if answer is None:
            return Grade(False, 0.0, None, "no answer")
        puzzle = problem.data["puzzle"]
        golds = [problem.data["solution"]] if metric == "d1" else solutions(puzzle)
        score = max(share(puzzle, gold, answer) for gold in golds)
        right = score == 1 if metric == "d1" else answer in golds
        return Grade(right, score, answer, "" if right else "the grid breaks the rules or lacks a given digit")


def _read(text: str) -> str | None:
    """The first of the places where models put the grid that holds anything."""
    for place in _PLACES:
        found = (place(text) or "").strip()
        if found:
            return found
    return None


def _fenced(text: str) -> str | None:
    parts = text.partition("<answer>")[2].split("```")
    return next((part for part in parts[1:-1] if "".join(part.split()).isdecimal()), None)


def _found(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def find(text: str) -> str | None:
        match = pattern.search(text)
        return match[1] if match else None

    return find


_PLACES: tuple[Callable[[str], str | None], ...] = (
    _fenced,
    tagged,
    lambda text: text.partition("</answer>")[2],
    _found(_BEFORE),
    _found(_WORD),
)
