"""The nouns that everything else uses. Imports torch and numpy only."""

from unmask.core.beliefs import Beliefs as Beliefs
from unmask.core.cache import CacheView as CacheView
from unmask.core.canvas import Canvas as Canvas
from unmask.core.decoder import Branch as Branch
from unmask.core.decoder import Decoder as Decoder
from unmask.core.decoder import Frame as Frame
from unmask.core.decoder import Scheduled as Scheduled
from unmask.core.decoder import decoder as decoder
from unmask.core.denoiser import Cost as Cost
from unmask.core.denoiser import Denoiser as Denoiser
from unmask.core.denoiser import Meter as Meter
from unmask.core.denoiser import Wrapper as Wrapper
from unmask.core.noise import Noise as Noise
from unmask.core.noise import reseed as reseed
from unmask.core.rows import Rows as Rows
from unmask.core.schedule import Schedule as Schedule
from unmask.core.schedule import Step as Step
from unmask.core.session import Adapter as Adapter
from unmask.core.session import Decoded as Decoded
from unmask.core.session import Session as Session
from unmask.core.session import Watch as Watch
from unmask.core.session import decode as decode
