"""4×4 Sudoku; the level is how many cells are blank. Any grid that keeps the given digits and the rules is right.

Solve the following Sudoku puzzle: 3102200002100320

3142
2431
4213
1324
<answer>3142243142131324</answer>
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from unmask.tasks.generated import Generated, Sketch, tagged
from unmask.tasks.sudoku_rules import GRIDS, fits, solutions
from unmask.tasks.task import Grade, Metric, Problem, task


@task("sudoku")
@dataclass(frozen=True)
class Sudoku(Generated):
    family: ClassVar[str] = "sudoku"
    version: ClassVar[int] = 2
    levels: ClassVar[range] = range(4, 14)

    level: int = 12  # blank cells

    def sketch(self, rng: Random) -> Sketch:
        grid = GRIDS[int(rng.random() * len(GRIDS))]
        cells = list(grid)
        for cell in rng.sample(range(16), self.level):
            cells[cell] = "0"
        puzzle = "".join(cells)
        return Sketch(puzzle, ask(puzzle), solve(grid), {"puzzle": puzzle})

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        del metric
        read = "".join((tagged(text) or "").split())
        return read if len(read) == 16 and read.isascii() and read.isdigit() else None

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        if answer is None:
            return Grade(False, 0.0, None, "no grid of 16 digits")
        puzzle = problem.data["puzzle"]
        right = fits(puzzle, answer)
        score = max(share(puzzle, grid, answer) for grid in solutions(puzzle))
        return Grade(right, score, answer, "" if right else "the grid breaks the rules")


def ask(puzzle: str) -> str:
    return f"Solve the following Sudoku puzzle: {puzzle}"


def solve(grid: str) -> str:
    return f"{grid[:4]}\n{grid[4:8]}\n{grid[8:12]}\n{grid[12:]}\n<answer>{grid}</answer>"


def share(puzzle: str, solution: str, answer: str) -> float:
    """Right cells among the blanks."""
    blanks = [cell for cell in range(16) if puzzle[cell] == "0"]
    return sum(answer[cell] == solution[cell] for cell in blanks) / len(blanks)
