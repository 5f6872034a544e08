"""Every command prints its answer, and nothing else, on standard output."""

import io
import json
import sys
from pathlib import Path

import pytest

import unmask
from unmask.cli import main
from unmask.cli.generate import read_prompts


class Ran:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["unmask", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, shown.out, shown.err)

    return run


def test_generate_prints_the_text_and_nothing_else(run):
    ran = run("generate", "abc", "--model", "toy-chain", "--decoder", "ots(beams=2)", "--length", "6", "--seed", "3")
    output = unmask.generate(unmask.load("toy-chain"), "abc", decoder="ots(beams=2)", length=6, seed=3)
    assert (ran.code, ran.out, ran.err) == (0, output.text + "\n", "")


def test_generate_takes_everything_python_does(run, tmp_path: Path):
    trace = tmp_path / "trace.jsonl"
    words = ["--guidance", "1.5", "--stop", "q", "--stop", "zz", "--early-end", "--chat", "--trace", str(trace)]
    ran = run("generate", "-", "--model", "toy-chain", "--length", "6", "--json", *words, stdin=b"abc\n")
    assert ran.code == 0
    shown = json.loads(ran.out)
    assert shown["prompt"] == "abc"
    assert shown["guidance"] == 1.5
    assert shown["stop"] == ["q", "zz"]
    assert shown["early_end"] is True
    assert shown["cost"]["forward_passes"] > 0
    assert shown["decoder"].startswith("search(budget=28, ")
    assert unmask.Trace.load(trace).end["texts"][shown["chosen"]] == shown["text"]
    line = "generate abc -m toy-chain --suppress -d random(temperature=3.0) -l 20"
    assert len(run(*line.split()).out) == 21


def test_fill_prints_the_whole_text(run):
    ran = run("fill", "ab<mask:3>cd", "--decoder", "low-confidence")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("ab")
    assert ran.out.endswith("cd\n")
    shown = json.loads(run("fill", "ab<mask:3>", "--length", "2", "--json").out)
    assert shown["length"] == 2


@pytest.mark.parametrize("what", ["decoders", "models", "tasks"])
def test_list_shows_what_there_is(run, what: str):
    found = json.loads(run("list", what, "--json").out)
    text = run("list", what).out
    for one in found:
        assert one["name"] in text
        assert one["summary"]
    if what == "decoders":
        ots = next(one for one in found if one["name"] == "order-token-search")
        assert ots["aliases"] == ["ots"]
        beams = next(setting for setting in ots["settings"] if setting["name"] == "beams")
        assert beams["default"] == "4"
        assert beams["type"] == "int"
        assert beams["meaning"]


def test_env_shows_versions_and_determinism(run):
    found = json.loads(run("env", "--json").out)
    assert found["unmask"] == unmask.__version__
    assert found["torch"]
    assert isinstance(found["deterministic"], bool)
    assert "deterministic" in run("env").out


@pytest.mark.slow
def test_demo_sets_the_search_beside_the_single_path(run):
    results = json.loads(run("demo", "--problems", "3", "--length", "8", "--json").out)
    assert {each["decoder"].partition("(")[0] for each in results} == {"low-confidence", "order-token-search", "search"}
    assert all(each["forward_passes"] > 0 for each in results)
    text = run("demo", "--problems", "3", "--length", "8")
    assert text.code == 0
    for each in results:
        assert each["question"].split("[")[1].split("]")[0].replace(",", "") in text.out


def test_no_command_shows_the_help(run):
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: unmask")


@pytest.mark.parametrize("command", ["generate", "fill", "list", "env", "demo"])
def test_help_has_examples(run, command: str):
    ran = run(command, "--help")
    assert ran.code == 0
    assert "Examples:" in ran.out
    assert f"unmask {command}" in ran.out


def test_many_prompts_are_answered_line_by_line(run, tmp_path: Path):
    lines = tmp_path / "prompts.jsonl"
    lines.write_text('"abc"\n{"prompt": "xyz"}\n\n{"messages": [{"role": "user", "content": "ab"}]}\n')
    ran = run("generate", "--prompts", str(lines), "-m", "toy-chain", "-l", "4", "-d", "low-confidence")
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [each["index"] for each in answers] == [0, 1, 2]
    assert answers[0]["text"] == unmask.generate("toy-chain", "abc", decoder="low-confidence", length=4).text
    assert "'x'" in answers[1]["error"]
    assert ran.code == 2
    assert "1 of 3 prompts" in ran.err


def test_a_line_that_is_a_json_string_is_one_prompt_of_several_lines(tmp_path: Path):
    lines = tmp_path / "prompts.txt"
    lines.write_bytes(b'"Numbers: [1, 2]\\nTarget: 3"\r\n"so" he said\n""\nplain \\n\n')
    assert read_prompts(lines) == ["Numbers: [1, 2]\nTarget: 3", '"so" he said', '""', "plain \\n"]


def test_a_dumped_configuration_is_read_back_and_typed_options_come_first(run, tmp_path: Path):
    words = ["eval", "-m", "toy-chain", "-t", "countdown", "-d", "low-confidence", "-l", "4", "--limit", "2"]
    dumped = run(*words, "-o", str(tmp_path / "run"), "--dump-config")
    assert dumped.code == 0
    assert not (tmp_path / "run").exists()
    (tmp_path / "run.toml").write_text(dumped.out)
    ran = run("eval", "--config", str(tmp_path / "run.toml"), "--limit", "3", "--json")
    assert json.loads(ran.out)["records"] == 3
