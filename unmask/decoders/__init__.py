"""Decoders: one algorithm per file. Importing this package registers them."""

from unmask.decoders.adaptive import Adaptive as Adaptive
from unmask.decoders.adaptive import Threshold as Threshold
from unmask.decoders.dream import Dream as Dream
from unmask.decoders.order_or_token_search import OrderSearch as OrderSearch
from unmask.decoders.order_or_token_search import TokenSearch as TokenSearch
from unmask.decoders.order_token_search import OrderTokenSearch as OrderTokenSearch
from unmask.decoders.path import Entropy as Entropy
from unmask.decoders.path import LeftToRight as LeftToRight
from unmask.decoders.path import LowConfidence as LowConfidence
from unmask.decoders.path import Margin as Margin
from unmask.decoders.path import Random as Random
from unmask.decoders.repair import Repair as Repair
from unmask.decoders.repeat import BestOf as BestOf
from unmask.decoders.repeat import Vote as Vote
from unmask.decoders.search import BestFirstSearch as BestFirstSearch
