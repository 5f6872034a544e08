"""Text of an unfinished answer that is certain: what all live rows share, in whole characters, up to its end."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.core import Decoder, Frame
from unmask.decoders import Adaptive, OrderTokenSearch, Threshold
from unmask.decoders.path import SinglePath
from unmask.decoders.repeat import Repeated
from unmask.decoders.visible_search import VisibleSearch
from unmask.models import Model
from unmask.models.text import HALF
from unmask.serve.request import Request

WRITERS = (SinglePath, Adaptive, Threshold, OrderTokenSearch, VisibleSearch)


def only_writes(decoder: Decoder) -> bool:
    """Whether what is written stays: then all that live rows share is certain. Others are certain at their end."""
    return only_writes(decoder.inner) if isinstance(decoder, Repeated) else isinstance(decoder, WRITERS)


class Committed:
    """Follows the frames of one request and hands out its certain text piece by piece."""

    def __init__(self, model: Model, request: Request):
        self.model, self.request = model, request
        self.certain = only_writes(request.decoding.decoder)
        self.sent = ""

    def see(self, frame: Frame) -> str:
        """What became certain with this frame."""
        return self._next(self.text(frame.canvas.tokens.tolist())) if self.certain else ""

    def end(self, text: str) -> str:
        """The rest of the final text."""
        return self._next(text)

    def _next(self, text: str) -> str:
        if not text.startswith(self.sent):
            return ""
        piece, self.sent = text[len(self.sent) :], text
        return piece

    def text(self, rows: list[list[int]]) -> str:
        request, at, text = self.request, 0, ""
        parts: tuple[str | int, ...] = (*request.prompt.parts, request.decoding.length)
        if request.suffix:
            parts = request.prompt.parts[:-1]
        if not request.template:
            parts, at = (request.decoding.length,), len(request.prompt.ids)
        shared = self._shared(rows)
        for number, part in enumerate(parts):
            if isinstance(part, str):
                text, at = text + part, at + len(self.model.text.encode(part))
                continue
            words, whole = self._gap(shared, at, part)
            last = number == len(parts) - 1
            text, at = text + (self._stopped(words, whole) if last else words), at + part
            if not whole:
                break
        return text[len(request.given) :]

    def _shared(self, rows: list[list[int]]) -> list[int]:
        """The ids that all rows begin with, before any mask."""
        first, mask = rows[0], self.model.denoiser.mask_id
        size = next((i for i, ids in enumerate(zip(*rows, strict=True)) if len({*ids}) > 1 or mask in ids), len(first))
        return first[:size]

    def _gap(self, shared: Sequence[int], at: int, size: int) -> tuple[str, bool]:
        """The text of a gap so far, and whether it is complete."""
        ids = list(shared[at : at + size])
        end = next((i for i, token in enumerate(ids) if token in self.model.eos), None)
        whole = end is not None or len(ids) == size
        text = self.model.text.decode(ids[:end])
        return (text, True) if whole else (text.rstrip(HALF), False)

    def _stopped(self, text: str, whole: bool) -> str:
        """Cut before a stop string, and before the beginning of one where more text may follow."""
        stops = self.request.decoding.stop
        text = text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]
        if whole or not stops:
            return text
        longest = max(map(len, stops)) - 1
        ends = (size for size in range(min(longest, len(text)), 0, -1))
        held = next((size for size in ends if any(stop.startswith(text[-size:]) for stop in stops)), 0)
        return text[: len(text) - held]
