"""Texts whose log-likelihood is asked for, and clozes made of them: some tokens hidden, some asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser
from unmask.core.shapes import AtBool, AtTokens, Columns, Int

ASKED = 2**11  # positions asked about at a time: a wrapped module holds the logits of all of them


@dataclass(frozen=True)
class Passage:
    """A text after its prompt. Slots are the text's tokens; blocks of them are scored one after another."""

    prompt: tuple[int, ...]
    text: tuple[int, ...]
    block: int  # slots per block
    lead: int = 0  # positions of the first block that the prompt fills

    def __len__(self) -> int:
        return len(self.prompt) + len(self.text)

    @property
    def blocks(self) -> list[range]:
        stops = range(self.block - self.lead, len(self.text) + self.block, self.block)
        return [range(max(0, stop - self.block), min(stop, len(self.text))) for stop in stops]


class Cloze(NamedTuple):
    passage: Passage
    hidden: tuple[int, ...]  # slots that are masks
    asked: tuple[int, ...]  # those of them that the model is asked about


@dataclass(frozen=True)
class Reply:
    """Beliefs at the asked columns of each cloze; its last one is repeated where others have more."""

    beliefs: Beliefs
    at: Columns
    target: AtTokens  # the text's own tokens there
    real: AtBool  # False where a column is repeated
    computed: list[int]  # positions computed for each cloze


def ask(denoiser: Denoiser, clozes: Sequence[Cloze]) -> Reply:
    """One call of the network, whatever the lengths."""
    device, lengths = denoiser.device, [len(cloze.passage) for cloze in clozes]
    width = max(lengths)
    whole = torch.tensor([_row(cloze.passage, width) for cloze in clozes], device=device)
    hidden = _columns([(cloze.passage, cloze.hidden) for cloze in clozes], width).to(device)
    at = _columns([(cloze.passage, cloze.asked) for cloze in clozes], width).to(device)
    pad = width - torch.tensor(lengths, device=device)
    nothing, ragged = torch.zeros_like(whole), min(lengths) < width
    tokens = whole.scatter(1, hidden, denoiser.mask_id)
    numbers, logp = torch.arange(len(clozes), device=device), nothing.to(denoiser.dtype)
    with torch.inference_mode():
        beliefs = denoiser(Canvas(tokens, nothing, logp, pad, numbers, 0, denoiser.mask_id, ragged), at)
    counts = torch.tensor([[len(cloze.asked)] for cloze in clozes], device=device)
    real = torch.arange(at.shape[1], device=device) < counts
    computed = lengths if beliefs.computed is None else beliefs.computed.tolist()
    return Reply(beliefs, at, whole.gather(1, at), real, computed)


def portions(clozes: Sequence[Cloze]) -> Iterator[Sequence[Cloze]]:
    """As many at a time as memory should hold. Answers do not depend on it."""
    start = most = 0
    for stop, cloze in enumerate(clozes):
        most = max(most, len(cloze.asked))
        if most * (stop + 1 - start) > ASKED and stop > start:
            yield clozes[start:stop]
            start, most = stop, len(cloze.asked)
    yield clozes[start:]


def _row(passage: Passage, width: int) -> list[int]:
    return [*[0] * (width - len(passage)), *passage.prompt, *passage.text]


def _columns(rows: Sequence[tuple[Passage, tuple[int, ...]]], width: int) -> Int[Tensor, "row at"]:
    """Columns of slots; the last of a row is repeated where others have more."""
    most = max(len(slots) for _, slots in rows)
    padded = [(passage, slots + slots[-1:] * (most - len(slots))) for passage, slots in rows]
    return torch.tensor([[width - len(passage.text) + slot for slot in slots] for passage, slots in padded])
