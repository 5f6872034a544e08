"""The drop-in for LLaDA's generate gives the published loop's greedy tokens."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import unmask
from unmask.bench import reference_loops as plain
from unmask.errors import UnmaskError
from unmask.integrations.compat import generate
from unmask.models.network.transformer import Transformer

MASK = 32


class Module(torch.nn.Module):
    """What a user of LLaDA's loop holds: a module that takes ids and returns an object with logits."""

    def __init__(self, inner: Transformer):
        super().__init__()
        self.inner = inner

    def forward(self, tokens: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.inner.head(self.inner(tokens)))


@pytest.fixture(scope="module")
def model() -> unmask.Model:
    return unmask.load("toy-transformer(sharpness=4.0)", dtype="float64")


@pytest.fixture(scope="module")
def module(model: unmask.Model) -> Module:
    return Module(model.denoiser.module)  # type: ignore[attr-defined]


def published(module: Module, prompt: Tensor, steps: int, length: int, block: int, late: tuple = ()) -> list[int]:
    """The published loop at temperature 0, flags included, written from its description."""
    x = torch.cat([prompt, torch.full((1, length), MASK)], dim=1)
    for start in range(prompt.shape[1], x.shape[1], block):
        share = steps // (length // block)
        for step in range(share):
            l = module(x).logits
            l[..., MASK] = -torch.inf
            x0 = l.argmax(-1)
            l[..., list(late)] = -torch.inf
            p = l.softmax(-1).gather(-1, x0[..., None])[0, :, 0]
            p[x[0] != MASK] = -torch.inf
            p[start + block :] = -torch.inf
            quota = block // share + (step < block % share)
            written = p.sort(descending=True, stable=True).indices[:quota]
            x[0, written] = x0[0, written]
    return x[0].tolist()


@pytest.mark.parametrize(("steps", "length", "block"), [(16, 16, 16), (8, 16, 4), (6, 12, 6), (6, 16, 8)])
def test_the_greedy_tokens_are_the_plain_loops(module, model, steps: int, length: int, block: int):
    prompt = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    settings: dict = {"steps": steps, "gen_length": length, "block_length": block}
    theirs = generate(module, prompt, mask_id=MASK, **settings)
    for row, ids in enumerate(prompt.tolist()):
        loop = plain.one_path(lambda x: module(x).logits, ids, length, MASK, block=block, steps=steps)
        assert theirs[row].tolist() == loop.tokens
        assert loop.tokens == published(module, prompt[row : row + 1], steps, length, block)
    assert torch.equal(generate(model, prompt, **settings), theirs)


def test_padding_is_left_where_it_was_and_changes_nothing(module):
    prompt = torch.tensor([[0, 0, 0, 7, 8], [0, 1, 2, 3, 4]])
    mask = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    out = generate(module, prompt, mask, steps=4, gen_length=8, block_length=4, mask_id=MASK)
    assert torch.equal(out[:, :5], prompt)
    for row in range(2):
        alone = prompt[row : row + 1, mask[row].bool()]
        solo = generate(module, alone, steps=4, gen_length=8, block_length=4, mask_id=MASK)
        assert out[row, 5:].tolist() == solo[0, -8:].tolist()


def test_guidance_is_the_published_formula(module):
    prompt = torch.tensor([[3, 1, 4]])

    def guided(x: Tensor) -> Tensor:
        hidden = x.clone()
        hidden[:, :3] = MASK
        given, not_given = module(x).logits, module(hidden).logits
        return not_given + (1.5 + 1) * (given - not_given)

    loop = plain.one_path(guided, [3, 1, 4], 8, MASK, block=4, steps=4)
    out = generate(module, prompt, steps=4, gen_length=8, block_length=4, cfg_scale=1.5, mask_id=MASK)
    assert out[0].tolist() == loop.tokens
    without = generate(module, prompt, steps=4, gen_length=8, block_length=4, mask_id=MASK)
    assert out.tolist() != without.tolist()


@pytest.mark.slow
def test_keeping_tokens_back_is_the_published_flag_at_temperature_0_and_works_above_it(module, monkeypatch):
    settings: dict = {"steps": 16, "gen_length": 16, "block_length": 16, "mask_id": MASK}
    prompts = [torch.tensor([[first, 1, 4]]) for first in range(6)]
    free = [generate(module, prompt, **settings)[0, 3:] for prompt in prompts]
    eos, eot = torch.cat(free).bincount().topk(2).indices.tolist()  # so that there is something to keep back
    monkeypatch.setattr("unmask.integrations.compat.EOS", eos)
    monkeypatch.setattr("unmask.integrations.compat.EOT", eot)
    held = [generate(module, prompt, confidence_eos_eot_inf=True, **settings)[0] for prompt in prompts]
    for prompt, out in zip(prompts, held, strict=True):
        assert out.tolist() == published(module, prompt, 16, 16, 16, late=(eos, eot))
    assert [out[3:].tolist() for out in held] != [out.tolist() for out in free]

    settings["temperature"] = 1.0

    def count(**flag: Any) -> int:
        outs = [generate(module, prompt, seed=seed, **settings, **flag) for prompt in prompts[:3] for seed in range(4)]
        return sum(int((out[:, 3:] == eos).sum()) for out in outs)

    assert count(logits_eos_inf=True) == 0 < count(confidence_eos_eot_inf=True) < count()


def test_steps_beyond_the_length_are_idle_as_in_the_published_loop(module):
    prompt = torch.tensor([[3, 1, 4]])
    many = generate(module, prompt, steps=64, gen_length=8, block_length=8, mask_id=MASK)
    assert torch.equal(many, generate(module, prompt, steps=8, gen_length=8, block_length=8, mask_id=MASK))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"remasking": "low-confidence"}, "did you mean 'low_confidence'"),
        ({"block_length": 128, "gen_length": 8}, "block must be between"),
        ({"cfg_scale": -1.0}, "cfg_scale must be at least 0, got -1.0"),
        ({"confidence_eos_eot_inf": True, "remasking": "random"}, "changes nothing"),
        ({"attention_mask": torch.tensor([[1, 1, 0]])}, "on the left only"),
        ({"mask_id": 3}, "mask_id must be 32"),
    ],
)
def test_wrong_arguments_are_refused(model, wrong: dict, sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        generate(model, torch.tensor([[3, 1, 4]]), **{"block_length": 8, "gen_length": 8, **wrong})
