"""Which positions are written when: blocks of masks, left to right, and how many each step writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unmask.errors import UnmaskError


@dataclass(frozen=True)
class Step:
    number: int  # counts from 1 over the whole decoding
    block: int
    holes: slice  # the block's entries in the row's list of masks
    open: int  # how many of them are masked when it begins, at most
    quota: int  # how many of those it writes
    index: int  # in its block, from 0
    last: bool  # of its block

    def holds(self, lasts: int | None) -> bool:
        """Whether a decoder holds before it: at a block's start, and where what is held is as many steps old."""
        return self.index == 0 if lasts is None else self.index % lasts == 0


@dataclass(frozen=True)
class Schedule:
    length: int  # masks a row
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
                yield Step(number, block, self.holes(block), sum(quotas[i:]), quota, i, i == len(quotas) - 1)

    def holes(self, block: int) -> slice:
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
