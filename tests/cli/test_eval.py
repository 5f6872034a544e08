"""`unmask eval`: figures on standard output, progress on standard error."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.runs.nano import nano
from unmask.runs.store import read_run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return nano(tmp_path_factory.mktemp("models") / "nano")


@pytest.fixture
def run(command):
    return partial(command, "eval")


def small(model: str, out: Path, *more: str) -> list[str]:
    grid = ["-m", model, "-t", "countdown", "-d", "low-confidence(steps=2)", "-l", "8", "--limit", "3"]
    return [*grid, "--device", "cpu", "--out", str(out), *more]


def test_a_run_prints_a_figure_for_every_cell(run, model: str, tmp_path: Path):
    code, out, err = run(*small(model, tmp_path / "run", "-l", "6", "-s", "0", "-s", "4", "--samples", "2"))
    assert (code, err) == (0, "")
    assert out.count("0.0 % (0 to 56, n=3), 2 forward passes") == 2
    assert out.endswith(f"24 records in {tmp_path / 'run'}\n")
    again = run(*small(model, tmp_path / "run", "-l", "6", "-s", "0", "-s", "4", "--samples", "2", "--json"))
    shown = json.loads(again[1])
    assert (shown["records"], len(shown["cells"])) == (24, 2)
    assert {cell["length"] for cell in shown["cells"]} == {6, 8}
    first, counts = shown["cells"][0], {"forward_passes": 2, "failed": 0, "records": 12, "problems": 3}
    assert first | {"accuracy": 0, **counts} == first


def test_a_different_run_in_the_same_folder_is_refused_with_the_difference(run, model: str, tmp_path: Path):
    run(*small(model, tmp_path / "run"))
    code, out, err = run(*small(model, tmp_path / "run", "--seed", "3"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "seed 0" in err


def test_failures_are_counted_and_the_first_is_shown(run, tmp_path: Path):
    code, out, _ = run(*small("toy-chain", tmp_path / "run"))
    assert code == 0
    assert "3 failed; the first (countdown-" in out
    assert "'N'" in out


def test_a_person_is_shown_rate_cost_and_accuracy(run, model: str, tmp_path: Path, terminal):
    shown = terminal("stderr", 200)
    assert run(*small(model, tmp_path / "run"))[0] == 0
    assert "3/3" in shown.getvalue()
    assert "0.0 % (0 to 56, n=3), 2 forward passes" in shown.getvalue()


def test_a_swapped_wording_is_part_of_the_run(run, model: str, tmp_path: Path, monkeypatch):
    data = tmp_path / "data" / "countdown"
    data.mkdir(parents=True)
    (data / "countdown_cd3_test.jsonl").write_text('{"input": "30,100,93", "output": "23"}\n')
    wording = tmp_path / "wording.json"
    wording.write_text('{"question": "Q {question}", "prefill": ""}')
    monkeypatch.setenv("UNMASK_DATA", "")
    words = ["-m", model, "-t", "countdown-d1", "-d", "low-confidence", "-l", "8", "--device", "cpu", "--metric", "d1"]
    words += ["--data", str(tmp_path / "data"), "--prompts", str(wording), "--out", str(tmp_path / "run")]
    assert run(*words)[0] == 0
    made = read_run(tmp_path / "run")
    assert "Q Numbers: [30, 100, 93]" in made.records[0].prompt
    assert (made.spec["prompts"], made.spec["metric"]) == ([{"question": "Q {question}", "prefill": ""}], "d1")
