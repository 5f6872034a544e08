"""Checks while texts are decoded: faults cost their own problem, batches change nothing, golds are out of reach."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import unmask
from unmask.errors import UnmaskError
from unmask.runs import checking
from unmask.runs.engine import Local
from unmask.runs.evaluation import evaluate
from unmask.runs.grid import make_grid
from unmask.runs.settings import Decoding
from unmask.runs.store import read_run
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import Countdown

PROMPTS = ["abc", "gead", "fed"]
DRAWN = "low-confidence(temperature=1)"  # a different text for each prompt


def allocate(text: str) -> bool:
    return bool(bytearray(1 << 42))


def forever(text: str) -> bool:
    while True:
        pass


FAULTS: dict[str, Any] = {
    "ValueError: no": lambda text: (_ for _ in ()).throw(ValueError("no")),
    "got None": lambda text: None,
    "got 'yes'": lambda text: "yes",
    "got nan": lambda text: float("nan"),
    "a span must be": lambda text: (0.5, (3, 3)),
    "SystemExit": lambda text: sys.exit(3),
    "MemoryError": allocate,
    "was stopped": forever,
}


@pytest.mark.parametrize("fragment", FAULTS)
def test_a_faulty_check_fails_its_problem_and_nothing_else(
    fragment: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(checking, "SECONDS", 0.3)
    model = unmask.load("toy-chain")
    target = unmask.generate(model, "gead", length=8, decoder=DRAWN).text

    def check(text: str) -> Any:
        print("noise")
        return text == target or FAULTS[fragment](text)

    outputs = unmask.generate(model, PROMPTS, length=8, check=check, errors="return", decoder=DRAWN)
    faulty = [each for each in outputs if isinstance(each, UnmaskError)]
    assert all(fragment in str(each) for each in faulty)
    assert {each.text for each in outputs if not isinstance(each, UnmaskError)} == {target}
    assert len(faulty) == 2
    assert "noise" not in capfd.readouterr().out


def test_a_check_that_waits_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    with pytest.raises(UnmaskError, match="was stopped"):
        unmask.generate("toy-chain", "abc", length=8, check=lambda text: time.sleep(60))


@pytest.mark.parametrize("decoder", ["search", "best-of(n=4, inner=random)", "vote(n=4, inner=random)", "repair"])
def test_answers_do_not_depend_on_the_batch(decoder: str):
    settings: dict[str, Any] = {"length": 8, "decoder": decoder, "check": lambda text: len(set(text)) / 8}
    model = unmask.load("toy-chain")
    together = unmask.generate(model, PROMPTS, **settings)
    alone = [unmask.generate(model, prompt, **settings) for prompt in PROMPTS]
    assert [(each.text, each.verdict, each.cost.checks) for each in together] == [
        (each.text, each.verdict, each.cost.checks) for each in alone
    ]


def test_every_check_has_to_pass_and_each_text_is_checked_once():
    checks = ["length(most=20)", lambda text: 0.5]
    output = unmask.generate("toy-chain", "abc", length=8, check=checks, decoder="best-of(n=4, inner=low-confidence)")
    assert output.verdict == 0.5
    assert output.cost.checks == len({row.text for row in output.hypotheses}) == 1
    assert output.settings["check"][0] == "length(most=20)"


def test_a_check_that_is_none_is_refused():
    for wrong in (3, "serch", ["json", 3]):
        with pytest.raises(UnmaskError):
            unmask.generate("toy-chain", "abc", length=8, check=wrong)  # type: ignore[arg-type]


def test_a_poisoned_gold_changes_no_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def decisions(folder: Path) -> list[tuple[Any, ...]]:
        grid = make_grid(
            ["tiny"], ["countdown"], ["search(budget=40)"], [48], limit=2, decoding=Decoding(check=("visible",))
        )
        evaluate(grid, folder, Local())
        return [(each.problem, each.text, each.verdict, each.cost) for each in read_run(folder).records]

    honest, draw = decisions(tmp_path / "honest"), Countdown.draw

    def poisoned(self: Countdown, *args: Any) -> Problem:
        return replace(draw(self, *args), gold="poison", data={"numbers": [1, 1, 1], "target": 1})

    monkeypatch.setattr(Countdown, "draw", poisoned)
    assert decisions(tmp_path / "poisoned") == honest
    assert all(checks.checks > 0 for *_, checks in honest)
