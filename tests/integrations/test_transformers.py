"""`generate(custom_generate=…)` of transformers decodes as `unmask.wrap` does, and refuses what it cannot honour."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GenerationMixin

import unmask
from tests.models.test_wrap import SIZES, Reader
from unmask.errors import UnmaskError
from unmask.integrations.transformers import custom_generate

MASK, LENGTH = 32, 6


class Masked(BertForMaskedLM, GenerationMixin):
    """As a user would give `generate` to a masked language model."""


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    settings: Any = {**SIZES, "vocab_size": 33, "max_position_embeddings": 64, "initializer_range": 0.5}
    return Masked(BertConfig(**settings, pad_token_id=30, eos_token_id=31)).eval()


SLOW = [pytest.param(spec, marks=pytest.mark.slow) for spec in ("ots(beams=2, block=3)", "vote(n=3)")]


@pytest.mark.parametrize("spec", ["low-confidence", *SLOW])
def test_it_writes_what_the_wrapped_model_writes_whatever_the_padding(model: Any, spec: str):
    ids = torch.tensor([[30, 30, 1, 2], [3, 4, 5, 6]])
    attended = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    way = custom_generate(spec, mask_id=MASK, seed=3)
    sequences = model.generate(ids, attention_mask=attended, custom_generate=way, max_new_tokens=LENGTH)
    wrapped = unmask.wrap(model, Reader())
    outputs = unmask.generate(wrapped, [[1, 2], [3, 4, 5, 6]], decoder=spec, length=LENGTH, seed=3)
    for row, output in zip(sequences.tolist(), outputs, strict=True):
        answer = list(output.hypotheses[output.chosen].ids[-LENGTH:])
        end = answer.index(31) + 1 if 31 in answer else LENGTH
        assert row[4:] == answer[:end] + [30] * (LENGTH - end)
    assert torch.equal(sequences[:, :4], ids)
    whole = model.generate(
        ids, attention_mask=attended, custom_generate=way, max_new_tokens=LENGTH, return_dict_in_generate=True
    )
    assert torch.equal(whole.sequences, sequences)


def test_a_temperature_is_the_decoders(model: Any):
    ids, wrapped = torch.tensor([[1, 2]]), unmask.wrap(model, Reader())
    way = custom_generate("random", mask_id=MASK)
    row = model.generate(ids, custom_generate=way, max_new_tokens=4, do_sample=True, temperature=2.0, top_k=0)[0]
    output = unmask.generate(wrapped, [1, 2], decoder="random(temperature=2.0)", length=4)
    assert row.tolist()[: row.tolist().index(31) if 31 in row else None] == list(output.hypotheses[0].ids)[: len(row)]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_beams": 2}, "num_beams does not apply here: name a decoder that searches, such as 'ots(beams=4)'"),
        ({"do_sample": True, "temperature": 0.5, "top_p": 0.5, "top_k": 0}, "TopPLogitsWarper does not apply"),
    ],
)
def test_what_a_decoder_of_masks_has_not_is_refused(model: Any, settings: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        model.generate(torch.tensor([[1]]), custom_generate=custom_generate(mask_id=MASK), max_new_tokens=2, **settings)
    assert str(refusal.value).startswith(sentence)


def test_wrong_arguments_are_refused_at_once(model: Any):
    with pytest.raises(UnmaskError, match="unknown decoder 'serch': did you mean 'search'"):
        custom_generate("serch")
    with pytest.raises(UnmaskError, match="length is not an option here"):
        custom_generate(length=4)
    with pytest.raises(UnmaskError, match="hide padding on the left only"):
        model.generate(
            torch.tensor([[1, 30]]),
            attention_mask=torch.tensor([[1, 0]]),
            custom_generate=custom_generate(mask_id=MASK),
            max_new_tokens=2,
        )
