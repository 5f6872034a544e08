"""How to decode and where to run: two values that stay the same on disk, on a journey and on the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.runs.nano import run_here, small_grid
from unmask.cli.app import commands as all_commands
from unmask.errors import UnmaskError
from unmask.runs.grid import make_grid
from unmask.runs.header import write_head
from unmask.runs.settings import Decoding, DecodingOptions, Placement
from unmask.runs.store import read_run

SPECS = json.loads(Path(__file__).with_name("specs.json").read_text("utf-8"))  # written by an earlier version
GRIDS: dict[str, dict[str, Any]] = {
    "plain": {"decoders": ["low-confidence(steps=4)", "ots"], "lengths": [8, 12], "limit": 2},
    "options": {
        "model": "toy-chain(seed=3)",
        "tasks": ["countdown"],
        "decoders": ["vote(n=3)"],
        "seeds": [1, 4],
        "samples": 2,
        "limit": 2,
        "metric": "d1",
        "traces": True,
        "guidance": 1.5,
        "suppress": True,
        "cache": "dual(refresh=4)",
        "stop": ("\n", "zz"),
        "dtype": "float64",
        "precision": "high",
        "compiled": True,
    },
    "early": {"tasks": ["sudoku"], "decoders": ["low-confidence"], "lengths": (), "limit": 1, "early_end": True},
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_run_of_an_earlier_version_has_the_same_spec(name: str):
    again = small_grid(**{"model": "tiny"} | GRIDS[name])
    assert json.dumps(again.spec(again.problems())) == json.dumps(SPECS[name])


def test_a_run_that_computed_on_after_a_stop_string_is_read_and_not_resumed(tmp_path: Path):
    grid = small_grid("toy-chain", tasks=["countdown"], decoders=["low-confidence"], limit=1, stop=("a",))
    run = run_here(grid, tmp_path)
    assert run.spec["ends_at_stop"] is True
    assert run_here(grid, tmp_path).records == run.records
    del run.spec["ends_at_stop"]  # as earlier versions wrote it
    write_head(tmp_path, run.head)
    assert read_run(tmp_path).records == run.records
    with pytest.raises(UnmaskError, match=r"holds another run \(ends_at_stop: None there, True here\)"):
        run_here(grid, tmp_path)


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
        ({"precision": "hihg"}, "precision cannot be 'hihg': did you mean 'high'"),
        ({"batch": 0}, "batch=0 does not work: choose 1 or more"),
        ({"memory": 0.0}, "memory=0.0 does not work: give gigabytes above 0"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(wrong: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        Placement(**wrong)
