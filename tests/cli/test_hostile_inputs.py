"""Bad input ends with one sentence and exit code 2, and no file is lost or changed."""

import gzip
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import unmask
from tests.report.examples import record, write_run
from unmask.runs.header import write_head
from unmask.tasks.data import VARIABLE

TABLE = Path(__file__).with_name("hostile_inputs.txt").read_text(encoding="utf-8")
INPUTS = [tuple(line.rsplit(" => ", 1)) for line in TABLE.splitlines() if line and not line.startswith("# ")]
LATER = ("bench", "reproduce", "serve", "train")  # commands that import much: their lines are for `make test-all`
HEAD = {"format": "unmask-trace", "version": 1}
TEXTS = {
    "blank.txt": " \n\n",
    "empty.txt": "",
    "text.txt": "neither JSON nor TOML: {\n",
    "prompts.txt": "abc\nabd\n",
    "prompts.json": "{}",
    "not-prompts.jsonl": '{"prompt": "abc"}\n{"question": 1}\n',
    "deep.json": "[" * 100_000 + "\n",
    "numbers.jsonl": "1\n",
    "no-id.jsonl": '{"output": "18"}\n',
    "other-id.jsonl": '{"id": "?", "output": "18"}\n',
    "outputs.jsonl": '{"id": "x", "output": "18"}\n',
    "traced-run/traces/one.jsonl": "",
    "torn-trace.jsonl": json.dumps(HEAD) + '\n{"step"\n',
    "cut-trace.jsonl": json.dumps(HEAD)[:-4],
    "newer-trace.jsonl": json.dumps(HEAD | {"version": 99}) + "\n{}\n",
    "odd-trace.jsonl": json.dumps(HEAD) + "\n[]\n{}\n",
    "broken-checkpoint/config.json": "{",
    "broken-training/state.pt": "not a state",
    "good-data/gsm8k/test.jsonl": '{"question": "1 + 1?", "answer": "#### 2"}\n',
    "bad-data/gsm8k/test.jsonl": '{"question": "1 + 1?"}\n',
    "bad-data/math500/test.jsonl": "not JSON\n",
    "bad-data/sudoku4x4/4x4_test_sudoku.csv": "a,b\n1,2\n",
    "bad-data/mbpp/mbpp.jsonl": "[1]\n",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Files and folders that the table names."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "empty-folder").mkdir()
    (folder / "endless-run").mkdir()
    (folder / "endless-run/run.json").symlink_to("/dev/zero")
    (folder / "latin-1.txt").write_bytes("café".encode("latin-1"))
    (folder / "binary.bin").write_bytes(bytes(range(256)))
    (folder / "bad-data/humaneval").mkdir()
    (folder / "bad-data/humaneval/HumanEval.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-9])
    records = [record(spec, problem=problem) for spec in ("low-confidence", "ots") for problem in range(3)]
    write_run(folder / "run", records)
    write_run(folder / "one-cell-run", records[:3])
    write_run(folder / "nothing-recorded", [])
    write_run(folder / "torn-run", []).joinpath("records.jsonl").write_text("{}\n")
    changed = write_run(folder / "changed-run", records)
    write_head(changed, {"format": 1, "created": "2026", "spec": {}})
    (changed / "run.json").write_text((changed / "run.json").read_text().replace("2026", "2025"))
    for name, prompt in (("trace.jsonl", "abc"), ("other-trace.jsonl", "abd")):
        unmask.generate("toy-chain", prompt, decoder="ots(beams=2)", length=4, trace=folder / name)
    return folder


Ran = tuple[int, str, str]


@pytest.fixture
def shell(files: Path, monkeypatch, run) -> Callable[[str], Ran]:
    """Runs a line of the table in this process: exit code, standard output, standard error."""
    monkeypatch.chdir(files)
    monkeypatch.setenv(VARIABLE, "")

    def shell(line: str) -> Ran:
        words = shlex.split(line)
        while words and re.fullmatch(r"[A-Z]+=.*", words[0]):
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        stdin = b""
        if words[-2:-1] == ["<"]:
            *words, _, name = words
            stdin = (files / name).read_bytes()
        return run(*words, stdin=stdin)

    return shell


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file but locks."""
    paths = (path for path in folder.rglob("*") if path.name != ".lock")
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns if path.is_file() else 0) for path in sorted(paths)
    }


@pytest.mark.parametrize(
    ("line", "fragment"),
    [pytest.param(*each, marks=[pytest.mark.slow] * each[0].startswith(LATER)) for each in INPUTS],
    ids=[line for line, _ in INPUTS],
)
def test_bad_input_is_refused_in_one_sentence(shell, files: Path, line: str, fragment: str):
    before = _contents(files)
    code, out, err = shell(line)
    assert fragment in err
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ") or (err.startswith("unmask: ") and err.count("\n") == 1)
    assert _contents(files) == before
