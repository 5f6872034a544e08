"""Candidates are those the search saw, scored as it scores them, and labelled by the task."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import torch

import unmask
from unmask.core import Frame, decoder
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.candidates import SCORES, Candidate, Study, read_candidates, write_candidates
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.tasks import Grade, Problem
from unmask.tasks.generated.countdown import Countdown
from unmask.tasks.task import Metric

SPEC = "ots(beams=2, block=6, steps=8, temperature=1)"
LENGTH = 18


@dataclass(frozen=True)
class EvenLength(Countdown):
    """Countdown's prompts under a grade that an untrained eye can check."""

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        del problem, metric
        right = len(text) % 2 == 0
        return Grade(right, float(right), text)


TASK = EvenLength(level=3)


@cache
def model() -> Model:
    return unmask.load("tiny", "cpu", "float32")


@cache
def problems() -> list[Problem]:
    return list(islice(Countdown(level=3, split="validation").problems(), 3))


def generation(spec: str = SPEC) -> Generation:
    return Generation(model(), Decoding(decoder.make(spec), LENGTH, seed=3))


@cache
def candidates(spec: str = SPEC, batch: int = 3, finish: bool = False) -> list[Candidate]:
    return list(Study(generation(spec), TASK, finish).candidates(problems(), batch))


def frames(spec: str = SPEC) -> list[Frame]:
    prompts = [read_prompt(model(), TASK.messages(problem)) for problem in problems()]
    return [frame for frame in generation(spec).session(prompts) if frame.branch is not None]


@pytest.mark.parametrize("likelihood", ["block", "all-blocks", "future-masked"])
def test_a_searchs_own_likelihood_is_recorded_as_the_search_had_it(likelihood: str):
    spec = f"ots(beams=2, block=6, steps=8, temperature=1, likelihood={likelihood})"
    seen = frames(spec)
    assert [len(frame.canvas) for frame in seen] == [6, 6, 6]
    expected = [score for frame in seen if frame.branch for score in frame.branch.score.tolist()]
    assert [candidate.scores[likelihood] for candidate in candidates(spec)] == pytest.approx(expected, abs=1e-4)
    kept = [candidate for frame in seen if frame.branch for candidate in frame.branch.kept.tolist()]
    assert [candidate.kept for candidate in candidates(spec)] == kept


def test_every_likelihood_agrees_on_the_first_block_where_they_mean_the_same():
    for candidate in candidates():
        assert candidate.scores.keys() == set(SCORES)
        if candidate.block == 0:
            assert candidate.scores["block"] == candidate.scores["all-blocks"]
    assert any(candidate.scores["block"] != candidate.scores["future-masked"] for candidate in candidates())


def test_the_path_is_the_sum_of_what_was_written():
    expected = [
        float(row.sum()) for frame in frames() if frame.branch for row in frame.branch.canvas.logp.double().unbind()
    ]
    assert [candidate.scores["path"] for candidate in candidates()] == pytest.approx(expected, abs=1e-4)


def test_candidates_do_not_depend_on_the_batch():
    def by_name(some: list[Candidate]) -> dict[tuple[str, int, int, int], Candidate]:
        return {(candidate.problem, candidate.step, candidate.parent, candidate.draw): candidate for candidate in some}

    assert len(by_name(candidates())) == len(candidates()) == 3 * 3 * 4
    assert by_name(candidates()) == by_name(candidates(batch=2))


def test_labels_are_the_grades_of_completions_and_of_finished_candidates():
    for candidate in candidates(finish=True):
        assert candidate.right == (len(candidate.text) % 2 == 0)
        assert candidate.finished is not None
        if candidate.block == 2:  # nothing is left to finish
            assert candidate.finished == candidate.right
    assert {candidate.finished for candidate in candidates()} == {None}


def test_finishing_the_only_beam_at_temperature_zero_is_low_confidence():
    greedy = "ots(beams=1, block=6, steps=8, temperature=0)"
    prompts = [TASK.messages(problem) for problem in problems()]
    plain = unmask.generate(model(), prompts, decoder="low-confidence(block=6, steps=8)", length=LENGTH)
    right = {problem.id: len(output.text) % 2 == 0 for problem, output in zip(problems(), plain, strict=True)}
    assert all(candidate.finished == right[candidate.problem] for candidate in candidates(greedy, finish=True))


@pytest.mark.slow
def test_survivors_of_a_branch_are_the_rows_of_its_frame():
    for spec in (SPEC, "order-search(beams=3)", "ots(beams=3, interval=2, block=9)"):
        for frame in frames(spec):
            assert frame.branch is not None
            assert torch.equal(frame.branch.canvas.tokens[frame.branch.survivors], frame.canvas.tokens)
            assert torch.equal(frame.branch.score[frame.branch.survivors], frame.score)


def test_a_file_of_candidates_reads_back_and_others_are_refused(tmp_path: Path):
    study = Study(generation(), Countdown(level=3, split="validation"))
    path = tmp_path / "candidates.jsonl"
    write_candidates(path, study.header(), candidates())
    header, again = read_candidates(path)
    assert again == candidates()
    assert header["task"] == "countdown(level=3, split=validation, seed=0)"
    assert header["decoder"].startswith("order-token-search(beams=2, block=6")
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UnmaskError, match="cut off or damaged"):
        read_candidates(path)
    path.write_text('{"format": "unmask-trace"}\n')
    with pytest.raises(UnmaskError, match="is not an unmask-candidates file"):
        read_candidates(path)
    with pytest.raises(UnmaskError, match="cannot be read"):
        read_candidates(tmp_path / "nothing")


@pytest.mark.parametrize("spec", ["low-confidence", "ots(samples=2)"])
def test_a_decoder_without_comparable_candidates_is_refused(spec: str):
    with pytest.raises(UnmaskError, match="choose order-token-search with samples=1"):
        Study(generation(spec), TASK)
