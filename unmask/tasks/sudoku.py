"""4×4 Sudoku; the level is how many cells are blank. Any grid that keeps the given digits and the rules is right.

Solve the following Sudoku puzzle: 3102200002100320

3142
2431
4213
1324
<answer>3142243142131324</answer>
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from unmask.tasks.generated import Generated, Sketch, choose, tagged
from unmask.tasks.sudoku_rules import GRIDS, fits, solutions
from unmask.tasks.task import Grade, Metric, Problem, task


@task("sudoku")
@dataclass(frozen=True)
class Sudoku(Generated):
    levels: ClassVar[range] = range(4, 14)
    missing: ClassVar[str] = "no grid of 16 digits"

    level: int = 12  # blank cells

    def sketch(self, rng: Random) -> Sketch:
        grid = choose(rng, GRIDS)
        cells = list(grid)
        for cell in rng.sample(range(16), self.level):
            cells[cell] = "0"
        puzzle = "".join(cells)
        return Sketch(puzzle, ask(puzzle), solve(grid), {"puzzle": puzzle})

    def read(self, text: str) -> str | None:
        grid = "".join((tagged(text) or "").split())
        return grid if len(grid) == 16 and grid.isascii() and grid.isdigit() else None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if fits(problem.data["puzzle"], answer) else "the grid breaks the rules"

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        """The score is the fraction of blanks that match the nearest solution."""
        grade = super().grade(problem, text, metric)
        if grade.answer is None:
            return grade
        puzzle = problem.data["puzzle"]
        return replace(grade, score=max(share(puzzle, grid, grade.answer) for grid in solutions(puzzle)))


def ask(puzzle: str) -> str:
    return f"Solve the following Sudoku puzzle: {puzzle}"


def solve(grid: str) -> str:
    return f"{grid[:4]}\n{grid[4:8]}\n{grid[8:12]}\n{grid[12:]}\n<answer>{grid}</answer>"


def share(puzzle: str, solution: str, answer: str) -> float:
    """The fraction of the blanks that are filled as in the solution."""
    blanks = [cell for cell in range(16) if puzzle[cell] == "0"]
    return sum(answer[cell] == solution[cell] for cell in blanks) / len(blanks)
