"""Every form of a prompt, and what is said of those that cannot be answered."""

from __future__ import annotations

import logging
from collections import UserDict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import unmask
from unmask.runs.text import warn_once

OPTIONS: Any = {"decoder": "low-confidence", "length": 4}


@pytest.fixture(scope="module")
def model() -> unmask.Model:
    return unmask.load("toy-chain")


def test_ids_come_as_lists_tensors_arrays_and_batch_encodings(model: unmask.Model):
    ids = model.text.encode("abc")
    wanted = unmask.generate(model, "abc", **OPTIONS).text
    encoding = UserDict({"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, 3).long()})
    one: tuple[Any, ...] = (ids, torch.tensor(ids), np.array(ids), [np.int64(each) for each in ids])
    for prompt in one:
        assert unmask.generate(model, prompt, **OPTIONS).text == wanted
    several: tuple[Any, ...] = (torch.tensor([ids]), [torch.tensor(ids)], encoding)
    for prompts in several:
        assert [each.text for each in unmask.generate(model, prompts, **OPTIONS)] == [wanted]
    padded = {"input_ids": [[5, *ids]], "attention_mask": [[0, 1, 1, 1]]}
    assert [each.text for each in unmask.generate(model, padded, **OPTIONS)] == [wanted]


def test_a_prompt_that_cannot_be_answered_need_not_stop_the_others(model: unmask.Model):
    told: list[tuple[int, int]] = []
    outcomes = unmask.generate(
        model,
        ["abc", "xyz", "ab"],
        errors="return",
        batch=1,
        progress=lambda done, total: told.append((done, total)),
        **OPTIONS,
    )
    assert isinstance(outcomes[1], unmask.UnmaskError)
    assert str(outcomes[1]).startswith("prompt 1: ")
    assert [outcomes[0].text, outcomes[2].text] == [
        each.text for each in unmask.generate(model, ["abc", "ab"], **OPTIONS)
    ]
    assert told == [(2, 3), (3, 3)]


def test_a_batch_that_is_refused_together_is_answered_one_by_one(model: unmask.Model):
    texts = ["ab<mask:2>", "ab<mask:9>"]
    few, many = unmask.fill(model, texts, decoder="low-confidence(block=4)", errors="return")
    assert "block must be" in str(few)
    assert many.text == unmask.fill(model, texts[1], decoder="low-confidence(block=4)").text


def test_watchers_are_told_the_indices_of_the_list(model: unmask.Model):
    seen: set[int] = set()
    unmask.generate(model, ["abc", "ab", "a"], batch=2, watch=lambda numbers, frame: seen.update(numbers), **OPTIONS)
    assert seen == {0, 1, 2}


def test_work_without_a_bound_is_refused_with_its_cost(model: unmask.Model):
    with pytest.raises(unmask.UnmaskError, match=r"needs about 8,\d+,\d+,\d+ forward passes, .* GB"):
        unmask.generate(model, "abc", decoder="best-of(n=2000000000)", length=8)
    with pytest.raises(unmask.UnmaskError, match="needs about 8 forward passes"):
        unmask.generate(model, "abc", decoder="low-confidence(steps=4)", length=8, guidance=1.0, max_forward_passes=7)
    output = unmask.generate(model, "abc", decoder="low-confidence(steps=4)", length=8, max_forward_passes=4)
    assert output.cost.forward_passes == 4


def test_an_output_says_how_it_ended_and_how_many_of_its_rows_are_distinct(model: unmask.Model):
    output = unmask.generate(model, "abc", decoder="best-of(n=6, inner=low-confidence(temperature=0.0))", length=4)
    assert (len(output.hypotheses), output.distinct) == (6, 1)
    page = output._repr_html_()
    assert "1 of 6 final texts are distinct" in page
    assert page.count("<pre>") == 1
    assert "✓" not in page
    assert "chosen" in page
    assert output.finish_reason == "length"
    assert unmask.generate(model, "abc", stop=output.text[1], **OPTIONS).finish_reason == "stop"
    assert output.json()["finish_reason"] == "length"
    assert output.json()["distinct"] == 1


def test_seconds_are_a_problem_s_share_of_its_batch(model: unmask.Model):
    first, second = unmask.generate(model, ["abc", "abd"], **OPTIONS)
    assert first.cost.batch_seconds == second.cost.batch_seconds
    assert first.cost.seconds == pytest.approx(first.cost.batch_seconds / 2)


def test_a_chat_without_a_template_says_so_once(caplog: pytest.LogCaptureFixture):
    class Plain(torch.nn.Module):
        def forward(self, ids: torch.Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=torch.randn(*ids.shape, 8) + ids.sum(1)[:, None, None])

    tokenizer = SimpleNamespace(encode=lambda text, **_: [1, 2], decode=lambda ids, **_: "x", mask_token_id=7)
    wrapped = unmask.wrap(Plain(), tokenizer, eos=[6], name="a plain model")
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, "unmask"):
        for _ in range(2):
            unmask.generate(wrapped, [{"role": "user", "content": "hello"}], **OPTIONS)
    assert caplog.messages == ["a plain model has no chat template: messages are joined as plain text"]


def test_a_module_of_nan_is_called_that():
    def nothing(ids: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=torch.full((*ids.shape, 8), torch.nan))

    with pytest.raises(unmask.UnmaskError, match="returns logits that are not numbers"):
        unmask.wrap(nothing, SimpleNamespace(encode=list, decode=str), mask_id=7)


def test_a_bar_is_shown_for_lists(model: unmask.Model, capsys: pytest.CaptureFixture[str]):
    unmask.generate(model, ["abc", "ab"], progress=True, **OPTIONS)
    assert "2/2" in capsys.readouterr().err
