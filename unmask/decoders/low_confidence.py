"""Write what the model is surest of first (LLaDA's low-confidence remasking)."""

from dataclasses import dataclass

from unmask.core import decoder
from unmask.decoders.path import Path
from unmask.policies import order


@decoder("low-confidence")
@dataclass(frozen=True)
class LowConfidence(Path):
    order = staticmethod(order.confidence)
