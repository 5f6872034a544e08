"""Progress fits its terminal; without a terminal a line is printed from time to time."""

import io
import sys
import threading

import pytest

from unmask.cli import progress
from unmask.report import formats
from unmask.report.tables import Table


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_bar_keeps_count_and_time_left_at_every_width(columns: int, terminal):
    shown = terminal("stderr", columns)
    with progress.counting("a remark that is much longer than any terminal is wide " * 3) as count:
        count(3, 40)
    last = shown.lines()[-1]
    assert len(last) <= columns
    assert " 3/40" in last
    assert ":" in last.split("3/40")[1]


def test_a_heartbeat_prints_the_progress(monkeypatch: pytest.MonkeyPatch):
    shown, beaten = io.StringIO(), threading.Event()
    monkeypatch.setattr(progress, "HEARTBEAT", 0.001)
    monkeypatch.setattr(sys, "stderr", shown)

    def report() -> str:
        beaten.set()
        return "3 of 4"

    with progress.heartbeat(report):
        assert beaten.wait(60)
    assert shown.getvalue().startswith("unmask: 3 of 4\n")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_table_never_loses_its_names(columns: int, terminal):
    shown = terminal("stdout", columns)
    head = ("decoder", "length", "accuracy", "difference", "95% interval", "better", "worse", "p")
    row = ("order-token-search(beams=4)", "64", "40.0 → 50.0", "+10.0 ± 3.1", "+3.0 … +17.0", "12", "3", "0.035")
    formats.terminal([Table.of("paired", "a title", head, [row])])
    lines = shown.lines()
    assert any("order-token-search(beams=4)" in line for line in lines)
    assert any("0.035" in line for line in lines)
    assert max(map(len, lines)) <= columns
