"""How to decode and where to run: two values that stay the same on disk, on a journey and on the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

from unmask.cli.app import commands as all_commands
from unmask.errors import UnmaskError
from unmask.runs.evaluation import Evaluation
from unmask.runs.grid import make_grid
from unmask.runs.settings import Decoding, DecodingOptions, Placement


def test_the_default_length_is_read_without_loading_a_checkpoint(model: str, monkeypatch: pytest.MonkeyPatch):
    loading = import_module("unmask.models.load")
    monkeypatch.setattr(loading, "load_folder", lambda *_, **__: pytest.fail("the model was loaded"))
    assert make_grid(["tiny"], ["countdown"], ["ots"], limit=1).lengths == (64,)
    assert make_grid([model], ["countdown"], ["ots"], limit=1).lengths == (128,)
    monkeypatch.undo()
    with pytest.raises(UnmaskError, match=r"different default lengths \(tiny 64, .*: choose with --length"):
        make_grid(["tiny", "toy-transformer"], ["countdown"], ["ots"], limit=1)
    with pytest.raises(UnmaskError, match="did you mean 'tiny'"):
        make_grid(["tinny"], ["countdown"], ["ots"], limit=1)


def test_a_decoding_is_the_same_after_a_journey_as_plain_values():
    decoding = Decoding(length=4, guidance=1.0, cache="dual( refresh = 4 )", stop=("a",))
    values = json.loads(json.dumps(decoding.to_dict()))
    assert Decoding.from_dict(values) == decoding
    assert values["cache"] == "dual(refresh=4)"
    assert values["decoder"].startswith("search(budget=none, ")


def test_every_field_is_a_keyword_and_an_option_with_help():
    assert list(DecodingOptions.__annotations__) == [field.name for field in fields(Decoding)]
    commands = all_commands().commands
    options = {each.name: each for name in ("eval", "generate") for each in commands[name].params}
    for field in (*fields(Decoding), *fields(Placement)):
        assert len(getattr(options[field.name], "help", None) or "") > 9


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"precision": "hihg"}, "unknown precision 'hihg': did you mean 'high'"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"memory": 0.0}, "memory must be gigabytes greater than 0, got 0.0"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(wrong: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        Placement(**wrong)


def test_a_grid_is_resolved_once_and_reads_nothing_afterwards(monkeypatch: pytest.MonkeyPatch):
    read = []
    module = import_module("unmask.models.checkpoints.manifest")
    configs = module._configs
    monkeypatch.setattr(module, "_configs", lambda folder: (read.append(folder), configs(folder))[1])
    grid = make_grid(["tiny"], ["countdown"], ["ots", "low-confidence"], [8], limit=1)
    assert len(read) == 1
    assert len(grid.cells) == 2
    assert len(Evaluation(grid).spec()["decoders"]) == 2
    assert len(read) == 1
