"""What cannot be decoded is refused with one sentence that says what to do."""

from __future__ import annotations

import math
import re

import pytest
import torch

from tests.decoders.examples import blank, run
from unmask.core import Beliefs, CacheView, Canvas, Denoiser, Session, Wrapper, decoder
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


ONE_TEXT = "repair works on one text: write best-of(inner=repair) to repair every sample"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("ots(beams=0)", "beams must be at least 1, got 0"),
        ("ots(samples=0)", "samples must be at least 1, got 0"),
        ("ots(interval=0)", "interval must be at least 1, got 0"),
        ("ots(draws=0)", "draws must be at least 1, got 0"),
        ("ots(temperature=-0.1)", "temperature must be at least 0, got -0.1"),
        ("ots(temperature=nan)", "temperature must be at least 0, got nan"),
        ("low-confidence(temperature=-1)", "temperature must be at least 0, got -1.0"),
        ("random(temperature=inf)", "temperature must be finite, got inf"),
        ("threshold(sure=1.5)", "sure must be between 0 and 1, got 1.5"),
        ("adaptive(sure=-1)", "sure must be between 0 and 1, got -1.0"),
        ("adaptive(rule=entropie)", "did you mean 'entropy'?"),
        ("adaptive(rule=factor, factor=-1)", "factor must be at least 0, got -1.0"),
        ("adaptive(rule=entropy, budget=nan)", "budget must be at least 0, got nan"),
        ("adaptive(temperature=-1)", "temperature must be at least 0, got -1.0"),
        ("order-search(score=visble)", "did you mean 'visible'?"),
        ("token-search(beams=0)", "beams must be at least 1, got 0"),
        ("vote(n=0)", "n must be at least 1, got 0"),
        ("vote(inner=vote)", "must choose by score"),
        ("vote(inner=low-confidance)", "did you mean 'low-confidence'?"),
        ("vote(temperature=0)", "temperature must be greater than 0, got 0.0"),
        ("best-of(likelihood=interleavd)", "did you mean 'interleaved'?"),
        ("repair(rounds=0)", "rounds must be at least 1, got 0"),
        ("repair(share=0)", "share must be greater than 0, got 0.0"),
        ("repair(share=nan)", "share must be"),
        ("repair(inner=vote)", ONE_TEXT),
        ("repair(inner=best-of)", ONE_TEXT),
        ("repair(likelihood=interleavd)", "did you mean 'interleaved'?"),
        ("search(budget=0)", "budget must be at least 1, got 0"),
        ("search(width=0)", "width must be at least 1, got 0"),
        ("search(seconds=0)", "seconds must be greater than 0, got 0.0"),
        ("search(seconds=nan)", "seconds must be greater than 0, got nan"),
        ("search(plausible=0)", "plausible must be greater than 0, got 0.0"),
        ("search(plausible=nan)", "plausible must be between 0 and 1, got nan"),
        ("search(likelihood=sums)", "did you mean 'sum'?"),
        ("ots(likelihood=blocks)", "unknown likelihood 'blocks': did you mean 'block'?"),
        ("ots(likelihood=interleaved(comb=2))", "did you mean 'combs'?"),
        ("ots(likelihood=interleaved(combs=0))", "combs must be at least 1, got 0"),
        ("ots(likelihood=leave-out(group=0))", "group must be at least 1, got 0"),
        ("ots(likelihood=random-masks(ratio=0))", "ratio must be greater than 0, got 0.0"),
        ("ots(likelihood=random-masks(n=0))", "n must be at least 1, got 0"),
        ("ots(likelihood=sum(first=all-blocks))", "first must not be all-blocks"),
    ],
)
def test_settings_that_cannot_work_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError, match=re.escape(sentence)):
        decoder.make(spec)


def test_prompt_and_length_over_the_context_are_refused(chain: Denoiser):
    run("low-confidence", chain, [[1] * 8], 8)
    with pytest.raises(UnmaskError, match="need 17 positions, the model takes 16: shorten the length by 1"):
        run("low-confidence", chain, [[1], [1] * 9], 8)


def test_an_empty_batch_is_refused(chain: Denoiser):
    with pytest.raises(UnmaskError, match="there is nothing to decode"):
        list(Session(decoder.make("low-confidence"), chain, blank(chain, [])))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("spec", ["ots(beams=2)", "ots(beams=2, temperature=0)", *decoder])
def test_logits_that_are_not_numbers_are_refused(spec: str, bad: float, chain: Denoiser):
    with pytest.raises(UnmaskError, match="the model gave logits that are not numbers"):
        run(spec, Broken(chain, bad), [[1], [2]], 8)
