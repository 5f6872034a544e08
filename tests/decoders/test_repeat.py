"""Vote and best-of: n samples as rows of one batch, equal to n seeded runs."""

import pytest
import torch

import unmask
from tests.decoders.examples import run, texts
from tests.decoders.plain_loops import judged
from tests.oracle import CountedForward, plain_likelihood
from unmask.core import decoder
from unmask.models.load import load
from unmask.policies.choice import choose
from unmask.policies.likelihood import likelihood

INNERS = [
    "low-confidence(temperature=0.8)",
    "random(temperature=1.0, block=3)",
    "ots(beams=2, block=3, temperature=1.0)",
    "order-search(beams=2)",
    "threshold(sure=0.5)",
    "best-of(n=3)",
    "best-of(n=2, inner=ots(beams=2, block=3, temperature=1.0))",
]


@pytest.mark.parametrize(
    "outer", ["vote(n=4, inner={})", "vote(n=4, weighted=true, inner={})", "best-of(n=4, inner={})"]
)
@pytest.mark.parametrize("inner", INNERS)
def test_repeating_equals_choosing_by_hand_over_seeded_runs(inner: str, outer: str):
    model = unmask.load("toy-transformer(letters=3, seed=2)", dtype="float64")
    prompts = ["ab", "a"]
    outputs = unmask.generate(model, prompts, decoder=outer.format(inner), length=6, seed=7)
    choice = "score" if outer.startswith("best") else "weighted" if "weighted" in outer else "majority"
    for prompt, output in zip(prompts, outputs, strict=True):
        seeds = [unmask.reseed(7, sample) for sample in range(4)]
        alone = [unmask.generate(model, prompt, decoder=inner, length=6, seed=seed) for seed in seeds]
        if choice == "score":  # best first
            alone.sort(key=lambda one: -one.score)
        assert [(row.text, row.score) for row in output.hypotheses] == [(one.text, one.score) for one in alone]
        assert output.chosen == choose(choice, [one.score for one in alone], [one.text for one in alone])
        assert output.cost.forward_passes == sum(one.cost.forward_passes for one in alone)


@pytest.mark.parametrize("name", ["block", "interleaved(combs=2)", "leave-out(group=4)"])
@pytest.mark.parametrize(
    "inner", ["random(temperature=1.0)", "adaptive(sure=0.6, temperature=1)", "ots(beams=2, block=3)"]
)
def test_samples_are_ranked_by_a_likelihood_of_their_whole_text(inner: str, name: str):
    forward = CountedForward(load("toy-transformer(letters=3, seed=2)", dtype="float64").denoiser)
    mask, chosen = forward.denoiser.mask_id, plain_likelihood(likelihood.make(name))
    prompts = [[0, 1], [2], [0, mask, 1]]
    results = run(f"best-of(n=4, inner={inner}, likelihood={name})", forward.denoiser, prompts, 7, seed=7)
    for prompt, result in zip(prompts, results, strict=True):
        slots = (torch.tensor([*prompt, *[mask] * 7]) == mask).nonzero()[:, 0]
        alone = [run(inner, forward.denoiser, [prompt], 7, unmask.reseed(7, i))[0] for i in range(4)]
        samples = [torch.tensor(rows[0]) for rows in texts(alone)]
        forward.rows = sum(sample.cost.forward_passes for sample in alone)
        scores = [float(judged(forward, sample, slots, chosen, mask).sum()) for sample in samples]
        ranked = sorted(range(4), key=lambda i: -round(scores[i], 9))
        assert texts([result]) == [[samples[i].tolist() for i in ranked]]
        assert result.score == pytest.approx([scores[i] for i in ranked], abs=1e-9)
        assert result.cost.forward_passes == forward.rows


def test_without_a_likelihood_the_text_form_is_what_it_was():
    spec = "best-of(n=2, inner=left-to-right(block=1, steps=none, temperature=1.0))"
    assert decoder.spec(decoder.make(spec)) == spec
    judged = spec[:-1] + ", likelihood=interleaved(combs=2))"
    assert decoder.spec(decoder.make(judged)) == judged
    assert decoder.spec(decoder.make(spec[:-1] + ", likelihood=none)")) == spec


def test_a_vote_costs_n_times_its_samples_and_computes_their_first_step_once():
    model = unmask.load("toy-transformer", dtype="float64")
    spec = "vote(n=5, inner=low-confidence(temperature=0.8, steps=4))"
    output = unmask.generate(model, "abc", decoder=spec, length=8)
    assert output.cost.forward_passes == decoder.make(spec).max_forward_passes(8) == 5 * 4
    assert output.cost.computed <= 1 + 5 * 3
    assert output.cost.calls == 4


def test_a_key_says_what_votes_compare():
    model = unmask.load("toy-transformer(letters=6)")
    spec = "vote(n=7, inner=random(temperature=1.0))"
    output = unmask.generate(model, "ab", decoder=spec, length=6, key=lambda text: text[:1])
    letters = [row.text[:1] for row in output.hypotheses]
    assert output.text[:1] == max(dict.fromkeys(letters), key=letters.count)
