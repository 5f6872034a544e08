"""A decoder of another package, installed by pip, is treated like ours everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "unmask-last-first"
version = "0.1"

[project.entry-points."unmask.decoders"]
last_first = "last_first"

[tool.hatch.build.targets.wheel]
only-include = ["last_first.py"]
"""
DECODER = '''
"""Write blocks from left to right, and in each block the least likely draft first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from unmask.core import Decoder, Frame, Rows, Schedule, decoder
from unmask.policies.remasking import sample, top


@decoder("last-first")
@dataclass(frozen=True)
class LastFirst(Decoder):
    block: int | None = 4  # masks per block
    temperature: float = 0.0  # 0 takes the likeliest token

    single_path = commits_only = ends_together = True

    def __call__(self, rows: Rows) -> Iterator[Frame]:
        for step in rows.plan(self.block, rows.length):
            rows = rows.enter(step.span)
            draft = sample(rows, rows.open(step.span, step.open), step.number, self.temperature)
            rows = draft.write(top(-draft.logp, draft.masked, step.quota))
            yield rows.frame(step.number)

    def resolved(self, length: int) -> "LastFirst":
        return replace(self, block=Schedule.plan(length, self.block, length).block)

    def max_forward_passes(self, length: int) -> int:
        return length
'''
IN_PROCESS = """
import asyncio
from dataclasses import replace

import unmask
from unmask.core import Wrapper

SPEC, LENGTH = "last-first(temperature=1.0)", 24
model = unmask.load("toy-transformer")
prompts = ["abc", "bad", "c", "dada", "ab", "ca"]
alone = [unmask.generate(model, prompt, decoder=SPEC, length=LENGTH, trace=True) for prompt in prompts]
batched = unmask.generate(model, prompts, decoder=SPEC, length=LENGTH)
assert [each.text for each in batched] == [each.text for each in alone]
for each in alone:  # it is traced
    assert list(each.trace.replay())[-1].canvas.tokens[0].tolist() == list(each.hypotheses[0].ids)

letter = alone[0].text[6]
stopped = unmask.generate(model, prompts[0], decoder=SPEC, length=LENGTH, stop=[letter])
assert stopped.text == alone[0].text.split(letter)[0] and stopped.finish_reason == "stop"
assert stopped.cost.forward_passes < alone[0].cost.forward_passes  # nothing is computed after a stop string


class Counting(Wrapper):
    calls = 0

    def __call__(self, canvas, at, cache=None):
        Counting.calls += 1
        return self.inner(canvas, at, cache)


async def serve():
    async with unmask.AsyncEngine(replace(model, denoiser=Counting(model.denoiser))) as engine:
        updates = [update async for update in engine.stream(prompts[0], decoder=SPEC, length=LENGTH)]
        pieces = [update.text for update in updates]
        assert "".join(pieces) == alone[0].text and any(pieces[:-1])  # text comes before the end
        one, Counting.calls = Counting.calls, 0
        outputs = await asyncio.gather(*(engine.generate(p, decoder=SPEC, length=LENGTH) for p in prompts))
        assert [each.text for each in outputs] == [each.text for each in alone]
        assert Counting.calls < 3 * one  # six requests share their forward passes


asyncio.run(serve())
"""


@pytest.mark.slow
def test_an_installed_decoder_is_treated_like_ours(tmp_path: Path):
    package, site = tmp_path / "package", tmp_path / "site"
    package.mkdir()
    (package / "pyproject.toml").write_text(PROJECT)
    (package / "last_first.py").write_text(DECODER)
    flags = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, "--target", site, package], check=True)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    subprocess.run([sys.executable, "-c", IN_PROCESS], env=environ, check=True)

    def command(*words: str) -> str:
        run = [sys.executable, "-m", "unmask", *words]
        return subprocess.run(run, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    named = {entry["name"]: entry for entry in json.loads(command("list", "decoders", "--json"))}
    assert [setting["name"] for setting in named["last-first"]["settings"]] == ["block", "temperature"]
    cells = "-m tiny -t countdown -d last-first -d low-confidence -l 16 --limit 2"
    command("eval", *cells.split(), "--out", "run")
    cells = json.loads(command("report", "run", "--plots", "plots", "--html", "page.html", "--json"))
    assert "last-first" in json.dumps(cells)
    assert list((tmp_path / "plots").glob("*.svg"))
    assert "last-first" in (tmp_path / "page.html").read_text()
