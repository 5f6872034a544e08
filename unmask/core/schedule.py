"""Which positions are written when: blocks of masks, left to right, and how many each step writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unmask.errors import UnmaskError


@dataclass(frozen=True)
class Step:
    number: int  # counts from 1
    block: int
    size: int  # slots of every block, except perhaps the last
    span: slice  # the block's slots
    open: int  # how many of them are masked when it begins, at most
    quota: int  # how many of those it writes
    last: bool  # of its block


@dataclass(frozen=True)
class Schedule:
    length: int  # slots per row
    block: int
    steps: int
    quotas: tuple[tuple[int, ...], ...]  # for each block, the writes of each of its steps

    @classmethod
    def plan(cls, length: int, block: int | None = None, steps: int | None = None) -> Schedule:
        """Spare steps go to the earliest blocks, spare writes to a block's earliest steps."""
        block = min(32, length) if block is None else block
        if not 1 <= block <= length:
            raise UnmaskError(f"block={block} does not fit: choose 1 to {length}, the number of masks")
        sizes = [min(block, length - start) for start in range(0, length, block)]
        steps = _default_steps(length, block, len(sizes)) if steps is None else steps
        if not len(sizes) <= steps <= length:
            raise UnmaskError(
                f"steps={steps} does not fit {len(sizes)} blocks of {block} over {length} masks: "
                f"choose {len(sizes)} to {length}"
            )
        shares = _share(steps, sizes)
        return cls(length, block, steps, tuple(map(_spread, sizes, shares)))

    def __iter__(self) -> Iterator[Step]:
        number = 0
        for block, quotas in enumerate(self.quotas):
            for i, quota in enumerate(quotas):
                number += 1
                last = i == len(quotas) - 1
                yield Step(number, block, self.block, self.span(block), sum(quotas[i:]), quota, last)

    @property
    def blocks(self) -> int:
        return len(self.quotas)

    def span(self, block: int) -> slice:
        return slice(block * self.block, min((block + 1) * self.block, self.length))


def _default_steps(length: int, block: int, blocks: int) -> int:
    return length if block == 1 else max(blocks, length // 2)


def _share(steps: int, sizes: list[int]) -> list[int]:
    """Steps of each block: equal, the remainder one each to the earliest, never more than a block's masks."""
    *full, short = sizes  # only the last block may hold fewer masks, and then leave steps to the others
    last = min(short, steps // len(sizes))
    return [*_spread(steps - last, len(full)), last] if full else [steps]


def _spread(count: int, parts: int) -> tuple[int, ...]:
    """Equal parts, the remainder one each to the earliest."""
    each, more = divmod(count, parts)
    return tuple(each + (i < more) for i in range(parts))
