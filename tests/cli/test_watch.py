"""`--watch` shows texts in a terminal of any width, and a line per step elsewhere; the answer stays alone on stdout."""

import io

import pytest
from rich.console import Console

import unmask
from unmask.cli.watch import Board, watched


def test_a_line_per_step_where_there_is_no_terminal(command):
    words = ["generate", "abc", "-m", "toy-chain", "-l", "6", "-d", "ots(beams=2, block=3)"]
    _, plain, _ = command(*words)
    code, printed, error = command(*words, "--watch")
    assert (code, printed) == (0, plain)
    lines = error.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("step 1 · 2 texts alive · 0 pruned · 2 forward passes · ")
    assert "8 candidates" in lines[-1]


def watched_board(decoder: str, length: int, width: int = 80) -> tuple[Board, unmask.Output]:
    """Return the screen after a run, and its output."""
    model = unmask.load("toy-chain")
    board = Board(model, width, 24)
    how = {"decoder": decoder, "length": length, "trace": True, "watch": lambda numbers, frame: board.see(frame)}
    return board, unmask.generate(model, "abc", **how)


@pytest.mark.parametrize("width", [80, 40])
def test_texts_fit_the_terminal_without_colour(width: int):
    board, _ = watched_board("vote(n=9, inner=low-confidence(steps=4, block=100))", 200, width)
    stream = io.StringIO()
    Console(file=stream, width=width, height=24, no_color=True, force_terminal=False).print(board)
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= width for line in lines)
    assert sum(line.startswith("★") for line in lines) == 1
    assert "and 4 more" in lines[-1]


def test_a_text_keeps_the_number_that_it_has_in_its_trace():
    board, output = watched_board("ots(beams=3, block=2, temperature=2.0)", 8)
    assert output.trace is not None
    numbers, texts = [1], 1
    for step in output.trace.steps:
        before, numbers = numbers, []
        for source in step["source"]:
            texts += before[source] in numbers
            numbers.append(texts if before[source] in numbers else before[source])
    assert board.numbers == numbers
    assert len(set(numbers)) == 3
    assert board.pruned == texts - 3


def test_a_terminal_is_drawn_in_place(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    model, stream = unmask.load("toy-chain"), io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with watched(model) as watch:
        unmask.generate(model, "abc", decoder="search", length=8, watch=watch)
    assert "\x1b[1A" in stream.getvalue()
    assert "8/8" in stream.getvalue()


def test_control_characters_do_not_reach_the_terminal(monkeypatch):
    board, _ = watched_board("low-confidence", 4)
    monkeypatch.setattr("unmask.cli.watch.partial_text", lambda model, ids: "a\x1b[31m\nb\u202ec")
    assert board.line().endswith("a�[31m↵b�c")
