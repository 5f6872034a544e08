"""The nouns everything stands on. Knows torch and numpy only."""

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.cost import Cost, Metered
from unmask.core.decode import Adapter, Decoded, Watch, decode, stream
from unmask.core.decoder import Branch, Decoder, Frame, decoder
from unmask.core.denoiser import Denoiser, Wrapper, lasts
from unmask.core.held import Held
from unmask.core.noise import Noise, reseed
from unmask.core.schedule import Schedule, Step

__all__ = [
    "Adapter",
    "Beliefs",
    "Branch",
    "Canvas",
    "Cost",
    "Decoded",
    "Decoder",
    "Denoiser",
    "Frame",
    "Held",
    "Metered",
    "Noise",
    "Schedule",
    "Step",
    "Watch",
    "Wrapper",
    "decode",
    "decoder",
    "lasts",
    "reseed",
    "stream",
]
