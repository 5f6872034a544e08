"""Decoders: one algorithm per file. Importing this package registers them."""

from unmask.decoders.order_token_search import OrderTokenSearch
from unmask.decoders.path import Entropy, LeftToRight, LowConfidence, Margin, Random
from unmask.decoders.repeat import BestOf, Vote
from unmask.decoders.threshold import Threshold
from unmask.decoders.visible_search import OrderSearch, TokenSearch

__all__ = [
    "BestOf",
    "Entropy",
    "LeftToRight",
    "LowConfidence",
    "Margin",
    "OrderSearch",
    "OrderTokenSearch",
    "Random",
    "Threshold",
    "TokenSearch",
    "Vote",
]
