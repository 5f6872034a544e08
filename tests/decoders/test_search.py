"""The search over second choices: its plain loop, its budget, its batches and its clock."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unmask
from tests.decoders.plain_search import Plain
from tests.decoders.problems import LOADED, Problems, problems
from tests.oracle import forward_of, plain_likelihood
from unmask.core import Canvas, Decoded, Frame, decode, decoder
from unmask.decoders import search as limit
from unmask.errors import UnmaskError
from unmask.policies.likelihood import likelihood

JUDGES = ["interleaved(combs=2)", "leave-out(group=2)", "block"]


def texts(result: Decoded) -> list[list[int]]:
    return result.canvas.tokens[:, int(result.canvas.pad[0]) :].tolist()


SETTINGS = (
    problems(),
    st.integers(9, 80),
    st.integers(1, 4),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([0.001, 0.1, 0.5]),
    st.integers(1, 9),
    st.sampled_from(JUDGES),
)


def _assert_plain_loop(
    case: Problems, budget: int, width: int, sure: float, plausible: float, block: int, name: str
) -> None:
    block = min(block, *case.masks)
    settings = f"budget={budget}, width={width}, sure={sure}, plausible={plausible}, block={block}, likelihood={name}"
    denoiser, chosen = case.denoiser, plain_likelihood(likelihood.make(name))
    results = decode(decoder.make(f"search({settings})"), denoiser, case.canvas(), case.seed)
    for prompt, result in zip(case.prompts, results, strict=True):
        x = torch.tensor([*prompt, *[denoiser.mask_id] * case.length])
        slots = (x == denoiser.mask_id).nonzero()[:, 0]
        loop = Plain(forward_of(denoiser), slots, denoiser.mask_id, budget, width, sure, plausible, block, chosen)
        best = loop.run(x)
        assert texts(result) == [text.x.tolist() for text in best]
        assert result.score == [pytest.approx(text.score, rel=1e-9, abs=1e-9) for text in best]
        assert result.cost.forward_passes == budget - loop.left


test_it_is_the_plain_loop = settings(max_examples=15)(given(*SETTINGS)(_assert_plain_loop))
test_it_is_the_plain_loop_over_a_long_sweep = pytest.mark.slow(
    settings(max_examples=400)(given(*SETTINGS)(_assert_plain_loop))
)


@settings(max_examples=25)
@given(
    problems(), st.integers(1, 60), st.integers(1, 5), st.sampled_from([0.3, 0.9, 1.0]), st.sampled_from([1e-6, 0.2])
)
def test_no_budget_is_ever_exceeded(case: Problems, budget: int, width: int, sure: float, plausible: float):
    made = decoder.make(f"search(budget={budget}, width={width}, sure={sure}, plausible={plausible})")
    for result in decode(made, case.denoiser, case.canvas(), case.seed):
        assert result.canvas.done
        assert 1 <= result.cost.forward_passes <= budget
        assert len({tuple(row) for row in texts(result)}) == len(texts(result)) <= width


def test_the_default_budget_is_that_of_ots_with_four_beams():
    made = decoder.make("search")
    assert [made.max_forward_passes(length) for length in (64, 128, 256)] == [160, 320, 640]
    assert decoder.spec(made.resolved(64)).startswith("search(budget=160, ")
    assert decoder.make("search(budget=3)").resolved(256).block == 86  # type: ignore[attr-defined]


def test_a_batch_costs_and_decodes_as_its_problems_alone():
    denoiser = LOADED["toy-transformer(letters=9, width=16, layers=1, sharpness=3)"]
    prompts = [[i % 9, (i // 9) % 9, (3 * i) % 9] for i in range(64)]
    made = decoder.make("search(budget=20, sure=0.9, plausible=0.02, likelihood=interleaved(combs=2))")

    def run(some: list[list[int]]) -> list[tuple[list[list[int]], list[float], int, int]]:
        canvas = Canvas.blank(some, 4, denoiser.mask_id, dtype=denoiser.dtype)
        results = decode(made, denoiser, canvas)
        return [(texts(r), r.score, r.cost.forward_passes, r.cost.positions) for r in results]

    together = run(prompts)
    assert together[:6] == [run([prompt])[0] for prompt in prompts[:6]]
    assert together[:21] == [each for start in range(0, 21, 7) for each in run(prompts[start : start + 7])]
    assert len({rows for *_, rows, _ in together}) > 3  # some ended long before others


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


@pytest.mark.parametrize("cache", ["prefix", "dual", "dual(refresh=2)"])
def test_it_works_under_a_cache(cache: str):
    model = unmask.load("toy-transformer(letters=9, width=16, layers=2, seed=3)")
    spec = "search(budget=60, sure=0.9, plausible=0.02, block=4)"
    outputs = unmask.generate(model, ["abc", "fade"], decoder=spec, length=8, cache=cache)
    assert all(0 < output.cost.forward_passes <= 60 for output in outputs)


def test_a_trace_replays_every_frame():
    model = unmask.load("toy-transformer(letters=5, width=16, layers=2, seed=1)")
    frames: list[Frame] = []
    output = unmask.generate(
        model,
        "abc",
        decoder="search(budget=90, sure=0.9, plausible=0.01)",
        length=8,
        trace=True,
        watch=lambda _, frame: frames.append(frame),
    )
    assert output.trace is not None
    for seen, again in zip(frames, output.trace.replay(), strict=True):
        for name in ("tokens", "order", "logp"):
            assert torch.equal(getattr(seen.canvas, name), getattr(again.canvas, name))
    assert len({len(frame.canvas) for frame in frames}) > 2
    assert all(later.step >= earlier.step for earlier, later in pairwise(frames))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("search(budget=0)", "budget must be at least 1, got 0"),
        ("search(width=0)", "width must be at least 1, got 0"),
        ("search(seconds=0)", "seconds must be greater than 0, got 0.0"),
        ("search(seconds=nan)", "seconds must be greater than 0, got nan"),
        ("search(plausible=0)", "plausible must be greater than 0, got 0.0"),
        ("search(plausible=nan)", "plausible must be between 0 and 1, got nan"),
        ("search(likelihood=sums)", "unknown likelihood 'sums': did you mean 'sum'?"),
    ],
)
def test_wrong_settings_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        decoder.make(spec)
    assert sentence in str(refusal.value)


def test_a_budget_that_cannot_reach_every_block_is_refused():
    with pytest.raises(UnmaskError) as refusal:
        decoder.make("search(budget=2, block=8)").resolved(32)
    assert "budget must be at least 4" in str(refusal.value)
