"""Write first where the likeliest token leads the second by most (Kim et al., arXiv 2502.06768)."""

from dataclasses import dataclass

from unmask.core import decoder
from unmask.decoders.path import Path
from unmask.policies import order


@decoder("margin")
@dataclass(frozen=True)
class Margin(Path):
    order = staticmethod(order.margin)
