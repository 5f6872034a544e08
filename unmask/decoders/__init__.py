"""Decoders: one algorithm a file. Importing this room registers them all."""

from unmask.decoders.entropy import Entropy
from unmask.decoders.left_to_right import LeftToRight
from unmask.decoders.low_confidence import LowConfidence
from unmask.decoders.margin import Margin
from unmask.decoders.order_token_search import OrderTokenSearch
from unmask.decoders.random import Random
from unmask.decoders.threshold import Threshold

__all__ = ["Entropy", "LeftToRight", "LowConfidence", "Margin", "OrderTokenSearch", "Random", "Threshold"]
