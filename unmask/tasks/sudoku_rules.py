"""The rules of 4×4 Sudoku: each row, column and box holds 1 to 4.

A grid is 16 characters, row by row; 0 is a blank. Only 288 full grids exist, so a puzzle is solved by finding those
that keep its digits.
"""

from __future__ import annotations

from collections.abc import Iterator

UNITS = (
    *(tuple(range(row, row + 4)) for row in range(0, 16, 4)),
    *(tuple(range(column, 16, 4)) for column in range(4)),
    *((box, box + 1, box + 4, box + 5) for box in (0, 2, 8, 10)),
)
PEERS = tuple(frozenset(other for unit in UNITS if cell in unit for other in unit) - {cell} for cell in range(16))


def fits(puzzle: str, grid: str) -> bool:
    """Whether the grid is full, keeps every given digit and obeys the rules."""
    if len(grid) != 16 or len(puzzle) != 16 or not _keeps(puzzle, grid):
        return False
    return all({grid[cell] for cell in unit} == set("1234") for unit in UNITS)


def solutions(puzzle: str) -> list[str]:
    """Every completion of a puzzle, smallest first."""
    return [grid for grid in GRIDS if _keeps(puzzle, grid)]


def _keeps(puzzle: str, grid: str) -> bool:
    return all(given in ("0", cell) for given, cell in zip(puzzle, grid, strict=False))


def _fill(grid: str) -> Iterator[str]:
    if len(grid) == 16:
        yield grid
        return
    seen = {grid[peer] for peer in PEERS[len(grid)] if peer < len(grid)}
    for digit in "1234":
        if digit not in seen:
            yield from _fill(grid + digit)


GRIDS = tuple(_fill(""))
