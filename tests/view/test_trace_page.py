"""A page holds its traces whole, runs only its own script, and refuses what cannot be shown."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.report.pages import Elements, check_policy
from tests.view.traces import hostile, traced
from unmask.errors import UnmaskError
from unmask.runs.trace import Trace
from unmask.view.trace_page import Shown, trace_page

SPEC = "ots(beams=2, block=6)"


def shown_in(page: str) -> dict[str, Any]:
    """Return the only trace of a page."""
    (shown,) = json.loads(gzip.decompress(base64.b64decode(Elements(page).scripts[0])))
    return shown


def test_a_page_holds_its_traces_whole():
    trace = traced(SPEC)
    shown = shown_in(trace_page([Shown(trace, True, "42")]))
    assert shown["lines"] == [trace.header, *trace.steps, {"end": trace.end}]
    assert shown["grade"] == {"right": True, "answer": "42"}
    assert shown["label"] == "order-token-search(beams=2, block=6)"


def test_a_page_runs_only_its_own_script_and_fetches_nothing():
    page = trace_page([Shown(traced(SPEC))])
    check_policy(page)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in Elements(page).scripts[-1]


def test_no_text_becomes_markup():
    tame, wild = (Elements(trace_page([Shown(trace)])) for trace in (traced(SPEC), hostile()))
    assert [tag for tag, _ in tame.tags] == [tag for tag, _ in wild.tags]
    assert tame.scripts[-1] == wild.scripts[-1]


def test_what_is_not_a_number_is_null():
    trace = traced("low-confidence")
    step = trace.steps[0] | {"score": [float("-inf")]}
    shown = shown_in(trace_page([Shown(Trace(trace.header, [step, *trace.steps[1:]], trace.end))]))
    assert shown["lines"][1]["score"] == [None]


def test_traces_that_cannot_be_shown_together_are_refused():
    trace = Shown(traced(SPEC))
    with pytest.raises(UnmaskError, match="different prompts or lengths"):
        trace_page([trace, Shown(traced(SPEC, length=6))])
    with pytest.raises(UnmaskError, match="1 to 4, got 5"):
        trace_page([trace] * 5)


def test_the_command_writes_a_page_and_names_it(command, tmp_path: Path):
    files = [tmp_path / f"{name}.jsonl" for name in ("search", "path")]
    for file, spec in zip(files, (SPEC, "low-confidence"), strict=True):
        traced(spec).save(file)
    assert command("view", str(files[0])) == (0, f"{tmp_path / 'search.html'}\n", "")
    both = tmp_path / "both.html"
    code, printed, _ = command("view", *map(str, files), "--out", str(both), "--json")
    assert code == 0
    assert json.loads(printed) == {"page": str(both), "bytes": both.stat().st_size}


def test_a_trace_of_an_evaluation_run_brings_its_grade(command, tmp_path: Path):
    run = tmp_path / "run"
    words = ["-m", "tiny", "-t", "countdown", "-d", "low-confidence", "-l", "6", "--limit", "1", "--traces"]
    assert command("eval", *words, "--out", str(run))[0] == 0
    (trace,) = (run / "traces").iterdir()
    page = tmp_path / "page.html"
    assert command("view", str(trace), "--out", str(page))[0] == 0
    assert shown_in(page.read_text("utf-8"))["grade"]["right"] is False


def test_what_is_not_a_trace_is_refused_in_a_sentence(command, tmp_path: Path):
    good = tmp_path / "good.jsonl"
    trace = traced(SPEC)
    trace.save(good)
    damaged = tmp_path / "damaged.jsonl"
    Trace(trace.header, [trace.steps[0] | {"source": [7]}], trace.end).save(damaged)
    for words, sentence in (
        ([str(tmp_path / "none.jsonl")], "cannot be read"),
        ([str(damaged)], "does not hold together"),
        ([str(good), "--out", str(tmp_path)], "is a folder"),
        ([str(good), "--out", str(good)], "is the trace itself"),
    ):
        code, printed, error = command("view", *words)
        assert (code, printed) == (2, "")
        assert sentence in error
    assert Trace.load(good) == trace
