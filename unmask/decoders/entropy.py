"""Write first where the model's distribution has the least entropy (Dream's 'entropy')."""

from dataclasses import dataclass

from unmask.core import decoder
from unmask.decoders.path import Path
from unmask.policies import order


@decoder("entropy")
@dataclass(frozen=True)
class Entropy(Path):
    order = staticmethod(order.entropy)
