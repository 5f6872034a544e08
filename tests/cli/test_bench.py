"""`unmask bench`: tables on standard output, progress on standard error, and files."""

import json
from functools import partial
from pathlib import Path

import pytest

SMALL = ["--shape", "llada-nano", "--device", "cpu", "--prompt", "4", "--length", "8", "--block", "4", "--beams", "2"]


@pytest.fixture
def run(command, monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)  # what is written by mistake is not left in the checkout
    return partial(command, "bench")


def test_one_run_gives_tables_a_file_and_a_plot(run, tmp_path: Path):
    out, plot = tmp_path / "bench.json", tmp_path / "bench.svg"
    words = ["--only", "plain-ots", "--only", "ots", "--repeat", "1", "--sweep", "beams=1,2"]
    code, stdout, stderr = run(*SMALL, *words, "--out", str(out), "--plot", str(plot))
    assert code == 0
    assert "plain-ots / ots" in stdout
    assert "ots@beams=1" in stderr
    results = json.loads(out.read_text("utf-8"))
    assert [trial["name"] for trial in results["trials"]] == ["plain-ots", "ots", "ots@beams=1"]
    assert results["plan"]["sizes"]["prompt"] == 4
    assert plot.read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.svg"]


def test_json_is_one_object_on_standard_output(run):
    code, stdout, _ = run(*SMALL, "--only", "path", "--repeat", "1", "--json")
    assert code == 0
    assert json.loads(stdout)["format"] == "unmask-bench"
