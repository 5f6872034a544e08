"""The search over second choices: its plain loop, its budget, its batches and its clock."""

from __future__ import annotations

from itertools import count

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unmask
from tests.decoders.examples import facts, run, texts
from tests.decoders.plain_loops import BestFirst
from tests.decoders.problems import LOADED, Problems, problems
from tests.oracle import CountedForward, plain_likelihood
from unmask.core import decode, decoder
from unmask.decoders import search as limit
from unmask.errors import UnmaskError
from unmask.policies.likelihood import likelihood

SETTINGS = (
    problems(),
    st.integers(9, 80),
    st.integers(1, 4),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([0.001, 0.1, 0.5]),
    st.integers(1, 9),
    st.sampled_from(["interleaved(combs=2)", "leave-out(group=2)", "block"]),
)


@pytest.mark.parametrize("examples", [15, pytest.param(400, marks=pytest.mark.slow)])
def test_it_is_the_plain_loop(examples: int):
    @settings(max_examples=examples)
    @given(*SETTINGS)
    def holds(case: Problems, budget: int, width: int, sure: float, plausible: float, block: int, name: str) -> None:
        block, mask = min(block, *case.masks), case.denoiser.mask_id
        how = f"budget={budget}, width={width}, sure={sure}, plausible={plausible}, block={block}, likelihood={name}"
        chosen = plain_likelihood(likelihood.make(name))
        results = decode(decoder.make(f"search({how})"), case.denoiser, case.canvas(), case.seed)
        for prompt, result in zip(case.prompts, results, strict=True):
            x = torch.tensor([*prompt, *[mask] * case.length])
            slots, forward = (x == mask).nonzero()[:, 0], CountedForward(case.denoiser)
            best = BestFirst(forward, slots, mask, budget, width, sure, plausible, block, chosen).run(x)
            assert texts([result]) == [[text.x.tolist() for text in best]]
            assert result.score == [pytest.approx(text.score, rel=1e-9, abs=1e-9) for text in best]
            assert result.cost.forward_passes == forward.rows

    holds()


@settings(max_examples=25)
@given(
    problems(), st.integers(1, 60), st.integers(1, 5), st.sampled_from([0.3, 0.9, 1.0]), st.sampled_from([1e-6, 0.2])
)
def test_no_budget_is_ever_exceeded(case: Problems, budget: int, width: int, sure: float, plausible: float):
    made = decoder.make(f"search(budget={budget}, width={width}, sure={sure}, plausible={plausible})")
    for result in decode(made, case.denoiser, case.canvas(), case.seed):
        assert result.canvas.done
        assert 1 <= result.cost.forward_passes <= budget
        [rows] = texts([result])
        assert len({tuple(row) for row in rows}) == len(rows) <= width


def test_the_default_budget_is_that_of_ots_with_four_beams():
    made = decoder.make("search")
    assert [made.max_forward_passes(length) for length in (64, 128, 256)] == [160, 320, 640]
    assert decoder.spec(made.resolved(64)).startswith("search(budget=160, ")
    assert decoder.make("search(budget=3)").resolved(256).block == 86  # type: ignore[attr-defined]


def test_a_batch_costs_and_decodes_as_its_problems_alone():
    denoiser = LOADED["toy-transformer(letters=9, width=16, layers=1, sharpness=3)"]
    prompts = [[i % 9, (i // 9) % 9, (3 * i) % 9] for i in range(64)]
    made = "search(budget=20, sure=0.9, plausible=0.02, likelihood=interleaved(combs=2))"

    together = facts(run(made, denoiser, prompts, 4))
    assert together[:6] == [facts(run(made, denoiser, [prompt], 4))[0] for prompt in prompts[:6]]
    sevens = [facts(run(made, denoiser, prompts[start : start + 7], 4)) for start in range(0, 21, 7)]
    assert together[:21] == [each for some in sevens for each in some]
    assert len({passes for _, _, passes, *_ in together}) > 3  # some ended long before others


def test_a_certain_text_ends_the_search_and_no_seed_changes_it():
    model = unmask.load("toy-transformer(letters=5, width=16, layers=2, seed=1)")
    runs = [unmask.generate(model, "abc", decoder="search(sure=0.2)", length=8, seed=seed) for seed in (0, 7)]
    assert runs[0].text == runs[1].text
    everything = unmask.generate(model, "abc", decoder="search(sure=1, plausible=0.001)", length=8)
    assert runs[0].cost.forward_passes < everything.cost.forward_passes <= decoder.make("search").max_forward_passes(8)
    assert everything.score >= runs[0].score


def test_time_that_runs_out_ends_the_search_with_a_whole_text(monkeypatch: pytest.MonkeyPatch):
    model = unmask.load("toy-transformer(letters=5, width=16, layers=2, seed=1)")
    rows = []
    for seconds in (1, 7, 40, 1000):
        ticks = count()
        monkeypatch.setattr(limit, "perf_counter", lambda ticks=ticks: float(next(ticks)))
        spec = f"search(budget=80, seconds={seconds}, sure=1, plausible=0.001)"
        output = unmask.generate(model, "abc", decoder=spec, length=8)
        assert model.denoiser.mask_id not in output.hypotheses[0].ids
        assert next(ticks) <= max(seconds, 2) + 1  # every step takes a second; nothing starts that would end too late
        rows.append(output.cost.forward_passes)
    assert rows == sorted(rows)
    assert rows[0] == 2  # how long a step takes is known after the first
    assert rows[-1] > 50


def test_a_budget_that_cannot_reach_every_block_is_refused():
    with pytest.raises(UnmaskError, match="budget must be at least 4"):
        decoder.make("search(budget=2, block=8)").resolved(32)
