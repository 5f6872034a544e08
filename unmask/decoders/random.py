"""Write in uniformly random order (LLaDA's random remasking)."""

from dataclasses import dataclass

from unmask.core import decoder
from unmask.decoders.path import Path
from unmask.policies import order


@decoder("random")
@dataclass(frozen=True)
class Random(Path):
    order = staticmethod(order.random)
