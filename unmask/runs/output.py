"""The result of decoding a prompt: the chosen text, all final rows, and the cost."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal

from unmask.core import Cost
from unmask.models import Model
from unmask.runs.prompts import EncodedPrompt
from unmask.runs.trace import Trace

Finish = Literal["stop", "length"]
MASK_SIGN = "░"  # a mask in partial texts


@dataclass(frozen=True)
class Hypothesis:
    """One final hypothesis."""

    text: str
    score: float  # a search's total, or the sum of log p along a single path
    ids: tuple[int, ...]  # the whole row, prompt included


@dataclass(frozen=True)
class Output:
    prompt: str
    text: str  # of the chosen row: cut at end-of-text and stop strings; of fill, with the given text around it
    score: float  # of the chosen row
    hypotheses: tuple[Hypothesis, ...]  # all of them: beams, or samples
    chosen: int  # which of the rows
    cost: Cost
    decoder: str  # its text form, every default written out
    seed: int
    settings: dict[str, Any]  # all that is needed to reproduce this
    finish_reason: Finish = "length"  # `stop`: end-of-text or a stop string ended the text; else its masks did
    trace: Trace | None = field(default=None, repr=False)  # if requested

    def __str__(self) -> str:
        return self.text

    @property
    def distinct(self) -> int:
        """Texts among the rows: fewer than rows where a search's beams have become equal."""
        return len({row.text for row in self.hypotheses})

    def json(self) -> dict[str, Any]:
        """Plain values; the trace has a file of its own."""
        return {
            "text": self.text,
            "score": self.score,
            "hypotheses": [{"text": row.text, "score": row.score} for row in self.hypotheses],
            "chosen": self.chosen,
            "distinct": self.distinct,
            "finish_reason": self.finish_reason,
            "cost": asdict(self.cost),
            "prompt": self.prompt,
            **self.settings,
        }

    def _repr_html_(self) -> str:
        groups: dict[str, list[int]] = {}  # by text: the rows that have it
        for number, row in enumerate(self.hypotheses):
            groups.setdefault(row.text, []).append(number)
        rows = "".join(self._html_row(text, numbers) for text, numbers in groups.items())
        cost = f"{self.cost.forward_passes} rows ({self.cost.computed} computed), {self.cost.seconds:.2f} s, seed {self.seed}"
        cost += f"; {self.distinct} of {len(self.hypotheses)} final texts are distinct"
        return (
            f"<p><code>{html.escape(self.decoder)}</code><br>{cost}</p>"
            f"<table><tr><th></th><th>rows</th><th>score</th><th style='text-align:left'>text</th></tr>"
            f"{rows}</table>"
        )

    def _html_row(self, text: str, numbers: list[int]) -> str:
        score = max(self.hypotheses[number].score for number in numbers)
        return (
            f"<tr><td>{'chosen' if self.chosen in numbers else ''}</td><td>{len(numbers)}</td><td>{score:.3f}</td>"
            f"<td style='text-align:left'><pre>{html.escape(text)}</pre></td></tr>"
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


def finish_reason(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> Finish:
    """Whether something ended the text after the prompt before its last mask."""
    rest = ids[len(prompt.ids) :]
    if any(token in model.eos for token in rest) or any(word in model.text.decode(list(rest)) for word in stop):
        return "stop"
    return "length"


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
