"""Vote and best-of: n samples as rows of one batch, equal to n seeded runs."""

import pytest
import torch

import unmask
from tests.decoders.plain_repair import judged
from tests.oracle import forward_of, plain_likelihood
from unmask.core import Canvas, decode, decoder
from unmask.errors import UnmaskError
from unmask.policies.choice import choose
from unmask.policies.likelihood import likelihood

INNERS = [
    "low-confidence(temperature=0.8)",
    "random(temperature=1.0, block=3)",
    "ots(beams=2, block=3, temperature=1.0)",
    "order-search(beams=2)",
    "threshold(sure=0.5)",
]


@pytest.mark.parametrize("choice", ["majority", "weighted", "score"])
@pytest.mark.parametrize("inner", INNERS)
def test_repeating_equals_choosing_by_hand_over_seeded_runs(inner: str, choice: str):
    model = unmask.load("toy-transformer(letters=3, seed=2)", dtype="float64")
    spec = (
        f"best-of(n=4, inner={inner})"
        if choice == "score"
        else f"vote(n=4, weighted={choice == 'weighted'}, inner={inner})"
    )
    prompts = ["ab", "a"]
    outputs = unmask.generate(model, prompts, decoder=spec, length=6, seed=7)
    for prompt, output in zip(prompts, outputs, strict=True):
        alone = [
            unmask.generate(model, prompt, decoder=inner, length=6, seed=unmask.reseed(7, sample))
            for sample in range(4)
        ]
        if choice == "score":  # best first
            alone.sort(key=lambda one: -one.score)
        assert [row.text for row in output.hypotheses] == [one.text for one in alone]
        assert [row.score for row in output.hypotheses] == [one.score for one in alone]
        assert output.chosen == choose(choice, [one.score for one in alone], [one.text for one in alone])
        assert output.cost.forward_passes == sum(one.cost.forward_passes for one in alone)


@pytest.mark.parametrize("name", ["block", "interleaved(combs=2)", "leave-out(group=4)"])
@pytest.mark.parametrize(
    "inner", ["random(temperature=1.0)", "adaptive(sure=0.6, temperature=1)", "ots(beams=2, block=3)"]
)
def test_samples_are_ranked_by_a_likelihood_of_their_whole_text(inner: str, name: str):
    model = unmask.load("toy-transformer(letters=3, seed=2)", dtype="float64")
    denoiser, length = model.denoiser, 7
    forward, chosen = forward_of(denoiser), plain_likelihood(likelihood.make(name))
    prompts = [[0, 1], [2], [0, denoiser.mask_id, 1]]
    canvas = Canvas.blank(prompts, length, denoiser.mask_id, infill=True, dtype=denoiser.dtype)
    made = decoder.make(f"best-of(n=4, inner={inner}, likelihood={name})")
    for number, result in enumerate(decode(made, denoiser, canvas, seed=7)):
        own = canvas.rows(torch.tensor([number]))
        slots = own.slots[0]
        alone = [decode(decoder.make(inner), denoiser, own, unmask.reseed(7, i))[0] for i in range(4)]
        pad = int(own.pad[0])
        texts = [sample.canvas.tokens[0, pad:] for sample in alone]
        scores = [float(judged(forward, text, slots - pad, chosen, denoiser.mask_id).sum()) for text in texts]
        ranked = sorted(range(4), key=lambda i: -round(scores[i], 9))
        assert result.canvas.tokens[:, pad:].tolist() == [texts[i].tolist() for i in ranked]
        assert result.score == pytest.approx([scores[i] for i in ranked], abs=1e-9)
        extra = likelihood.make(name).forward_passes(slice(0, len(slots)))
        assert result.cost.forward_passes == sum(sample.cost.forward_passes for sample in alone) + 4 * extra


def test_without_a_likelihood_the_text_form_is_what_it_was():
    spec = "best-of(n=2, inner=left-to-right(block=1, steps=none, temperature=1.0))"
    assert decoder.spec(decoder.make(spec)) == spec
    judged = spec[:-1] + ", likelihood=interleaved(combs=2))"
    assert decoder.spec(decoder.make(judged)) == judged
    assert decoder.spec(decoder.make(spec[:-1] + ", likelihood=none)")) == spec


def test_a_vote_costs_n_times_its_samples_and_computes_their_first_step_once():
    model = unmask.load("toy-transformer", dtype="float64")
    output = unmask.generate(
        model, "abc", decoder="vote(n=5, inner=low-confidence(temperature=0.8, steps=4))", length=8
    )
    assert (
        output.cost.forward_passes
        == decoder.make("vote(n=5, inner=low-confidence(steps=4))").max_forward_passes(8)
        == 5 * 4
    )
    assert output.cost.computed <= 1 + 5 * 3
    assert output.cost.calls == 4


def test_a_key_says_what_votes_compare():
    model = unmask.load("toy-transformer(letters=6)")
    spec = "vote(n=7, inner=random(temperature=1.0))"
    output = unmask.generate(model, "ab", decoder=spec, length=6, key=lambda text: text[:1])
    letters = [row.text[:1] for row in output.hypotheses]
    assert output.text[:1] == max(dict.fromkeys(letters), key=letters.count)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("vote(n=0)", "n must be at least 1, got 0"),
        ("vote(weighted=majority)", "takes true or false"),
        ("vote(inner=vote)", "must choose by score"),
        ("vote(inner=low-confidance)", "did you mean 'low-confidence'"),
        ("best-of(likelihood=interleavd)", "did you mean 'interleaved'"),
        ("best-of(n=two)", "takes a whole number"),
        ("order-search(score=visble)", "did you mean 'visible'"),
        ("token-search(beams=0)", "beams must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError, match=sentence.replace("(", r"\(")):
        decoder.make(spec)


@pytest.mark.parametrize("outer", ["best-of", "vote"])
@pytest.mark.parametrize("inner", ["best-of(n=3)", "best-of(n=2, inner=ots(beams=2, block=3, temperature=1.0))"])
def test_repeating_what_is_repeated_equals_choosing_by_hand(outer: str, inner: str):
    model = unmask.load("toy-transformer(letters=12, width=16, layers=2)")
    prompts = ["abc", "a", "dd"]
    outputs = unmask.generate(model, prompts, decoder=f"{outer}(n=2, inner={inner})", length=6, seed=3)
    for prompt, output in zip(prompts, outputs, strict=True):
        alone = [unmask.generate(model, prompt, decoder=inner, length=6, seed=unmask.reseed(3, i)) for i in range(2)]
        if outer == "best-of":
            alone.sort(key=lambda sample: -sample.score)
        assert [(row.text, row.score) for row in output.hypotheses] == [(sample.text, sample.score) for sample in alone]
