"""Texts whose log-likelihood is asked for, and questions about them: some tokens hidden, some asked about."""

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


class Question(NamedTuple):
    passage: Passage
    hidden: tuple[int, ...]  # slots that are masks
    asked: tuple[int, ...]  # those of them that the model is asked about


@dataclass(frozen=True)
class Reply:
    """Beliefs at the asked columns of each question; its last one is repeated where others have more."""

    beliefs: Beliefs
    at: Columns
    target: AtTokens  # the text's own tokens there
    real: AtBool  # False where a column is repeated
    computed: list[int]  # positions computed for each question


def ask(denoiser: Denoiser, questions: Sequence[Question]) -> Reply:
    """One call of the network, whatever the lengths."""
    device, lengths = denoiser.device, [len(question.passage) for question in questions]
    width = max(lengths)
    whole = torch.tensor([_row(question.passage, width) for question in questions], device=device)
    hidden = _columns([(question.passage, question.hidden) for question in questions], width).to(device)
    at = _columns([(question.passage, question.asked) for question in questions], width).to(device)
    pad = width - torch.tensor(lengths, device=device)
    nothing, ragged = torch.zeros_like(whole), min(lengths) < width
    tokens = whole.scatter(1, hidden, denoiser.mask_id)
    numbers, logp = torch.arange(len(questions), device=device), nothing.to(denoiser.dtype)
    with torch.inference_mode():
        beliefs = denoiser(Canvas(tokens, nothing, logp, pad, numbers, 0, denoiser.mask_id, ragged), at)
    counts = torch.tensor([[len(question.asked)] for question in questions], device=device)
    real = torch.arange(at.shape[1], device=device) < counts
    computed = lengths if beliefs.computed is None else beliefs.computed.tolist()
    return Reply(beliefs, at, whole.gather(1, at), real, computed)


def portions(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """As many at a time as memory should hold. Answers do not depend on it."""
    start = most = 0
    for stop, question in enumerate(questions):
        most = max(most, len(question.asked))
        if most * (stop + 1 - start) > ASKED and stop > start:
            yield questions[start:stop]
            start, most = stop, len(question.asked)
    yield questions[start:]


def _row(passage: Passage, width: int) -> list[int]:
    return [*[0] * (width - len(passage)), *passage.prompt, *passage.text]


def _columns(rows: Sequence[tuple[Passage, tuple[int, ...]]], width: int) -> Int[Tensor, "row at"]:
    """Columns of slots; the last of a row is repeated where others have more."""
    most = max(len(slots) for _, slots in rows)
    padded = [(passage, slots + slots[-1:] * (most - len(slots))) for passage, slots in rows]
    return torch.tensor([[width - len(passage.text) + slot for slot in slots] for passage, slots in padded])
