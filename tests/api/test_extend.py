"""The package of docs/extend.md brings a decoder, a likelihood, a model and a task."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = """
import unmask
from unmask.core import decoder
from unmask.models import model
from unmask.tasks import task
assert "right-to-left" in decoder and "sharp-chain" in model and "ends-in-d" in task
sharp = unmask.load("sharp-chain(seed=1)")
outputs = unmask.generate(sharp, ["abc", "b"], decoder="right-to-left(quota=3)", length=7, trace=True)
for prompt, output in zip(["abc", "b"], outputs):
    assert output.cost.forward_passes == 3
    alone = unmask.generate(sharp, prompt, decoder="right-to-left(quota=3)", length=7)
    assert alone.hypotheses == output.hypotheses
    assert [tuple(row) for row in list(output.trace.replay())[-1].canvas.tokens.tolist()] == [output.hypotheses[0].ids]
assert unmask.generate(sharp, "abc", decoder="vote(n=3, inner=right-to-left)").cost.forward_passes == 24
searched = unmask.generate(sharp, "abc", decoder="ots(beams=2, block=4, likelihood=halves)", length=8)
assert "likelihood=halves" in searched.decoder
ends = task.make("ends-in-d")
assert all(ends.grade(problem, problem.gold).right and not ends.grade(problem, "").right for problem in ends.problems())
try:
    decoder.make("right-to-left(quotta=3)")
except unmask.UnmaskError as error:
    assert "did you mean 'quota'?" in str(error)
"""


def write_package(folder: Path) -> Path:
    """The files of docs/extend.md: blocks that open with one name, joined."""
    page = (ROOT / "docs" / "extend.md").read_text("utf-8")
    files: dict[str, str] = {}
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", page, re.DOTALL):
        files[name] = files.get(name, "") + text
    assert set(files) == {"pyproject.toml", "unmask_right.py"}
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def test_the_tutorials_package_is_found_and_decodes(tmp_path: Path):
    package = write_package(tmp_path / "unmask-right")
    info = package / "unmask_right-0.1.dist-info"  # what installing it would leave
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: unmask-right\nVersion: 0.1\n")
    kinds = ("decoders", "likelihoods", "models", "tasks")
    (info / "entry_points.txt").write_text("".join(f"[unmask.{kind}]\nright = unmask_right\n" for kind in kinds))
    paths = os.pathsep.join([str(package), str(ROOT)])
    subprocess.run([sys.executable, "-c", CHECK], env=os.environ | {"PYTHONPATH": paths}, check=True)


def test_a_broken_package_is_named_and_does_no_harm(tmp_path: Path):
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[unmask.decoders]\nbroken = no_such_module\n")
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "unmask", "list", "decoders", "--json"]
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    assert "order-token-search" in {one["name"] for one in json.loads(ran.stdout)}
    assert "no_such_module" in ran.stderr


@pytest.mark.slow
def test_the_tutorials_package_installs_and_shows_up_in_the_list(tmp_path: Path):
    package = write_package(tmp_path / "unmask-right")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    # This checkout and what it stands on, pip included, as if installed here; nothing is fetched.
    (site / "unmask.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, str(package)], env=clean, check=True)
    subprocess.run([str(python), "-c", CHECK], env=clean, check=True, cwd=tmp_path)

    def unmask_command(*words: str) -> str:
        command = [str(python), "-m", "unmask", *words]
        return subprocess.run(command, env=clean, check=True, cwd=tmp_path, capture_output=True, text=True).stdout

    assert "right-to-left: Write the last masks first." in unmask_command("list", "decoders")
    assert "positions per step" in unmask_command("list", "decoders")
    said = json.loads(unmask_command("generate", "abc", "--decoder", "right-to-left(quota=2)", "--json"))
    assert said["decoder"] == "right-to-left(quota=2)"
