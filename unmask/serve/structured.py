"""Answers that match a JSON schema or a regular expression, by llguidance.

A grammar says which tokens may follow a text that is complete up to there. So it needs a decoder that writes from left
to right; fixed text at fixed places needs no grammar, since a canvas can hold it anywhere.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Decoder, Denoiser, Wrapper
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoints.tokenizer import Subwords
from unmask.serve.request import Grammar, Request

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MAX_GRAMMAR = 65536  # characters of a grammar


def left_to_right(decoder: Decoder) -> bool:
    return decoder.writer.commits_only and getattr(decoder.writer, "block", None) == 1


def check_grammar(model: Model, request: Request) -> None:
    """Refuse a grammar that is not valid, or that the model, the decoder or other options do not allow."""
    grammar = request.grammar
    if grammar is None:
        return
    if not left_to_right(request.decoding.decoder.resolved(request.masks)):
        raise UnmaskError(
            "a grammar needs a decoder that writes from left to right: use decoder='left-to-right' or one with "
            "block=1, such as ots(block=1)"
        )
    if request.infill:
        raise UnmaskError("a template and a grammar cannot be combined: leave out one of them")
    if request.decoding.suppress:
        raise UnmaskError("a grammar ends with the end-of-text that suppress forbids: leave out one of them")
    if len(grammar.text) > MAX_GRAMMAR:
        raise UnmaskError(f"the grammar must have at most {MAX_GRAMMAR} characters, got {len(grammar.text)}")
    matcher = start_matcher(model, grammar)
    if matcher.is_error():
        raise UnmaskError(f"the grammar cannot be used: {matcher.get_error().splitlines()[0]}")


def start_matcher(model: Model, grammar: Grammar) -> LLMatcher:
    try:
        from llguidance import LLMatcher
    except ImportError:
        raise UnmaskError("a grammar needs llguidance: pip install 'unmask[serve]'") from None
    if not isinstance(model.text, Subwords):
        raise UnmaskError(f"a grammar needs a tokenizer of subwords, which {model.name} does not have")
    tokenizer = _read_tokenizer(model.text.tokenizer.to_str(), tuple(sorted(model.eos)))
    if grammar.kind == "json":
        # Whitespace between the tokens of JSON has no limit: a model could fill its canvas with it.
        compact: Any = {"whitespace_flexible": False}
        try:
            schema = json.loads(grammar.text)
            text = LLMatcher.grammar_from_json_schema(schema, defaults=compact)
        except ValueError as error:
            raise UnmaskError(f"the JSON schema cannot be used: {error}") from None
    else:
        text = LLMatcher.grammar_from_regex(grammar.text)
    return LLMatcher(tokenizer, text, log_level=0)


@lru_cache(maxsize=8)
def _read_tokenizer(text: str, eos: tuple[int, ...]) -> LLTokenizer:
    from llguidance import LLTokenizer

    return LLTokenizer(text, eos_token=list(eos))


class Constrained(Wrapper):
    """Gives probability 0 to tokens that the grammar forbids after the text of a row."""

    def __init__(self, inner: Denoiser, model: Model, grammar: Grammar):
        super().__init__(inner)
        self.eos = model.eos
        start = start_matcher(model, grammar)
        self._states: dict[tuple[int, ...], LLMatcher] = {(): start}  # by the first ids of an answer

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        beliefs = self.inner(canvas, at, cache)
        allowed: dict[int, Tensor] = {}  # by place
        width, start = at.shape[1], canvas.start
        for row, (tokens, columns) in enumerate(zip(canvas.tokens.tolist(), at.tolist(), strict=True)):
            answer = tokens[start:]
            written = answer.index(canvas.mask_id) if canvas.mask_id in answer else len(answer)
            for place, column in enumerate(columns):
                if column - start <= written:
                    text = tuple(answer[: column - start])
                    allowed[row * width + place] = self._allowed(text, beliefs.vocab)

        def read(places: Tensor) -> Tensor:
            logits = beliefs.read(places).clone()
            for i, place in enumerate(places.tolist()):
                if place in allowed:
                    logits[i].masked_fill_(~allowed[place], -torch.inf)
            return logits

        return replace(beliefs, read=read)

    def _allowed(self, ids: tuple[int, ...], vocab: int) -> Tensor:
        mask = torch.zeros(vocab, dtype=torch.bool)
        if not self.eos.isdisjoint(ids):
            mask[sorted(self.eos)] = True  # the answer has ended
        else:
            bits = np.unpackbits(np.frombuffer(self._state(ids).compute_bitmask(), np.uint8), bitorder="little")
            size = min(vocab, len(bits))
            mask[:size] = torch.from_numpy(bits[:size].astype(bool))
        return mask.to(self.device)

    def _state(self, ids: tuple[int, ...]) -> LLMatcher:
        if ids not in self._states:
            matcher = self._state(ids[:-1]).deep_copy()
            matcher.consume_token(ids[-1])
            if matcher.is_error():
                raise UnmaskError(f"the grammar cannot be followed: {matcher.get_error().splitlines()[0]}")
            self._states[ids] = matcher
        return self._states[ids]
