from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from unmask.child_process import ChildError, ChildNotStartedError, ChildProcess, ChildStoppedError

SCRIPT = """
import os, sys, time
print("discarded")
def answer(value):
    print("discarded")
    match value:
        case "forever":
            while True: pass
        case "blocked":
            time.sleep(1000)
        case "memory":
            return "a" * 10**10
        case "crash":
            os._exit(3)
        case "pid":
            return os.getpid()
        case "input":
            return sys.stdin.read()
    return value
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildProcess]:
    (tmp_path / "script.py").write_text(SCRIPT)
    child = ChildProcess(tmp_path / "script.py", memory=2**28, seconds=0.2, patience=20)
    yield child
    child.stop()


@pytest.mark.parametrize("value", [None, 1.5, "ü\n\udc80", [1, {"a": []}], "a" * 2**20])
def test_values_cross_as_json(child: ChildProcess, value: object):
    assert child.ask(value) == value


@pytest.mark.parametrize("value", ["forever", "crash"])
def test_a_stopped_child_is_replaced(child: ChildProcess, value: str):
    before = child.ask("pid")
    with pytest.raises(ChildStoppedError):
        child.ask(value)
    assert child.ask("pid") != before


def test_a_blocked_child_is_stopped(child: ChildProcess):
    assert child.ask(1) == 1
    child.patience = 0.1
    with pytest.raises(ChildStoppedError):
        child.ask("blocked")


def test_exceptions_are_named_and_the_child_goes_on(child: ChildProcess):
    before = child.ask("pid")
    with pytest.raises(ChildError, match="MemoryError"):
        child.ask("memory")
    assert child.ask("pid") == before
    assert child.ask("input") == ""  # requests are out of the script's reach


def test_a_script_that_cannot_be_loaded_is_told_apart(tmp_path: Path):
    (tmp_path / "script.py").write_text("import no_such_package")
    with pytest.raises(ChildNotStartedError, match=r"script\.py"):
        ChildProcess(tmp_path / "script.py", memory=2**28, seconds=1).ask(1)


def test_threads_take_turns(child: ChildProcess):
    replies: dict[int, int] = {}
    threads = [threading.Thread(target=lambda n=n: replies.update({n: child.ask(n)})) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {n: n for n in range(16)}


def test_an_interrupted_request_leaves_no_reply_behind(child: ChildProcess, monkeypatch: pytest.MonkeyPatch):
    def interrupted(line: str | None) -> None:
        assert child.process is not None
        assert child.process.stdin is not None
        child.process.stdin.write(f"{line}\n")
        raise KeyboardInterrupt

    assert child.ask(1) == 1
    with monkeypatch.context() as patch:
        patch.setattr(child, "_exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.ask("old")
    assert child.ask("new") == "new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_starts_its_own_child(child: ChildProcess):
    before = child.ask("pid")
    read, write = os.pipe()
    with child.lock:  # as if another thread of the parent were asking
        forked = os.fork()
        if forked == 0:
            own = child.ask("pid")
            child.stop()
            os.write(write, str(own).encode())
            os._exit(0)
    assert os.waitpid(forked, 0)[1] == 0
    assert int(os.read(read, 20)) != before
    assert child.ask("pid") == before
