"""Commands that read standard input, and streams that are terminals."""

import io
import re
import sys
from collections.abc import Callable

import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Return the lines without control sequences."""
        text = re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", self.getvalue())
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.fixture
def terminal(monkeypatch) -> Callable[[str, int], Terminal]:
    """Makes a standard stream a terminal of this width."""

    def terminal(stream: str, columns: int) -> Terminal:
        for name, value in {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, stream, shown := Terminal())
        return shown

    return terminal


@pytest.fixture
def run(command, monkeypatch):
    """Runs `unmask …` in this process with this standard input: exit code, standard output, standard error."""

    def run(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        return command(*words)

    return run
