"""What cannot be decoded is refused with one sentence that says what to do."""

from __future__ import annotations

import math

import pytest
import torch

import unmask.decoders  # noqa: F401  registers
from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Session, Wrapper, decode, decoder
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models.load import load


class Broken(Wrapper):
    """A model whose logits are not numbers at one position."""

    def __init__(self, inner: Denoiser, bad: float):
        super().__init__(inner)
        self.bad = bad

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        beliefs = self.inner(canvas, at, cache)

        def read(places: torch.Tensor) -> torch.Tensor:
            logits = beliefs.read(places).clone()
            logits[places == 1] = self.bad
            return logits

        return Beliefs(read, beliefs.shape, beliefs.vocab, beliefs.mask_id, beliefs.device)


@pytest.fixture(scope="module")
def chain() -> Denoiser:
    return load("toy-chain(letters=4, context=16)").denoiser


def blank(denoiser: Denoiser, prompts: list[list[int]], length: int) -> Canvas:
    return Canvas.blank(prompts, length, denoiser.mask_id, dtype=denoiser.dtype)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("ots(beams=0)", "beams must be at least 1, got 0"),
        ("ots(beams=-1)", "beams must be at least 1, got -1"),
        ("ots(samples=0)", "samples must be at least 1, got 0"),
        ("ots(interval=0)", "interval must be at least 1, got 0"),
        ("ots(temperature=-0.1)", "temperature must be at least 0, got -0.1"),
        ("ots(temperature=nan)", "temperature must be at least 0, got nan"),
        ("low-confidence(temperature=-1)", "temperature must be at least 0, got -1.0"),
        ("random(temperature=inf)", "temperature must be finite, got inf"),
        ("threshold(sure=1.5)", "sure must be between 0 and 1, got 1.5"),
        ("adaptive(sure=-1)", "sure must be between 0 and 1, got -1.0"),
        ("adaptive(rule=entropie)", "adaptive(rule=…) cannot be 'entropie': did you mean 'entropy'?"),
        ("adaptive(rule=factor, factor=-1)", "factor must be at least 0, got -1.0"),
        ("adaptive(rule=entropy, budget=nan)", "budget must be at least 0, got nan"),
        ("adaptive(temperature=-1)", "temperature must be at least 0, got -1.0"),
        ("ots(likelihood=blocks)", "unknown likelihood 'blocks': did you mean 'block'?"),
        ("ots(likelihood=interleaved(combs=0))", "combs must be at least 1, got 0"),
        ("ots(likelihood=leave-out(group=0))", "group must be at least 1, got 0"),
        (
            "ots(likelihood=interleaved(comb=2))",
            "likelihood 'interleaved' has no setting 'comb': did you mean 'combs'?",
        ),
        ("ots(beam=4)", "decoder 'ots' has no setting 'beam': did you mean 'beams'?"),
        ("order-tokn-search", "unknown decoder 'order-tokn-search': did you mean 'order-token-search'?"),
        ("low-confidence(steps=few)", "low-confidence(steps=…) takes a whole number, not 'few'"),
    ],
)
def test_settings_that_cannot_work_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        decoder.make(spec)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("ots(block=9)", "block must be between 1 and 8, the number of masks, got 9"),
        ("low-confidence(block=0)", "block must be between 1 and 8, the number of masks, got 0"),
        ("ots(block=3, steps=2)", "steps must be between 3 and 8 for blocks of 3 over 8 masks, got 2"),
        ("margin(block=4, steps=9)", "steps must be between 2 and 8 for blocks of 4 over 8 masks, got 9"),
        ("threshold(block=9)", "block must be between 1 and 8, the number of masks, got 9"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(spec: str, sentence: str, chain: Denoiser):
    with pytest.raises(UnmaskError) as refusal:
        decode(decoder.make(spec), chain, blank(chain, [[1]], 8))
    assert sentence in str(refusal.value)


def test_prompt_and_length_over_the_context_are_refused(chain: Denoiser):
    decode(decoder.make("low-confidence"), chain, blank(chain, [[1] * 8], 8))
    with pytest.raises(UnmaskError) as refusal:
        decode(decoder.make("low-confidence"), chain, blank(chain, [[1], [1] * 9], 8))
    sentence = "prompt and answer need 17 positions, the model takes 16: shorten the length by 1 or the prompt"
    assert sentence in str(refusal.value)


def test_an_empty_batch_is_refused(chain: Denoiser):
    with pytest.raises(UnmaskError, match="there is nothing to decode: give at least one prompt"):
        list(
            Session(
                decoder.make("low-confidence"), chain, blank(chain, [[1]], 4).rows(torch.tensor([], dtype=torch.long))
            )
        )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("spec", ["ots(beams=2)", "ots(beams=2, temperature=0)", *decoder])
def test_logits_that_are_not_numbers_are_refused(spec: str, bad: float, chain: Denoiser):
    with pytest.raises(UnmaskError) as refusal:
        decode(decoder.make(spec), Broken(chain, bad), blank(chain, [[1], [2]], 8))
    assert str(refusal.value) == "the model gave logits that are not numbers: check its weights and dtype"
