"""`unmask report`: tables on standard output, files where they were asked for, one sentence for what cannot be."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.report.examples import grid, record, write_run
from unmask.cli import main
from unmask.runs.header import write_head


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(command, "report")


def test_tables_go_to_standard_output_and_files_where_they_were_asked_for(run, tmp_path: Path):
    write_run(tmp_path / "r", grid(problems=6))
    words = ["--html", "p.html", "--markdown", "t.md", "--csv", "c.csv", "--plots", "figures/new"]
    code, out, err = run("r", *words)
    assert (code, err.splitlines()) == (0, [f"unmask: wrote {name}" for name in words[1::2]])
    assert out.startswith("tiny · countdown · accuracy, %\n")
    assert "tiny · countdown · against low-confidence" in out
    assert "\x1b" not in out
    assert (tmp_path / "p.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "t.md").read_text().startswith("# Report\n")
    assert (tmp_path / "c.csv").read_text().startswith("model,task,task_version,decoder,spec,")
    assert {path.name for path in (tmp_path / "figures/new").iterdir()} >= {
        f"countdown-low-confidence-order-token-search-random-forward-passes.{kind}" for kind in ("svg", "png", "pdf")
    }


def test_json_holds_every_cell(run, tmp_path: Path):
    write_run(tmp_path / "r", grid(problems=6, samples=3))
    code, out, _ = run("r", "--json", "--against", "random")
    report = json.loads(out)
    assert code == 0
    assert report["against"] == "random"
    assert len(report["cells"]) == 12  # three decoders and their votes at two lengths
    first = next(cell for cell in report["cells"] if cell["decoder"] == "low-confidence" and cell["length"] == 64)
    assert (first["problems"], first["draws"], first["forward_passes"], first["vote"]) == (6, 18, 32.0, None)
    assert set(first["pass"]) == {"1", "2", "3"}
    assert first["against"]["n"] == 6


def test_several_runs_are_one_report(run, tmp_path: Path):
    write_run(tmp_path / "a", grid(["low-confidence"], problems=6))
    write_run(tmp_path / "b", grid(["random"], problems=6))
    write_run(tmp_path / "both", grid(["low-confidence", "random"], problems=6))
    assert run("a", "b") == run("b", "a") == run("both")


def test_runs_in_other_batches_give_the_same_report_to_the_byte(run, tmp_path: Path, monkeypatch):
    grid = ["-m", "toy-chain", "-t", "countdown", "-d", "random(temperature=0.8)", "-d", "ots(beams=2)", "-l", "8"]
    forms = ["--html", "p.html", "--markdown", "t.md", "--csv", "c.csv"]
    reports = []
    for batch in ("1", "7"):
        words = ["unmask", "eval", *grid, "--limit", "5", "--samples", "2", "--batch", batch, "--out", batch]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            main()
        run("nowhere")  # takes what eval printed
        ran = run(batch, *forms, "--against", "ots(beams=2)")
        assert ran[0] == 0
        page, *others = [(tmp_path / name).read_text() for name in forms[1::2]]
        assert f"<h3>{batch}</h3>" in page
        assert "<code>unmask eval" in page
        reports.append((ran, page.partition('<section id="runs">')[0], others))
    assert reports[0] == reports[1]


def test_a_torn_last_line_does_not_stop_a_report(run, tmp_path: Path):
    write_run(tmp_path / "r", grid(problems=4))
    whole = run("r")
    with (tmp_path / "r" / "records.jsonl").open("ab") as file:
        file.write(b'{"model": "ti')
    assert run("r") == whole


def _sentence(ran: tuple[int, str, str]) -> str:
    code, out, err = ran
    assert (code, out) == (2, "")
    assert err.startswith("unmask: ")
    assert err.count("\n") == 1
    return err.removeprefix("unmask: ").strip()


def test_what_is_not_a_run_is_refused(run, tmp_path: Path):
    assert _sentence(run("nowhere")) == "there is no folder 'nowhere'"
    (tmp_path / "empty").mkdir()
    assert _sentence(run("empty")) == "'empty' is not a run: it has no run.json"
    (tmp_path / "file").write_text("x")
    assert _sentence(run("file")) == "'file' is not a run: it has no run.json"
    write_run(tmp_path / "none", [])
    assert _sentence(run("none")) == "a report needs at least 1 record, got none in 'none'"
    (tmp_path / "none" / "run.json").write_text('{"format": 99, "spec": {}}')
    assert "format 99" in _sentence(run("none"))
    folder = write_run(tmp_path / "bad", grid(problems=2))
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    (folder / "records.jsonl").write_text("".join([lines[0], "rubbish\n", *lines[1:]]))
    assert "line 2 of 'bad/records.jsonl' is not a record" in _sentence(run("bad"))
    assert "Missing argument" in _sentence(run())


def test_an_unknown_baseline_is_answered_with_the_nearest(run, tmp_path: Path):
    write_run(tmp_path / "r", grid(problems=3))
    assert _sentence(run("r", "--against", "order-token-serch(beams=2)")) == (
        "these runs have no decoder 'order-token-serch(beams=2)': did you mean 'order-token-search(beams=2)'?"
    )
    assert "did you mean 'order-token-search(beams=2)'?" in _sentence(run("r", "--against", "order-token-search"))
    assert "known: low-confidence" in _sentence(run("r", "--against", "zzz"))


def test_runs_that_do_not_compare_are_refused_with_the_difference(run, tmp_path: Path):
    write_run(tmp_path / "a", [record(problem=0)])
    write_run(tmp_path / "c", [record(problem=0, text="another")])
    assert "'a' and 'c' disagree on text of problem 'countdown-0'" in _sentence(run("a", "c"))
    write_run(tmp_path / "d", [record(problem=3)])
    write_head(tmp_path / "d", {"format": 1, "spec": {"guidance": 1.5}})
    assert "'a' and 'd' differ in guidance (0.0 and 1.5)" in _sentence(run("a", "d"))


def test_what_cannot_be_written_is_refused(run, tmp_path: Path):
    write_run(tmp_path / "r", grid(problems=2))
    for flag in ("--html", "--markdown", "--csv"):
        assert _sentence(run("r", flag, "no/such/file")).startswith("there is no folder 'no/such'")
    (tmp_path / "taken").write_text("x")
    assert "cannot be written" in _sentence(run("r", "--plots", "taken"))


def test_plots_without_matplotlib_are_refused_and_tables_are_not(run, tmp_path: Path, monkeypatch):
    write_run(tmp_path / "r", grid(problems=2))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert _sentence(run("r", "--plots", "figures")) == "plots need matplotlib: pip install 'unmask[plot]'"
    assert run("r", "--markdown", "t.md")[0] == 0
