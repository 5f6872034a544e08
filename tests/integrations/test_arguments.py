"""What harnesses hand over is honoured or refused in one sentence, and an extra that is missing is named."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from unmask.errors import UnmaskError
from unmask.integrations.arguments import check_whole, read_arguments, read_request, read_settings


def test_commas_inside_brackets_separate_nothing():
    assert read_arguments("pretrained=tiny, decoder=ots(beams=2, temperature=1.0),length=64,early_end=True") == {
        "pretrained": "tiny",
        "decoder": "ots(beams=2, temperature=1.0)",
        "length": 64,
        "early_end": True,
    }
    assert read_arguments('{"decoder": "ots(beams=2, block=4)"}') == {"decoder": "ots(beams=2, block=4)"}
    assert read_arguments("") == {}


@pytest.mark.parametrize(
    ("kwargs", "wanted"),
    [
        ({}, (8, (), None)),
        ({"max_gen_toks": 64, "until": ["\n", ""], "do_sample": False, "temperature": 0.0}, (64, ("\n",), None)),
        ({"max_tokens": 5, "until": "Q:", "do_sample": True, "temperature": 0.5}, (5, ("Q:",), 0.5)),
        ({"temperature": 1, "top_p": 1.0}, (8, (), 1.0)),
    ],
)
def test_generation_arguments_are_honoured(kwargs: dict[str, Any], wanted: tuple[Any, ...]):
    read = read_request(kwargs, None, 8)
    assert (read["length"], read["stop"], read["temperature"]) == wanted


def test_the_length_of_the_model_stays_below_the_most_that_a_task_allows():
    assert read_request({"max_gen_toks": 64}, 32, 8)["length"] == 32
    with pytest.raises(UnmaskError, match="length must be at most the task's max_gen_toks=64"):
        read_request({"max_gen_toks": 64}, 128, 8)


def read_model(values: dict[str, Any]) -> None:
    read_settings("no such model", values)


def read_generation(values: dict[str, Any]) -> None:
    read_request(values, None, 8)


@pytest.mark.parametrize(
    ("read", "values", "sentence"),
    [
        (read_generation, {"top_p": 0.9}, "top_p=0.9 is not supported"),
        (read_generation, {"max_gen_tok": 9}, "max_gen_tok=9 is not supported: did you mean 'max_gen_toks'?"),
        (read_generation, {"do_sample": True}, "do_sample=true needs a temperature"),
        (read_model, {"decodr": "ots"}, "unknown argument 'decodr': did you mean 'decoder'?"),
        (read_model, {"decoder": "otss"}, "unknown decoder 'otss': did you mean 'ots'?"),
        (read_model, {"scorer": "elbow"}, "unknown scorer 'elbow': did you mean 'elbo'?"),
        (read_model, {"batch": "many"}, "batch must be an integer"),
        (check_whole, {"decoder": "ots(beams=2"}, "decoder=ots(beams=2 was cut at a comma or blank"),
    ],
)
def test_what_nothing_can_honour_is_refused_before_a_model_is_loaded(read: Any, values: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        read(values)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(("package", "extra"), [("lm_eval", "lm-eval"), ("inspect_ai", "inspect")])
def test_a_missing_extra_is_one_sentence(package: str, extra: str, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"unmask.integrations.{package}", raising=False)
    with pytest.raises(UnmaskError) as refusal:
        importlib.import_module(f"unmask.integrations.{package}")
    assert str(refusal.value).endswith(f"pip install 'unmask[{extra}]'")
