"""Files appear whole or not at all, whenever the process that writes them is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.processes import ROOT
from unmask.runs import files
from unmask.runs.files import write_whole


def test_a_file_is_replaced_whole(tmp_path: Path):
    path = tmp_path / "page.html"
    write_whole(path, "old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=type)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    path = tmp_path / "page.html"
    write_whole(path, "old")

    def fail(file: int, data: bytes) -> None:
        os.write(file, data[:1])
        raise error

    monkeypatch.setattr(files, "write_all", fail)
    with pytest.raises(type(error)) as raised:
        write_whole(path, "new")
    assert raised.value is error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed_and_pipes_written_to(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "page.html")
    write_whole(tmp_path / "link", "through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "page.html").read_text() == "through"
    read, write = os.pipe()
    write_whole(Path(f"/proc/self/fd/{write}"), "piped")
    assert os.read(read, 9) == b"piped"
    os.close(read)
    os.close(write)


ENDLESS = """
import sys
from pathlib import Path
from unmask.report.plots import keep
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        keep(letter * 3_000_000, sys.argv[1])
"""


@pytest.mark.slow
def test_a_page_is_whole_after_each_of_twelve_kills(tmp_path: Path):
    draw, path = random.Random(3), tmp_path / "page.html"
    for _ in range(12):
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(path)], env=environ, stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(draw.random() / 10)
            os.kill(writer.pid, signal.SIGKILL)
        if path.exists():
            assert path.read_bytes() in (b"a" * 3_000_000, b"b" * 3_000_000)
    assert path.exists()
