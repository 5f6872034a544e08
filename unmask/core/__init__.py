"""The nouns everything stands on. Knows torch and numpy only."""

from unmask.core.beliefs import Beliefs
from unmask.core.canvas import Canvas
from unmask.core.cost import Cost, Metered
from unmask.core.decode import Decoded, decode, stream
from unmask.core.decoder import Branch, Decoder, Frame, decoder
from unmask.core.denoiser import Denoiser
from unmask.core.errors import UnmaskError, nearest
from unmask.core.noise import Noise, reseed
from unmask.core.registry import Registry
from unmask.core.schedule import Schedule, Step

__all__ = [
    "Beliefs",
    "Branch",
    "Canvas",
    "Cost",
    "Decoded",
    "Decoder",
    "Denoiser",
    "Frame",
    "Metered",
    "Noise",
    "Registry",
    "Schedule",
    "Step",
    "UnmaskError",
    "decode",
    "decoder",
    "nearest",
    "reseed",
    "stream",
]
