"""Schedules: blocks of masks, left to right, and how many masks each step writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, count

from unmask.errors import UnmaskError


@dataclass(frozen=True)
class Step:
    number: int  # counts from 1
    block: int
    size: int  # slots of every block, except perhaps the last
    span: slice  # the block's slots
    open: int  # most masks in the block when the step begins
    quota: int  # masks that the step writes
    last: bool  # True for the last step of its block
    lead: int = 0  # positions of the first block that are not slots


@dataclass(frozen=True)
class Schedule:
    length: int  # slots per row
    block: int
    steps: int
    quotas: tuple[tuple[int, ...], ...]  # for each block, the writes of each of its steps
    lead: int = 0  # positions of the first block that are not slots

    @classmethod
    def plan(cls, length: int, block: int | None = None, steps: int | None = None) -> Schedule:
        """Divide steps among blocks: spare steps go to the earliest blocks, spare writes to the earliest steps."""
        block = min(32, length) if block is None else block
        if not 1 <= block <= length:
            raise UnmaskError(f"block must be between 1 and {length}, the number of masks, got {block}")
        sizes = [min(block, length - start) for start in range(0, length, block)]
        if steps is None:
            steps = length if block == 1 else max(len(sizes), length // 2)
        if not len(sizes) <= steps <= length:
            raise UnmaskError(
                f"steps must be between {len(sizes)} and {length} for blocks of {block} over {length} masks, "
                f"got {steps}"
            )
        return cls(length, block, steps, tuple(map(_spread, sizes, _share(steps, sizes))))

    @classmethod
    def align(cls, length: int, block: int, steps: int | None, lead: int) -> Schedule:
        """Align blocks with a block-causal model's: the first has `lead` fewer slots, and short blocks fewer steps."""
        share = max(1, block // 2) if steps is None else round(steps * block / length)
        full = _spread(block, max(1, min(block, share)))
        sizes = [min(block - lead, length)]
        sizes += [min(block, length - start) for start in range(sizes[0], length, block)]
        quotas = tuple(_cut(full, size) for size in sizes)
        return cls(length, block, sum(map(len, quotas)), quotas, lead)

    def __iter__(self) -> Iterator[Step]:
        numbers = count(1)
        for block, quotas in enumerate(self.quotas):
            for i, quota in enumerate(quotas):
                last, span = i == len(quotas) - 1, self.span(block)
                yield Step(next(numbers), block, self.block, span, sum(quotas[i:]), quota, last, self.lead)

    @property
    def blocks(self) -> int:
        return len(self.quotas)

    def span(self, block: int) -> slice:
        start = block * self.block - self.lead
        return slice(max(0, start), min(start + self.block, self.length))


def _share(steps: int, sizes: list[int]) -> list[int]:
    """Divide steps among blocks equally, the remainder one each to the earliest, never more than a block's masks."""
    *full, short = sizes  # only the last block may hold fewer masks, and then leave steps to the others
    last = min(short, steps // len(sizes))
    return [*_spread(steps - last, len(full)), last] if full else [steps]


def _cut(quotas: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return the first quotas that write `size` in all, the last of them cut."""
    before = accumulate(quotas, initial=0)
    return tuple(min(quota, size - done) for quota, done in zip(quotas, before, strict=False) if done < size)


def _spread(count: int, parts: int) -> tuple[int, ...]:
    """Divide into equal parts, the remainder one each to the earliest."""
    each, more = divmod(count, parts)
    return tuple(each + (i < more) for i in range(parts))
