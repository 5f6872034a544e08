"""Modules of other libraries as models: what they believe is kept, and causal ones are refused."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel, LlamaConfig, LlamaForCausalLM

import unmask.decoders  # noqa: F401  registers them
from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.models import load
from unmask.models.hf import wrap
from unmask.models.toy import Letters

SIZES: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
VOCAB = 33


class Reader:
    """The little of a tokenizer of `transformers` that is needed."""

    mask_token_id, eos_token_id, chat_template = 32, 31, None

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return Letters(32).encode(text)

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return Letters(32).decode(ids)


@pytest.fixture(scope="module")
def bert() -> BertForMaskedLM:
    torch.manual_seed(0)
    return BertForMaskedLM(BertConfig(vocab_size=VOCAB, max_position_embeddings=64, initializer_range=0.5, **SIZES))


def test_a_masked_language_model_decodes_and_a_batch_decodes_as_its_rows(bert: BertForMaskedLM) -> None:
    model = wrap(bert, Reader())
    assert (model.denoiser.mask_id, model.denoiser.context, model.eos) == (32, 64, frozenset({31}))
    prompts = [model.text.encode(text) for text in ("abc", "hello", "hallo")]
    for name in decoder:
        together = decode(decoder.make(name), model.denoiser, Canvas.blank(prompts, 6, 32))
        for prompt, result in zip(prompts, together, strict=True):
            alone = decode(decoder.make(name), model.denoiser, Canvas.blank([prompt], 6, 32))[0]
            assert torch.equal(result.canvas.tokens[:, -6:], alone.canvas.tokens[:, -6:])


def test_a_wrapped_module_believes_what_it_says(bert: BertForMaskedLM) -> None:
    denoiser = wrap(bert, Reader()).denoiser
    canvas = Canvas.blank([[1, 2], [3, 4, 5]], 2, 32)
    at = torch.tensor([[3, 4], [0, 4]])
    logits = denoiser(canvas, at).logits(torch.arange(4))
    with torch.inference_mode():
        first, second = bert(canvas.tokens[:1, 1:]).logits[0], bert(canvas.tokens[1:]).logits[0]
    wanted = torch.stack([first[2], first[3], second[0], second[4]])
    wanted[:, 32] = -torch.inf
    assert torch.allclose(logits, wanted, atol=1e-5)


def test_a_shifted_module_is_read_one_position_earlier(bert: BertForMaskedLM) -> None:
    plain, shifted = wrap(bert, Reader()).denoiser, wrap(bert, Reader(), shifted=True).denoiser
    canvas = Canvas.blank([[1, 2, 3]], 2, 32)
    every = torch.arange(5)
    first, second = (each(canvas, every[None]).logits(every) for each in (plain, shifted))
    assert torch.equal(second[1:], first[:-1])
    assert torch.equal(second[0], first[0])


def test_a_native_network_wrapped_is_the_same_model() -> None:
    native = load("toy-transformer")
    module = native.denoiser.module  # type: ignore[attr-defined]

    def call(tokens: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=module.head(module(tokens)))

    wrapped = wrap(call, native.text, mask_id=native.denoiser.mask_id, eos=native.eos, context=64, name="mine")
    canvas = Canvas.blank([[1, 2, 3], [4]], 5, native.denoiser.mask_id)
    ours, wrapped_rows = (decode(decoder.make("ots(beams=2)"), each.denoiser, canvas) for each in (native, wrapped))
    assert [r.canvas.tokens.tolist() for r in ours] == [r.canvas.tokens.tolist() for r in wrapped_rows]
    assert wrapped.name == "mine"
    assert wrapped.text is native.text


def test_a_causal_module_is_refused() -> None:
    torch.manual_seed(0)
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, **SIZES))
    with pytest.raises(UnmaskError, match="LlamaForCausalLM is causal: no later token changes"):
        wrap(llama, Reader())
    decoding = BertForMaskedLM(BertConfig(vocab_size=VOCAB, is_decoder=True, initializer_range=0.5, **SIZES))
    with pytest.raises(UnmaskError, match="is causal \\(its config sets is_decoder\\)"):
        wrap(decoding, Reader())


def test_modules_and_tokenizers_that_lack_something_are_refused(bert: BertForMaskedLM) -> None:
    with pytest.raises(UnmaskError, match="the tokenizer has no mask token: pass its id"):
        wrap(bert, Letters(32))
    with pytest.raises(UnmaskError, match=r"returns no \.logits"):
        wrap(BertModel(bert.config), Reader())
    with pytest.raises(UnmaskError, match="mask_id must be"):
        wrap(bert, Reader(), mask_id=99)
    with pytest.raises(UnmaskError, match="int is not a tokenizer"):
        wrap(bert, 3, mask_id=32)
