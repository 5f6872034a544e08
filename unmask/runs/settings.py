"""How prompts are to be answered: everything a record needs to have it happen again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unmask.core import Adapter, Canvas, Decoder, Denoiser, decoder
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.cache import cached, make_cache
from unmask.models.early_end import EarlyEnd
from unmask.models.guidance import Guided
from unmask.models.suppress import Suppressed


@dataclass(frozen=True)
class Settings:
    decoder: Decoder
    length: int  # masks after the prompt
    seed: int = 0
    guidance: float = 0.0  # scale of classifier-free guidance; twice the rows when above 0
    suppress: bool = False  # end-of-text is never written
    early_end: bool = False  # approximate: nothing is computed after an answer's end-of-text
    stop: tuple[str, ...] = ()  # the text is cut before the first of these
    cache: str = "none"  # approximate: keys and values of the prefix, or of all but the block, kept through a block

    def __post_init__(self) -> None:
        if not isinstance(self.decoder, Decoder):
            kind = type(self.decoder).__name__
            raise UnmaskError(f"a decoder is a spec such as 'ots(beams=4)' or an object, not {kind}")
        for name in ("length", "seed"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, int):
                raise UnmaskError(f"{name}={value!r} does not work: give a whole number")
        if not isinstance(self.guidance, int | float) or not 0 <= self.guidance < math.inf:
            raise UnmaskError(f"guidance={self.guidance!r} does not work: choose 0 (none) or more")
        if self.suppress and self.early_end:
            raise UnmaskError("early_end waits for the end-of-text that suppress forbids: choose one of them")
        object.__setattr__(self, "cache", make_cache(self.cache))  # the one way to write it, in every record
        if any(not isinstance(word, str) or not word for word in self.stop):
            raise UnmaskError("a stop string is empty or no text: give at least one character")

    def denoiser(self, model: Model) -> Denoiser:
        """What the meter counts."""
        return cached(model.denoiser, self.cache, model.name)

    def adapter(self, model: Model) -> Adapter:
        """What stands between the meter and the decoder; guidance innermost, so that it is counted."""

        def adapt(denoiser: Denoiser, canvas: Canvas) -> Denoiser:
            if self.guidance > 0:
                denoiser = Guided(denoiser, canvas.real & ~canvas.masked, self.guidance)
            if self.suppress:
                denoiser = Suppressed(denoiser, model.eos)
            return EarlyEnd(denoiser, model.eos) if self.early_end else denoiser

        return adapt

    def record(self, masks: int) -> dict[str, Any]:
        """As plain values, every default of the decoder written out for this number of masks."""
        return {
            "decoder": spec(self.decoder.resolved(masks)),
            "length": self.length,
            "seed": self.seed,
            "guidance": self.guidance,
            "suppress": self.suppress,
            "early_end": self.early_end,
            "cache": self.cache,
            "stop": list(self.stop),
        }


def spec(made: Decoder) -> str:
    """The decoder's text form; an unregistered one is named by its own repr."""
    try:
        return decoder.spec(made)
    except UnmaskError:
        return repr(made)
