"""Decoders with a check: a text that passes ends its problem and is the answer; everything else stays as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import unmask
from tests.decoders.examples import LENGTH, PROMPTS, blank, facts, run, texts
from unmask.core import Decoded, Frame, decode, decoder
from unmask.models.load import load

Check = Callable[[Sequence[int]], float]  # from the ids of an answer to its score
CHAIN = load("toy-chain(letters=5)").denoiser
ENDING = [  # decoders that end early once a text passes
    "search(budget=60, sure=0.6, plausible=0.01)",
    "best-of(n=6, inner=random(temperature=1.0))",
    "vote(n=6, inner=random(temperature=1.0))",
    "repair(inner=random(temperature=1.0), rounds=4, share=0.5)",
]
OTHERS = ["order-token-search(beams=3, block=3, temperature=1)", "low-confidence(temperature=1)"]
SEEDS = range(5)


class Judged:
    """A judge that remembers the scores of the texts of each problem."""

    def __init__(self, check: Check):
        self.check = check
        self.scores: dict[int, list[float]] = defaultdict(list)

    def __call__(self, problem: Sequence[int], ids: Sequence[Sequence[int]]) -> list[tuple[float, range]]:
        scores = [self.check(row[-LENGTH:]) for row in ids]
        for number, score in zip(problem, scores, strict=True):
            self.scores[number].append(score)
        return [(score, range(len(row) - 4, len(row))) for score, row in zip(scores, ids, strict=True)]

    def cost(self, problem: int) -> tuple[int, float]:
        return len(self.scores[problem]), 0.0


def checked(spec: str, check: Check, prompts: Sequence[Sequence[int]] = PROMPTS, seed: int = 0) -> list[Decoded]:
    return decode(decoder.make(spec), CHAIN, blank(CHAIN, prompts), seed, judge=lambda _: Judged(check))


def rare(answer: Sequence[int]) -> float:
    """Pass one text in seven, and call others partly right."""
    return 1.0 if sum(place * token for place, token in enumerate(answer, 1)) % 7 == 0 else 0.5 * (answer[-1] % 2)


@pytest.mark.parametrize("spec", ENDING)
def test_a_text_that_passes_ends_its_problem(spec: str):
    for right, plain in zip(checked(spec, lambda _: 1.0), run(spec, CHAIN), strict=True):
        assert right.cost.forward_passes < plain.cost.forward_passes


@pytest.mark.parametrize("spec", OTHERS)
def test_decoders_that_write_one_batch_of_texts_write_the_same(spec: str):
    assert facts(checked(spec, rare)) == facts(run(spec, CHAIN))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spec", ENDING + OTHERS)
def test_no_text_that_passed_is_lost_and_no_forward_pass_is_too_many(spec: str, seed: int):
    judge = Judged(rare)
    results = decode(decoder.make(spec), CHAIN, blank(CHAIN), seed, judge=lambda _: judge)
    for number, result in enumerate(results):
        assert result.verdicts is not None
        assert max(result.verdicts) == max(judge.scores[number])
        assert result.cost.checks == len(judge.scores[number])
        assert result.cost.forward_passes <= decoder.make(spec).max_forward_passes(LENGTH)


def test_a_search_finds_texts_that_pass():
    assert any(rare(rows[0][-LENGTH:]) < 1 for rows in texts(run(ENDING[0], CHAIN)))
    assert all(rare(rows[0][-LENGTH:]) == 1 for rows in texts(checked(ENDING[0], rare)))


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_are_those_without_a_check_up_to_the_first_wave_that_passes(seed: int):
    best_of, vote = ENDING[1:3]
    voted, best = (texts(checked(spec, rare, seed=seed)) for spec in (vote, best_of))
    for every, some, ranked in zip(texts(run(vote, CHAIN, seed=seed)), voted, best, strict=True):
        right = [rare(row[-LENGTH:]) == 1 for row in every]
        drawn = next((wave for wave in (1, 2, 4) if any(right[:wave])), 6)
        assert some == every[:drawn]
        assert sorted(ranked) == sorted(some)


@pytest.mark.parametrize("spec", ENDING + OTHERS)
def test_results_do_not_depend_on_the_batch_or_its_order(spec: str):
    together = facts(checked(spec, rare))
    assert facts(checked(spec, rare, PROMPTS[::-1])) == together[::-1]
    assert [fact for prompt in PROMPTS for fact in facts(checked(spec, rare, [prompt]))] == together


@pytest.mark.parametrize("spec", ENDING + OTHERS)
def test_without_a_judge_nothing_changes(spec: str):
    results = decode(decoder.make(spec), CHAIN, blank(CHAIN), judge=lambda _: None)
    assert facts(results) == facts(run(spec, CHAIN))
    assert all(result.verdicts is None and result.cost.checks == 0 for result in results)


@pytest.mark.parametrize("spec", ENDING + OTHERS)
def test_a_failing_text_is_not_the_answer_and_a_trace_can_be_replayed(spec: str):
    frames: list[Frame] = []
    options: dict[str, Any] = {"decoder": spec, "length": LENGTH, "seed": 1}
    options |= {"check": lambda text: min(len(text), 3) / 3, "watch": lambda _, frame: frames.append(frame)}
    output = unmask.generate("toy-chain(letters=9)", "abc", **options, trace=True)
    assert output.verdict == min(len(output.text), 3) / 3 == max(row.verdict or 0 for row in output.hypotheses)
    assert output.trace is not None
    for seen, again in zip(frames, output.trace.replay(), strict=True):
        assert torch.equal(seen.canvas.tokens, again.canvas.tokens)
        assert torch.equal(seen.score, again.score)
