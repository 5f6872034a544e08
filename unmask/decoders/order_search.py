"""Order search (arXiv 2601.20339, Appendix): each row tries its K surest positions, each with its likeliest token."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unmask.core import Beliefs, decoder
from unmask.core.shapes import AtBool
from unmask.decoders.frontier import Frontier, Proposals


@decoder("order-search")
@dataclass(frozen=True)
class OrderSearch(Frontier):
    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        token, logp = beliefs.best
        ranked = logp.masked_fill(~masked, -torch.inf).sort(dim=1, descending=True, stable=True)
        place = ranked.indices[:, : self.beams]
        return Proposals(place, token.gather(1, place), logp.gather(1, place), masked.gather(1, place))
