"""The drop-in for Dream's diffusion_generate gives what a plain transcription of its loop gives, token for token."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import unmask
from tests.api.plain_dream import dream
from tests.api.test_compat import MASK, Module
from unmask.decoders.dream import Dream, quotas
from unmask.errors import UnmaskError
from unmask.integrations.compat import DiffusionOutput, diffusion_generate, generate
from unmask.models.checkpoints.random_weights import random_folder

ALGORITHMS = ("origin", "maskgit_plus", "topk_margin", "entropy")
PROMPTS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
SCHEDULES = [(12, 12), (12, 5), (12, 7), (12, 16), (13, 4)]  # length and steps: equal, fewer, not dividing, more
DRAWS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"temperature": 1.0, "top_p": 0.8},
    {"temperature": 1.0, "top_k": 3},
    {"temperature": 0.9, "top_p": 0.9, "top_k": 5, "alg_temp": 0.5},
    {"alg_temp": 0.3},
    {"top_k": 4},
]


@pytest.fixture(scope="module")
def module() -> Module:
    return Module(unmask.load("toy-transformer(sharpness=4.0)", dtype="float64").denoiser.module)  # type: ignore[attr-defined]


def check(module: Module, alg: str, draw: dict[str, Any], length: int, steps: int, rows: int = 2) -> None:
    settings: dict[str, Any] = {"steps": steps, "alg": alg, **draw}
    given: dict[str, Any] = {"max_new_tokens": length, "mask_token_id": MASK, "seed": 7, "top_k": 0} | settings
    out = diffusion_generate(module, PROMPTS[:rows], **given)
    assert isinstance(out, torch.Tensor)
    for row, prompt in enumerate(PROMPTS[:rows].tolist()):
        plain = dream(lambda x: module(x).logits, prompt, length, MASK, seed=7, **settings)
        assert out[row].tolist() == plain, settings


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_an_algorithm_is_the_plain_loop_token_for_token(module: Module, alg: str):
    for (length, steps), draw in zip([(6, 6), (6, 4), (6, 3)], [DRAWS[0], DRAWS[4], DRAWS[2]], strict=True):
        check(module, alg, draw, length, steps, rows=1)


@pytest.mark.slow
@pytest.mark.parametrize("alg", ALGORITHMS)
def test_every_algorithm_and_schedule_is_the_plain_loop_token_for_token(module: Module, alg: str):
    for draw in DRAWS:
        for length, steps in SCHEDULES:
            check(module, alg, draw, length, steps, rows=1 + (steps == 7))


def test_quotas_are_those_of_the_published_schedule():
    assert quotas(48, Dream(steps=24)._shares(48)) == [1, *[2] * 22, 3]
    assert quotas(32, Dream()._shares(32)) == [0, *[1] * 30, 2]
    assert Dream().max_forward_passes(32) == 31
    assert Dream("origin").max_forward_passes(32) == 32


def test_the_history_has_every_step_and_ends_with_the_answer(module: Module):
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    given: dict[str, Any] = {"max_new_tokens": 6, "steps": 4, "mask_token_id": MASK, "top_k": 0, "alg": "entropy"}
    out = diffusion_generate(module, PROMPTS, mask, output_history=True, return_dict_in_generate=True, **given)
    assert isinstance(out, DiffusionOutput)
    assert out.history is not None
    left = [int((step == MASK).sum()) for step in out.history]
    assert left == [10, 8, 6, 0]
    assert torch.equal(out.history[-1], out.sequences)
    assert torch.equal(out.sequences[:, :5], PROMPTS)
    alone = diffusion_generate(module, PROMPTS[:1, 2:], **given)
    assert isinstance(alone, torch.Tensor)
    assert out.sequences[0, 5:].tolist() == alone[0, 3:].tolist()


def test_a_missing_top_k_is_warned_of_once(module: Module, caplog: pytest.LogCaptureFixture):
    unmask.integrations.compat.warn_once.cache_clear()
    for _ in range(2):
        diffusion_generate(module, PROMPTS, max_length=9, steps=2, mask_token_id=MASK)
    assert [record.getMessage().count("top_k=50") for record in caplog.records] == [2]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alg": "margin"}, "did you mean 'topk_margin'"),
        ({"top_p": 0.0}, "top_p must be"),
        ({"top_k": -1}, "top_k must be"),
        ({"alg_temp": -1.0}, "alg_temp must be"),
        ({"eps": 1.0}, "eps must be"),
        ({"steps": 0}, "steps must be"),
        ({"temperature": -1.0}, "temperature must be"),
        ({"max_new_tokens": None, "max_length": 5}, "max_new_tokens must be at least 1"),
        ({"max_new_token": 3}, "did you mean 'max_new_tokens'"),
    ],
)
def test_wrong_arguments_are_refused(module: Module, wrong: dict[str, Any], sentence: str):
    given: dict[str, Any] = {"max_new_tokens": 4, "mask_token_id": MASK, "top_k": 0}
    with pytest.raises(UnmaskError, match=sentence):
        diffusion_generate(module, PROMPTS, **given | wrong)


def test_end_of_text_alone_is_forbidden_by_logits_eos_inf(tmp_path):
    """A checkpoint in LLaDA's format has two ends; the end of a turn stays allowed."""
    random_folder(tmp_path / "model", "llada", dtype=torch.float32)
    model = unmask.load(str(tmp_path / "model"))
    never, late = unmask.integrations.compat._ends(model)
    assert len(late) == 2
    assert [model.text.decode([end]) for end in never] == ["<|endoftext|>"]
    out = generate(model, torch.tensor([[1, 2]]), steps=2, gen_length=4, block_length=4, logits_eos_inf=True)
    assert not set(out[0].tolist()) & set(never)
