"""The nouns that everything else uses. Imports torch and numpy only."""

from unmask.core.beliefs import Beliefs
from unmask.core.cache import CacheView
from unmask.core.canvas import Canvas
from unmask.core.decoder import Branch, Decoder, Frame, decoder
from unmask.core.denoiser import Cost, Denoiser, Meter, Wrapper
from unmask.core.noise import Noise, reseed
from unmask.core.rows import Rows
from unmask.core.schedule import Schedule, Step
from unmask.core.session import Adapter, Decoded, Session, Watch, decode, stream

__all__ = [
    "Adapter",
    "Beliefs",
    "Branch",
    "CacheView",
    "Canvas",
    "Cost",
    "Decoded",
    "Decoder",
    "Denoiser",
    "Frame",
    "Meter",
    "Noise",
    "Rows",
    "Schedule",
    "Session",
    "Step",
    "Watch",
    "Wrapper",
    "decode",
    "decoder",
    "reseed",
    "stream",
]
