"""4×4 Sudoku; the level is the number of blank cells. Any grid that keeps the given digits and the rules is right.

    Solve the following Sudoku puzzle: 3102200002100320

    3142
    2431
    4213
    1324
    <answer>3142243142131324</answer>

A grid is 16 characters, row by row; 0 is a blank. Each row, column and box contains 1 to 4. Only 288 full grids exist,
so a puzzle is solved by finding those that keep its digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import ClassVar

from unmask.tasks.checkers import PASS, Check, Verdict
from unmask.tasks.generated.base import Generated, Sketch, choose, tagged
from unmask.tasks.task import Grade, Metric, Problem, question_in, task

UNITS = (
    *(tuple(range(row, row + 4)) for row in range(0, 16, 4)),
    *(tuple(range(column, 16, 4)) for column in range(4)),
    *((box, box + 1, box + 4, box + 5) for box in (0, 2, 8, 10)),
)
PEERS = tuple(frozenset(other for unit in UNITS if cell in unit for other in unit) - {cell} for cell in range(16))


def _fill(grid: str) -> Iterator[str]:
    """Yield every full grid that begins with these cells."""
    if len(grid) == 16:
        yield grid
        return
    seen = {grid[peer] for peer in PEERS[len(grid)] if peer < len(grid)}
    for digit in "1234":
        if digit not in seen:
            yield from _fill(grid + digit)


@cache
def grids() -> tuple[str, ...]:
    """Return all full grids, smallest first."""
    return tuple(_fill(""))


@task("sudoku")
@dataclass(frozen=True)
class Sudoku(Generated):
    levels: ClassVar[range] = range(4, 14)
    missing: ClassVar[str] = "no grid of 16 digits"

    level: int = 12  # blank cells

    def sketch(self, rng: Random) -> Sketch:
        grid = choose(rng, grids())
        blanks = rng.sample(range(16), self.level)
        puzzle = "".join("0" if cell in blanks else digit for cell, digit in enumerate(grid))
        return Sketch(puzzle, ask(puzzle), solve(grid), {"puzzle": puzzle})

    def read(self, text: str) -> str | None:
        grid = "".join((tagged(text) or "").split())
        return grid if len(grid) == 16 and grid.isascii() and grid.isdigit() else None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer in solutions(problem.data["puzzle"]) else "the grid breaks the rules"

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check | None:
        return grid_check(question_in(messages), self.read)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        """Grade an output; the score is the fraction of blanks that match the nearest solution."""
        grade = super().grade(problem, text, metric)
        if grade.answer is None:
            return grade
        puzzle = problem.data["puzzle"]
        return replace(grade, score=max(share(puzzle, grid, grade.answer) for grid in solutions(puzzle)))


def grid_check(question: str, read: Callable[[str], str | None]) -> Check | None:
    """Return the check that a grid keeps the digits which the question states as `ask` does, and the rules.

    The score counts the cells; of two that are equal, a given one is right.
    """
    stated = re.findall(r"Sudoku puzzle: ([0-4]{16})(?![0-9])", question)
    if not stated:
        return None

    def fits(grid: str, cell: int) -> bool:
        given, digit = stated[-1][cell], grid[cell]
        return digit == given if given != "0" else digit in "1234" and all(digit != grid[peer] for peer in PEERS[cell])

    def check(text: str) -> Verdict:
        grid = read(text)
        if grid is None:
            return Verdict(0.0, note="there is no grid")
        wrong = [cell for cell in range(16) if not fits(grid, cell)]
        if not wrong:
            return PASS
        return Verdict(1 - len(wrong) / 16, _cell_span(text, grid, wrong[0]), f"cell {wrong[0] + 1} breaks the rules")

    return check


def _cell_span(text: str, grid: str, cell: int) -> tuple[int, int] | None:
    """Return where a cell of the grid is written first, in rows or in one line."""
    rows = "\n".join(grid[row : row + 4] for row in range(0, 16, 4))
    found = [(text.find(rows), cell + cell // 4), (text.find(grid), cell)]
    return min(((start + place, start + place + 1) for start, place in found if start >= 0), default=None)


def ask(puzzle: str) -> str:
    return f"Solve the following Sudoku puzzle: {puzzle}"


def solve(grid: str) -> str:
    return f"{grid[:4]}\n{grid[4:8]}\n{grid[8:12]}\n{grid[12:]}\n<answer>{grid}</answer>"


def solutions(puzzle: str) -> list[str]:
    """Return every completion of a puzzle, smallest first."""
    return [grid for grid in grids() if all(given in ("0", cell) for given, cell in zip(puzzle, grid, strict=False))]


def share(puzzle: str, solution: str, answer: str) -> float:
    """Return the fraction of the blanks that are filled as in the solution."""
    blanks = [cell for cell in range(16) if puzzle[cell] == "0"]
    return sum(answer[cell] == solution[cell] for cell in blanks) / len(blanks)
