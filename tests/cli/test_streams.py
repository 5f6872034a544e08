"""Streams that are closed, full or ASCII only, and signals: each test in a separate process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import unmask
from tests.report.examples import record, write_run

COMMAND = f"{sys.executable} -m unmask"


def shell(line: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    script = f'unmask() {{ {COMMAND} "$@"; }}; {line}'
    environment = os.environ | {"PYTHONPATH": os.getcwd()} | variables
    return subprocess.run(["bash", "-c", script], cwd=cwd, env=environment, capture_output=True, check=False)


REFUSED = [
    ("unmask list decoders >&-", "standard output is closed"),
    ("unmask list decoders > /dev/full", "the disk is full"),
    ("unmask list decoders --json > /dev/full", "the disk is full"),
    ("unmask list $'\\xff'", "argument 2 is not UTF-8 text"),
    ("unmask grade - -t countdown <&-", "standard input is closed"),
    ("unmask generate - -m toy-chain -l 4 <&-", "standard input is closed"),
    ("unmask generate --prompts - -m toy-chain -l 4 <&-", "standard input is closed"),
    ("unmask generate $'a\\xffb' -m toy-chain -l 4", "argument 2 is not UTF-8 text"),
    ("MPLBACKEND=nonsense unmask tree trace.jsonl --out tree.svg", "MPLBACKEND"),
]
LOADING = ("unmask generate", "MPLBACKEND")  # commands that load torch: their lines are for `make test-all`


@pytest.mark.parametrize(
    ("line", "sentence"),
    [pytest.param(*each, marks=[pytest.mark.slow] * each[0].startswith(LOADING)) for each in REFUSED],
)
def test_unusable_streams_are_refused(line: str, sentence: str, tmp_path: Path):
    if "trace.jsonl" in line:
        unmask.generate("toy-chain", "abc", decoder="ots(beams=2)", length=4, trace=tmp_path / "trace.jsonl")
    ran = shell(line, tmp_path)
    assert sentence in ran.stderr.decode()
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)


def test_a_closed_pipe_ends_the_command_silently(tmp_path: Path):
    ran = shell("unmask list decoders | head -n 1; echo ${PIPESTATUS[0]}", tmp_path)
    assert ran.stderr == b""
    assert ran.stdout.split()[-1] in (b"0", b"141")  # 0 where all of it fitted the pipe


@pytest.mark.slow
def test_ascii_output_loses_nothing(tmp_path: Path):
    write_run(tmp_path / "run", [record(spec, problem=n) for spec in ("low-confidence", "ots") for n in range(9)])
    text = shell("unmask report run", tmp_path, PYTHONIOENCODING="ascii", NO_COLOR="1").stdout.decode("ascii")
    assert "against low-confidence" in text
    assert r" \u2192 " in text  # an arrow
    assert r" \xb1 " in text
    table = text.split("\n\n")[0].splitlines()[1:]
    assert len({len(line.rstrip()) for line in table}) == 1  # columns stay aligned
    assert "?" not in text
    assert "\x1b" not in text


def test_json_is_ascii_where_the_stream_is(tmp_path: Path):
    shown = shell("unmask list decoders --json", tmp_path, PYTHONIOENCODING="ascii").stdout
    assert json.loads(shown.decode("ascii")) == json.loads(shell("unmask list decoders --json", tmp_path).stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "saved"),
    [
        ("eval -m tiny -t countdown -d low-confidence -l 8 --limit 5000 -o run", "records are saved in 'run'"),
        ("train nano --out training --workers 0", "the state is saved in 'training'"),
    ],
)
def test_ctrl_c_says_what_is_saved_and_how_to_resume(line: str, saved: str, tmp_path: Path):
    words = [*COMMAND.split(), *line.split()]
    grown = tmp_path / ("run/records.jsonl" if "eval" in line else "training/log.jsonl")
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        while process.poll() is None and not (grown.exists() and grown.stat().st_size):
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    last = err.decode().splitlines()[-1]
    assert process.returncode == 130
    assert out == b""
    assert "Traceback" not in err.decode()
    assert saved in last
    assert last.endswith(f"resume with: unmask {line}")
