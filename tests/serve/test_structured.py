"""Answers that follow a grammar, and what cannot follow one."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

import unmask
from unmask.serve.request import Grammar

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 99}}, "required": ["a"]}
AGE = Grammar("json", json.dumps(SCHEMA | {"additionalProperties": False}))


def ask(model: unmask.Model, grammar: Grammar, **options) -> str:
    async def answer() -> str:
        async with unmask.AsyncEngine(model) as engine:
            request = engine.request("ab", grammar=grammar, length=8, **options)
            return (await engine.submit(request).answer()).text

    return asyncio.run(answer())


@pytest.mark.parametrize(
    "decoder",
    [
        "ar(temperature=1.0)",
        pytest.param("vote(n=2, inner=ar)", marks=pytest.mark.slow),
        pytest.param("ots(beams=2, block=1)", marks=pytest.mark.slow),
    ],
)
def test_text_written_from_left_to_right_follows_a_grammar(tiny, decoder):
    assert re.fullmatch("[a-c]{2}-[0-9]", ask(tiny, Grammar("regex", "[a-c]{2}-[0-9]"), decoder=decoder))


def test_json_follows_its_schema(tiny):
    value = json.loads(ask(tiny, AGE, decoder="left-to-right"))
    assert list(value) == ["a"]
    assert value["a"] <= 99


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"decoder": "low-confidence"}, "writes from left to right: use decoder='left-to-right'"),
        ({"decoder": "repair(inner=ar)"}, "writes from left to right"),
        ({"decoder": "ar", "suppress": True}, "end-of-text that suppress forbids"),
        ({"decoder": "ar", "template": "<mask:3>"}, "a template and a grammar cannot be combined"),
        ({"decoder": "ar", "grammar": Grammar("regex", "[a")}, "the grammar cannot be used"),
        ({"decoder": "ar", "grammar": Grammar("json", '{"type": "number", "multipleOf": "x"}')}, "the grammar cannot"),
        ({"decoder": "ar", "grammar": Grammar("json", "{}" * 40000)}, "at most 65536"),
    ],
)
def test_what_cannot_follow_a_grammar_is_refused(tiny, options, sentence):
    options = {"grammar": AGE, **options}
    with pytest.raises(unmask.UnmaskError, match=re.escape(sentence)):
        ask(tiny, **options)


def test_a_model_without_subwords_is_refused(model):
    with pytest.raises(unmask.UnmaskError, match="needs a tokenizer of subwords"):
        ask(model, AGE, decoder="ar")
