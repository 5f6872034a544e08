"""The result of decoding a prompt: the chosen text, all final rows, and the cost."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from unmask.core import Cost
from unmask.models import Model
from unmask.runs.prompt import EncodedPrompt
from unmask.runs.trace import Trace

MASK_SIGN = "░"  # a mask in partial texts


@dataclass(frozen=True)
class FinalRow:
    """One final hypothesis."""

    text: str
    score: float  # a search's total, or the sum of log p along a single path
    ids: tuple[int, ...]  # the whole row, prompt included


@dataclass(frozen=True)
class Output:
    prompt: str
    text: str  # of the chosen row: cut at end-of-text and stop strings; of fill, with the given text around it
    score: float  # of the chosen row
    rows: tuple[FinalRow, ...]  # all of them: beams, or samples
    chosen: int  # which of the rows
    cost: Cost
    decoder: str  # its text form, every default written out
    seed: int
    settings: dict[str, Any]  # all that is needed to reproduce this
    trace: Trace | None = field(default=None, repr=False)  # if requested

    def __str__(self) -> str:
        return self.text

    def json(self) -> dict[str, Any]:
        """Plain values; the trace has a file of its own."""
        return {
            "text": self.text,
            "score": self.score,
            "rows": [{"text": row.text, "score": row.score} for row in self.rows],
            "chosen": self.chosen,
            "cost": asdict(self.cost),
            "prompt": self.prompt,
            **self.settings,
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'✓' if i == self.chosen else ''}</td><td>{row.score:.3f}</td>"
            f"<td style='text-align:left'><pre>{html.escape(row.text)}</pre></td></tr>"
            for i, row in enumerate(self.rows)
        )
        cost = f"{self.cost.rows} rows ({self.cost.distinct} computed), {self.cost.seconds:.2f} s, seed {self.seed}"
        return (
            f"<p><code>{html.escape(self.decoder)}</code><br>{cost}</p>"
            f"<table><tr><th></th><th>score</th><th style='text-align:left'>text</th></tr>{rows}</table>"
        )


def answer_text(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
    """The text of a finished row after its prompt."""
    return _before(_words(model, ids[len(prompt.ids) :]), stop)


def filled_text(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
    """The given text with its gaps filled, and the text written after it."""
    text, at = "", 0
    for part in prompt.parts:
        size = part if isinstance(part, int) else len(model.text.encode(part))
        text += _words(model, ids[at : at + size]) if isinstance(part, int) else part
        at += size
    return text + _before(_words(model, ids[at:]), stop)


def partial_text(model: Model, ids: Sequence[int]) -> str:
    """An unfinished answer, with a sign for each mask."""
    text = ""
    for masked, run in groupby(ids, lambda token: token == model.denoiser.mask_id):
        tokens = list(run)
        text += MASK_SIGN * len(tokens) if masked else model.text.decode(tokens)
    return text


def _words(model: Model, ids: Sequence[int]) -> str:
    """Up to the first end-of-text."""
    end = next((i for i, token in enumerate(ids) if token in model.eos), len(ids))
    return model.text.decode(list(ids[:end]))


def _before(text: str, stop: Sequence[str]) -> str:
    return text[: min((place for word in stop if (place := text.find(word)) >= 0), default=len(text))]
