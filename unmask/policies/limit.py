"""What a search may still spend: rows of each problem, and seconds of the whole batch."""

from __future__ import annotations

from time import perf_counter

import torch

from unmask.core.shapes import Int, PerRow


class Limit:
    """Counts as it is told."""

    def __init__(self, rows: int, seconds: float | None, problems: Int[torch.Tensor, " problem"]):
        self.left = torch.full_like(problems, rows)  # rows, by problem
        self._now = perf_counter()
        self._end = None if seconds is None else self._now + seconds
        self._longest = 0.0  # step

    def spend(self, problem: PerRow, rows: int = 1) -> None:
        self.left.index_add_(0, problem, torch.full_like(problem, -rows))

    def stop(self, problem: PerRow) -> None:
        self.left[problem] = 0

    def tick(self) -> None:
        """A step is over."""
        before, self._now = self._now, perf_counter()
        self._longest = max(self._longest, self._now - before)

    @property
    def late(self) -> bool:
        """Whether two more steps as long as the longest so far would pass the end."""
        return self._end is not None and self._now + 2 * self._longest > self._end
