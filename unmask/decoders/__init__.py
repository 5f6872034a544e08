"""Decoders: one algorithm per file. Importing this package registers them."""

from unmask.decoders.adaptive import Adaptive, Threshold
from unmask.decoders.dream import Dream
from unmask.decoders.order_or_token_search import OrderSearch, TokenSearch
from unmask.decoders.order_token_search import OrderTokenSearch
from unmask.decoders.path import Entropy, LeftToRight, LowConfidence, Margin, Random
from unmask.decoders.repair import Repair
from unmask.decoders.repeat import BestOf, Vote
from unmask.decoders.search import BestFirstSearch

__all__ = [
    "Adaptive",
    "BestFirstSearch",
    "BestOf",
    "Dream",
    "Entropy",
    "LeftToRight",
    "LowConfidence",
    "Margin",
    "OrderSearch",
    "OrderTokenSearch",
    "Random",
    "Repair",
    "Threshold",
    "TokenSearch",
    "Vote",
]
