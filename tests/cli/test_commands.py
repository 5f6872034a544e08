"""Every command prints its answer, and nothing else, on standard output."""

import json
from pathlib import Path

import pytest

import unmask
from unmask.cli.generate import read_prompts


def test_generate_prints_the_text_and_nothing_else(run):
    words = ["--model", "toy-chain", "--decoder", "ots(beams=2)", "--length", "6", "--seed", "3"]
    output = unmask.generate(unmask.load("toy-chain"), "abc", decoder="ots(beams=2)", length=6, seed=3)
    assert run("generate", "abc", *words) == (0, output.text + "\n", "")


def test_generate_takes_everything_python_does(run, tmp_path: Path):
    trace = tmp_path / "trace.jsonl"
    words = ["--guidance", "1.5", "--stop", "q", "--stop", "zz", "--early-end", "--chat", "--trace", str(trace)]
    code, out, _ = run("generate", "-", "--model", "toy-chain", "--length", "6", "--json", *words, stdin=b"abc\n")
    shown = json.loads(out)
    assert code == 0
    assert shown | {"prompt": "abc", "guidance": 1.5, "stop": ["q", "zz"], "early_end": True} == shown
    assert shown["cost"]["forward_passes"] > 0
    assert shown["decoder"].startswith("search(budget=28, ")
    assert unmask.Trace.load(trace).end["texts"][shown["chosen"]] == shown["text"]
    _, out, _ = run(*["generate", "abc", "-m", "toy-chain", "--suppress", "-d", "random(temperature=3.0)", "-l", "20"])
    assert len(out) == 21


def test_fill_prints_the_whole_text(run):
    code, out, err = run("fill", "ab<mask:3>cd", "--decoder", "low-confidence")
    assert (code, out[:2], out[-3:], err) == (0, "ab", "cd\n", "")
    _, out, _ = run("fill", "ab<mask:3>", "--length", "2", "--json")
    assert json.loads(out)["length"] == 2


def test_env_shows_versions_and_determinism(run):
    found = json.loads(run("env", "--json")[1])
    assert found["unmask"] == unmask.__version__
    assert isinstance(found["deterministic"], bool)
    assert f"torch          {found['torch']}\n" in run("env")[1]


@pytest.mark.slow
def test_demo_sets_the_search_beside_the_single_path(run):
    results = json.loads(run("demo", "--problems", "3", "--length", "8", "--json")[1])
    assert {each["decoder"].partition("(")[0] for each in results} == {"low-confidence", "order-token-search", "search"}
    assert all(each["forward_passes"] > 0 for each in results)
    code, text, _ = run("demo", "--problems", "3", "--length", "8")
    assert code == 0
    for each in results:
        assert each["question"].split("[")[1].split("]")[0].replace(",", "") in text


def test_many_prompts_are_answered_line_by_line(run, tmp_path: Path):
    lines = tmp_path / "prompts.jsonl"
    lines.write_text('"abc"\n{"prompt": "xyz"}\n\n{"messages": [{"role": "user", "content": "ab"}]}\n')
    code, out, err = run("generate", "--prompts", str(lines), "-m", "toy-chain", "-l", "4", "-d", "low-confidence")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["index"] for each in answers] == [0, 1, 2]
    assert answers[0]["text"] == unmask.generate("toy-chain", "abc", decoder="low-confidence", length=4).text
    assert "'x'" in answers[1]["error"]
    assert code == 2
    assert "1 of 3 prompts" in err


def test_a_line_that_is_a_json_string_is_one_prompt_of_several_lines(tmp_path: Path):
    lines = tmp_path / "prompts.txt"
    lines.write_bytes(b'"Numbers: [1, 2]\\nTarget: 3"\r\n"so" he said\n""\nplain \\n\n')
    assert read_prompts(lines) == ["Numbers: [1, 2]\nTarget: 3", '"so" he said', '""', "plain \\n"]
