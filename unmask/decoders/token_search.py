"""Token search (arXiv 2601.20339, Appendix): each row tries the K likeliest tokens of its surest position."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unmask.core import Beliefs, decoder
from unmask.core.shapes import AtBool
from unmask.decoders.frontier import Frontier, Proposals


@decoder("token-search")
@dataclass(frozen=True)
class TokenSearch(Frontier):
    def propose(self, beliefs: Beliefs, masked: AtBool) -> Proposals:
        _, surest = beliefs.best
        place = surest.masked_fill(~masked, -torch.inf).argmax(1)
        token, logp = beliefs.at(place).top(self.beams)
        token, logp = token[:, 0], logp[:, 0]  # (row, draw)
        return Proposals(place[:, None].expand_as(token), token, logp, logp > -torch.inf)
