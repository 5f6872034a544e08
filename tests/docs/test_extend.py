"""docs/extend.md runs: a decoder, a model, a task and a likelihood of another package are used like ours."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT, commands, is_right

PAGE = (ROOT / "docs" / "extend.md").read_text("utf-8")
KINDS = ("decoders", "likelihoods", "models", "tasks")
CHECK = """
import unmask
from unmask.core import decoder
from unmask.models import model
from unmask.tasks import task
assert "evens-first" in decoder and "sharp-chain" in model and "ends-in-d" in task
sharp = unmask.load("sharp-chain(seed=1)")
outputs = unmask.generate(sharp, ["abc", "b"], decoder="evens-first(block=3)", length=7, trace=True)
for prompt, output in zip(["abc", "b"], outputs):
    assert output.cost.forward_passes == 5
    alone = unmask.generate(sharp, prompt, decoder="evens-first(block=3)", length=7)
    assert alone.hypotheses == output.hypotheses
    last = list(output.trace.replay())[-1].canvas.tokens.tolist()
    assert [tuple(row) for row in last] == [output.hypotheses[0].ids]
searched = unmask.generate(sharp, "abc", decoder="ots(beams=2, block=4, likelihood=halves)", length=8)
assert "likelihood=halves" in searched.decoder
ends = task.make("ends-in-d")
assert all(ends.grade(problem, problem.gold).right and not ends.grade(problem, "").right for problem in ends.problems())
try:
    decoder.make("evens-first(blok=3)")
except unmask.UnmaskError as error:
    assert "did you mean 'block'?" in str(error)
"""


def write_package(folder: Path) -> Path:
    """Write the files of the page: blocks that begin with the name of a file, joined."""
    files: dict[str, str] = {}
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        files[name] = files.get(name, "") + text
    assert set(files) == {"pyproject.toml", "unmask_evens.py"}
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def write_metadata(folder: Path, name: str, entries: str) -> None:
    """Write what installing a package would leave beside it."""
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(entries)


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run([sys.executable, *words], env=environ, capture_output=True, text=True, check=True)


def test_the_package_of_the_page_is_found_and_used(tmp_path: Path):
    package = write_package(tmp_path / "unmask-evens")
    write_metadata(package, "unmask_evens", "".join(f"[unmask.{kind}]\nevens = unmask_evens\n" for kind in KINDS))
    python(package, "-c", CHECK)


def test_a_broken_package_is_named_and_does_no_harm(tmp_path: Path):
    write_metadata(tmp_path, "broken", "[unmask.decoders]\nbroken = no_such_module\n")
    ran = python(tmp_path, "-m", "unmask", "list", "decoders", "--json")
    assert "order-token-search" in {one["name"] for one in json.loads(ran.stdout)}
    assert "no_such_module" in ran.stderr


@pytest.mark.slow
def test_the_package_of_the_page_installs_and_its_examples_run(tmp_path: Path):
    package = write_package(tmp_path / "unmask-evens")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    own = str(home / "bin" / "python")
    ask = [own, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    # This checkout and what it stands on, pip included, as if installed here; nothing is fetched.
    (site / "unmask.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*words: str) -> str:
        ran = subprocess.run([own, *words], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (words, ran.stderr)
        return ran.stdout

    run("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", str(package))
    assert "evens-first" in run("-m", "unmask", "list", "decoders")
    for kind, block in re.findall(r"^```(python|sh)\n(?!# unmask)(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if kind == "python":
            run("-c", block)
        for _, *words in commands(block, {}) if kind == "sh" else ():
            printed = run("-m", "unmask", *words)
            if words[0] == "generate":
                assert is_right(words[2], printed), (words, printed)
