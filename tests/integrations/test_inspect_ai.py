"""inspect_ai finds the model by its entry point, runs it offline, and its log is read back by its own viewer.

Inspect is imported where it is used: these tests are collected with the quick ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tests.serve.conftest  # noqa: F401  lets shapes be checked in the coroutines of an engine
import unmask
from unmask.errors import UnmaskError
from unmask.runs.store import read_run

pytestmark = pytest.mark.slow

SOURCE = "countdown(level=3, split=validation)"
DECODER = "low-confidence(block=32, steps=8, temperature=0.0)"
LIMIT = 32
TASK = f'''
from itertools import islice

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
from inspect_ai.solver import generate

import unmask.tasks

SOURCE = unmask.tasks.task.make("{SOURCE}")
PROBLEMS = {{problem.id: problem for problem in islice(SOURCE.problems(), {LIMIT})}}


@scorer(metrics=[accuracy()])
def graded():
    async def score(state, target):
        grade = SOURCE.grade(PROBLEMS[state.sample_id], state.output.completion)
        return Score(value=CORRECT if grade.right else INCORRECT, answer=grade.answer)

    return score


@task
def countdown():
    samples = [
        Sample(input=SOURCE.messages(problem)[0]["content"], id=name, target=problem.gold)
        for name, problem in PROBLEMS.items()
    ]
    return Task(dataset=samples, solver=generate(), scorer=graded())
'''


def run(*words: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_has_the_grades_of_unmask_eval_and_opens_in_the_viewer(tmp_path: Path):
    from inspect_ai.log import read_eval_log

    (tmp_path / "countdown.py").write_text(TASK)
    words = ["eval", "countdown.py", "--model", "unmask/tiny", "-M", f"decoder={DECODER}", "-M", "length=32"]
    run("-m", "inspect_ai", *words, "--log-dir", "logs", "--display", "none", folder=tmp_path)
    words = ["-m", "tiny", "-t", SOURCE, "-d", DECODER, "-l", "32", "--limit", str(LIMIT), "--out", "run"]
    run("-m", "unmask", "eval", *words, folder=tmp_path)
    [file] = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(file))
    records = {record.problem: record for record in read_run(tmp_path / "run").records}
    assert (log.status, len(log.samples or []), len(records)) == ("success", LIMIT, LIMIT)
    for sample in log.samples or []:
        record, score = records[str(sample.id)], (sample.scores or {})["graded"]
        assert (score.value == "C", sample.output.completion) == (record.right, record.text)
        told = sample.output.metadata or {}
        assert (told["decoder"], told["seed"], told["forward_passes"]) == (DECODER, 0, record.cost.forward_passes)
    right = [record.right for record in records.values()]
    assert 0 < sum(map(bool, right)) < LIMIT
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == sum(map(bool, right)) / LIMIT
    run("-m", "inspect_ai", "view", "bundle", "--log-dir", "logs", "--output-dir", "page", folder=tmp_path)
    assert (tmp_path / "page" / "index.html").exists()
    assert file.name in json.dumps(json.loads((tmp_path / "page" / "logs" / "listing.json").read_text()))


async def answers(model: Any, *configs: Any) -> list[Any]:
    return await asyncio.gather(*(model.generate("abc", config=config) for config in configs))


def test_a_requests_settings_are_honoured_or_refused():
    from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
    from inspect_ai.tool import ToolInfo

    model = get_model("unmask/toy-chain", decoder="random", memoize=False)
    plain, short, warm = asyncio.run(
        answers(
            model,
            GenerateConfig(),
            GenerateConfig(max_tokens=4, stop_seqs=["a"]),
            GenerateConfig(temperature=1.0, seed=7),
        )
    )
    assert plain.completion == unmask.generate("toy-chain", "abc", decoder="random").text
    assert short.completion == unmask.generate("toy-chain", "abc", decoder="random", length=4, stop="a").text
    assert warm.completion == unmask.generate("toy-chain", "abc", decoder="random(temperature=1.0)", seed=7).text
    with pytest.raises(UnmaskError, match=r"top_p=0\.5 is not supported"):
        asyncio.run(answers(model, GenerateConfig(top_p=0.5)))
    tools = [ToolInfo(name="look", description="")]
    with pytest.raises(UnmaskError, match="tools are not supported: leave out 'look'"):
        asyncio.run(model.api.generate([ChatMessageUser(content="abc")], tools, "auto", GenerateConfig()))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"decoder": ["ots(beams=2", " blok=4)"]}, "decoder 'ots' has no setting 'blok': did you mean 'block'?"),
        ({"decodr": "ots"}, "unknown argument 'decodr': did you mean 'decoder'?"),
        ({"scorer": "duel"}, "scorer is for scoring texts, which inspect_ai does not ask for: leave it out"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: dict[str, Any], sentence: str):
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import get_model

    with pytest.raises(PrerequisiteError) as refusal:
        get_model("unmask/toy-chain", memoize=False, **arguments)
    assert str(refusal.value.message) == f"unmask: {sentence}"
