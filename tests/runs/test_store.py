"""A run's folder survives: torn lines, two writers, full disks, folders that cannot be written."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.operations import operations
from unmask.errors import UnmaskError
from unmask.runs import store as store_module
from unmask.runs.record import Counts, Measured, Record, read_record
from unmask.runs.store import RECORDS, Problems, RunFolder, open_run, read_records, read_run

CELLS = {"models": ["toy"], "tasks": ["countdown"], "decoders": ["low-confidence"], "lengths": [8], "seeds": [0]}
TASKS = {"task_versions": [1], "prompts": [None], "problems": [{"count": 9}]}
SPEC = CELLS | TASKS | {"samples": 1, "limit": 9, "metric": "ours", "checkpoints": [None]}
HEAD = {"format": 1, "created": "now", "deterministic": True, "arithmetic": {}, "spec": SPEC}


def record(problem: str = "p1", **changes) -> Record:
    measured = Measured(4, 0.01, 0, "2026-01-01T00:00:00.000+00:00", "here:1", 2)
    written = Record(
        *("toy", "countdown", 1, "low-confidence", 8, 0, 0, problem, "Q", "line one\nline two – ½", "1", "1"),
        *(True, 1.0, -0.1, Counts(4, 4, 32), None, measured),
    )
    return replace(written, **changes)


def opened(out: Path, problems: Problems | None = None, **spec: Any) -> AbstractContextManager[RunFolder]:
    return open_run(out, HEAD | {"spec": SPEC | spec}, problems or {}, lambda task, count: {"count": count})


def filled(out: Path, count: int = 5) -> list[Record]:
    written = [record(f"p{i}") for i in range(count)]
    with opened(out) as folder:
        folder.append(written)
    return written


@pytest.mark.parametrize("text", ["", "a\nb\r\n\u2028c", "\ud800 half a pair", '"}{', "\x00"])
def test_a_record_reads_back_as_it_was(text: str):
    written = record(text=text, key=None, right=None, likelihood=None)
    assert read_record(written.line()) == written
    assert written.line().count(b"\n") == 1


def test_records_come_sorted_whatever_order_they_were_written_in(out: Path):
    with opened(out) as folder:
        for problem in ("b", "c", "a"):
            folder.append([record(problem)])
    assert [item.problem for item in read_run(out).records] == ["a", "b", "c"]


def test_a_line_torn_anywhere_is_dropped_and_nothing_else(out: Path):
    written = filled(out)
    whole = (out / RECORDS).read_bytes()
    last = len(written[-1].line())
    for cut in (1, 2, *range(3, last, 29), last - 1):
        (out / RECORDS).write_bytes(whole[:-cut])
        with opened(out) as folder:
            assert folder.records == written[:-1]
            folder.append([written[-1]])
        assert (out / RECORDS).read_bytes() == whole


def test_a_last_line_of_zeros_is_torn_too(out: Path):
    written = filled(out)
    with (out / RECORDS).open("ab") as file:
        file.write(bytes(100) + b"\n")
    with opened(out) as folder:
        assert folder.records == written
    assert read_run(out).records == written


def test_a_corrupt_line_in_the_middle_is_named_and_nothing_is_lost(out: Path):
    filled(out)
    lines = (out / RECORDS).read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:40] + b"\n"
    (out / RECORDS).write_bytes(b"".join(lines))
    before = (out / RECORDS).read_bytes()
    with pytest.raises(UnmaskError, match=r"^line 3 of .*is not a record.*decoded again$"), opened(out):
        pass
    with pytest.raises(UnmaskError, match="line 3"):
        read_run(out)
    assert (out / RECORDS).read_bytes() == before


CHANGES = [
    (b'"right": true', b'"right":false'),
    (b'"likelihood": -0.1, ', b""),
    (b"-0.1", b"NaN"),
    (b"-0.1", b"Infinity"),
]


@pytest.mark.parametrize(("old", "new"), [*CHANGES, (b'"score": 1.0', b'"score": "1"'), (b'"checksum"', b'"check"')])
def test_a_changed_line_is_noticed_by_its_checksum(out: Path, old: bytes, new: bytes):
    filled(out)
    raw = (out / RECORDS).read_bytes()
    (out / RECORDS).write_bytes(raw.replace(old, new, 1))
    with pytest.raises(UnmaskError, match=r"line 1 of .*checksum mismatch"):
        read_run(out)


def test_records_of_a_different_grid_are_refused_by_line(out: Path):
    problems = {"countdown": ["p1", "p2"]}
    with opened(out, problems) as folder:
        folder.append([record("p1"), record("p2")])
    whole = (out / RECORDS).read_bytes()
    for changes in ({"model": "toi"}, {"decoder": "low-confidencf"}, {"length": 9}, {"seed": 1}, {"sample": 1}):
        (out / RECORDS).write_bytes(whole + record("p1", **changes).line())
        with pytest.raises(UnmaskError, match=rf"line 3 of .*{next(iter(changes))} .* is not part of this run"):
            read_run(out)
    (out / RECORDS).write_bytes(whole + record("p3").line())
    with pytest.raises(UnmaskError, match=r"line 3 .*problem 'p3' is not part"), opened(out, problems):
        pass


def test_a_record_twice_is_refused_but_a_failure_may_be_tried_again(out: Path):
    failed = record("p9", error="the worker died", right=None, score=None)
    with opened(out) as folder:
        folder.append([failed, record("p9")])
    assert read_run(out).records == [record("p9")]
    with opened(out) as folder:
        folder.append([record("p9")])
    with pytest.raises(UnmaskError, match=r"line 3 .*repeats"):
        read_run(out)


def test_two_processes_on_one_folder_refuse_clearly(out: Path):
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with opened(out):
            os.write(ready[1], b"x")
            os.read(go[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        with pytest.raises(UnmaskError, match=rf"\(process {child}\) is writing .*run"), opened(out):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with opened(out) as folder:  # a dead holder holds nothing
        assert folder.records == []


def test_a_full_disk_is_reported_and_the_file_stays_whole(out: Path, monkeypatch: pytest.MonkeyPatch):
    written = filled(out)
    before = (out / RECORDS).read_bytes()
    true_write = os.write

    def write(file: int, data) -> int:
        if len(data) > 100:
            return true_write(file, bytes(data[:100]))  # the system takes a part, and at the next call nothing
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(out) as folder:
        monkeypatch.setattr(store_module.os, "write", write)
        with pytest.raises(UnmaskError, match=r"the disk is full: make room.*every whole record there is kept"):
            folder.append([record("new")])
        monkeypatch.undo()
        assert (out / RECORDS).read_bytes() == before
        folder.append([record("new")])
    assert read_run(out).records == sorted([*written, record("new")], key=lambda item: item.name)


def test_a_file_that_may_not_grow_is_reported_by_the_real_system(out: Path):
    """The kernel's own refusal, in the middle of a line."""
    written = filled(out)
    size = (out / RECORDS).stat().st_size
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with opened(out) as folder:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
            try:
                folder.append([record("new")])
            except UnmaskError as error:
                os._exit(7 if "may not grow" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert read_records(out / RECORDS, SPEC, {}) == (written, size)


def test_a_folder_that_cannot_be_written_is_reported(out: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store_module.os, "open", refuse)
    with pytest.raises(UnmaskError, match=r"cannot be written.*read-only"), opened(out):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_of_another_user_is_reported(tmp_path: Path):
    child = os.fork()
    if child == 0:
        os.chmod(tmp_path, 0o555)
        os.setuid(65534)
        try:
            with opened(tmp_path / "run"):
                pass
        except UnmaskError as error:
            os._exit(7 if "permission is missing" in str(error) else 8)
        except BaseException:
            os._exit(9)
        os._exit(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_run_that_never_recorded_anything_makes_way(out: Path):
    filled(out, 0)
    with opened(out, seeds=[1]) as folder:
        folder.append([record(seed=1)])
    assert read_run(out).spec["seeds"] == [1]


def test_a_different_format_is_refused(out: Path):
    filled(out)
    (out / "run.json").write_text(json.dumps(HEAD | {"format": 2}))
    with pytest.raises(UnmaskError, match="format 1, got format 2"):
        read_run(out)


@pytest.mark.parametrize(("text", "sentence"), [("{", "is not JSON"), ("[]", "has no spec"), ("{}", "has no spec")])
def test_a_head_that_is_none_is_refused(out: Path, text: str, sentence: str):
    out.mkdir()
    (out / "run.json").write_text(text)
    with pytest.raises(UnmaskError, match=sentence):
        read_run(out)


def test_a_folder_of_other_things_is_left_alone(out: Path):
    out.mkdir()
    (out / "thesis.tex").write_text("")
    with pytest.raises(UnmaskError, match=r"holds 'thesis.tex' and no run"), opened(out):
        pass
    with pytest.raises(UnmaskError, match="is not a run"):
        read_run(out)
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_the_work_of_loading_grows_with_the_records_and_no_faster(tmp_path: Path):
    work = {}
    for count in (100, 800):
        with opened(tmp_path / str(count)) as folder:
            folder.append(record(f"p{i:05d}", text="x" * 400, prompt="y" * 600) for i in range(count))
        work[count] = operations(lambda folder=folder: read_run(folder.path))
    assert work[800] < 8.5 * work[100]
