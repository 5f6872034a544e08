"""Write from left to right: with its default block of 1 this is the paper's AR."""

from dataclasses import dataclass

from unmask.core import decoder
from unmask.decoders.path import Path
from unmask.policies import order


@decoder("left-to-right", "ar")
@dataclass(frozen=True)
class LeftToRight(Path):
    block: int | None = 1

    order = staticmethod(order.left_to_right)
