"""Log-likelihoods of given texts: which are probabilities, how large the errors are, and the same in any batch."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

import unmask
from tests.models.test_exact_cache import network_of
from tests.models.test_wrap import SIZES, Reader
from tests.oracle import CountedForward
from unmask.bench import reference_loops as plain
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoints.random_weights import random_folder
from unmask.models.families.family import family
from unmask.models.toy import Joint, Letters

ORDERS = ("confidence", "margin", "entropy", "left-to-right")
SCORERS = [f"duel(order={order})" for order in ORDERS]
SCORERS += ["duel(quota=2)", "path", "elbo(n=6)", "block", "interleaved(combs=2)", "leave-out", "random-masks(n=2)"]


def load(name: str) -> Model:
    return unmask.load(name, dtype="float64")


NETWORK = load("toy-transformer(letters=4, width=16, layers=1, sharpness=3)")


def every_text(letters: str, length: int) -> list[str]:
    return ["".join(text) for text in itertools.product(letters, repeat=length)]


def table(model: Model, prompt: str, text: str) -> float:
    """log p of a text after its prompt, from the joint table itself."""
    assert isinstance(model.denoiser, Joint)
    ids = model.text.encode(prompt + text)
    joint = model.denoiser.table(len(ids))
    return float((joint[tuple(ids)] / joint[tuple(ids[: len(prompt)])].sum()).log())


@pytest.mark.parametrize("order", ORDERS)
def test_duel_is_log_p_of_an_exact_model_whatever_the_order(order: str):
    model = load("toy-joint(letters=3, seed=2)")
    texts = every_text("ab.", 4)
    for scored in unmask.score(model, "ab", texts[::3], scorer=f"duel(order={order})"):
        assert scored.logp == pytest.approx(table(model, "ab", scored.text), abs=1e-9)
        assert scored.forward_passes == scored.computed == scored.tokens == 4


@pytest.mark.parametrize("scorer", [*SCORERS[:5], "duel(quota=3)"])
def test_duel_sums_to_one_over_all_texts_of_a_network(scorer: str):
    scores = unmask.score(NETWORK, "ab", every_text("abc.", 3), scorer=scorer, batch=64)
    assert math.fsum(math.exp(scored.logp) for scored in scores) == pytest.approx(1, abs=1e-9)
    assert sum(scored.greedy is True for scored in scores) == 1  # the text that the decoder writes


def test_path_and_leave_out_do_not_sum_to_one():
    for scorer in ("path", "leave-out", "interleaved"):
        scores = unmask.score(NETWORK, "ab", every_text("abc.", 3), scorer=scorer, batch=64)
        assert abs(math.fsum(math.exp(scored.logp) for scored in scores) - 1) > 1e-4


def by_hand(text: list[int], start: int, order: str, quota: int, block: int) -> float:
    """The scorer `duel` written with loops; `path` ranks by the text's own tokens."""
    x, total, mask = torch.tensor(text), 0.0, NETWORK.denoiser.mask_id
    x[start:] = mask
    for first in range(start, len(text), block):
        span = range(first, min(first + block, len(text)))
        while left := [i for i in span if x[i] == mask]:
            p = plain.logits(CountedForward(NETWORK.denoiser), x[None], mask)[0].log_softmax(-1)
            ranks = {
                "confidence": [float(p[i].max()) for i in left],
                "left-to-right": [-i for i in left],
                "path": [float(p[i, text[i]]) for i in left],
            }[order]
            for place in sorted(range(len(left)), key=lambda n: -ranks[n])[:quota]:
                total += float(p[left[place], text[left[place]]])
                x[left[place]] = text[left[place]]
    return total


@pytest.mark.parametrize(("order", "quota", "block"), [("confidence", 1, 7), ("confidence", 2, 3), ("path", 1, 4)])
def test_revealing_step_by_step_equals_plain_loops(order: str, quota: int, block: int):
    scorer = f"path(quota={quota})" if order == "path" else f"duel(order={order}, quota={quota})"
    for scored in unmask.score(NETWORK, "abc", ["abcabca", "cc.ab.b"], scorer=scorer, block=block):
        ids = NETWORK.text.encode("abc" + scored.text)
        assert scored.logp == pytest.approx(by_hand(ids, 3, order, quota, block), abs=1e-9)


def test_the_score_of_a_decoded_text_is_the_decoders_own():
    out = unmask.generate(NETWORK, "ab", decoder="low-confidence(steps=6, block=3)", length=6)
    scored = unmask.score(NETWORK, "ab", list(out.hypotheses[0].ids[2:]), block=3)
    assert (scored.logp, scored.greedy) == (pytest.approx(out.score, abs=1e-9), True)
    for judge in ("interleaved(combs=2)", "random-masks(n=2)", "block", "leave-out(group=2)"):
        spec = f"best-of(n=1, inner=random(temperature=1.0), likelihood={judge})"
        out = unmask.generate(NETWORK, "ab", decoder=spec, length=6)
        again = unmask.score(NETWORK, "ab", list(out.hypotheses[0].ids[2:]), scorer=judge)
        assert again.logp == pytest.approx(out.score, abs=1e-9)


def test_elbo_hides_as_many_as_it_says_and_weighs_them_by_their_number():
    scored = unmask.score(NETWORK, "ab", "c.ab", scorer="elbo(n=40)", block=2)
    assert (scored.forward_passes, scored.block, len(scored.logps)) == (80, 2, 4)
    assert scored.computed == 6  # of two slots: either of them, or both; in each of two blocks
    assert scored.logp == pytest.approx(math.fsum(scored.logps))
    again = unmask.score(NETWORK, "ab", ["c.ab", "bbbb"], scorer="elbo(n=40)", block=2)
    assert again[0] == scored
    assert unmask.score(NETWORK, "ab", "c.ab", scorer="elbo(n=40)", block=2, seed=1).logp != scored.logp


@pytest.mark.slow
def test_elbo_agrees_with_log_p_and_its_error_shrinks_with_the_root_of_n():
    model = load("toy-joint(letters=3, seed=5)")
    prompts, texts = zip(
        *[(a + b, a + c) for a, b, c in itertools.product(*[every_text("ab.", 2)] * 3)][:200], strict=True
    )
    exact = [table(model, prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
    scores = {n: unmask.score(model, list(prompts), list(texts), scorer=f"elbo(n={n})") for n in (64, 1024)}
    for several in scores.values():
        off = [(each.logp - truth) / (each.error or 0) for each, truth in zip(several, exact, strict=True)]
        assert sum(abs(z) <= 3 for z in off) >= 0.98 * len(off)
        assert 0.85 < math.sqrt(sum(z * z for z in off) / len(off)) < 1.15  # the error is neither flattered nor feared
        assert abs(sum(off)) / math.sqrt(len(off)) < 3
    errors = {n: sum(each.error or 0 for each in several) for n, several in scores.items()}
    assert errors[64] / errors[1024] == pytest.approx(4, rel=0.1)


def block_causal() -> Model:
    return Model("sdar", network_of("sdar"), Letters(23), frozenset({22}))


def wrapped() -> Model:
    torch.manual_seed(0)
    settings: Any = {**SIZES, "vocab_size": 33, "max_position_embeddings": 64, "initializer_range": 0.5}
    return unmask.wrap(BertForMaskedLM(BertConfig(**settings)), Reader())


QUICK = {"duel(order=confidence)", "path", "elbo(n=6)", "interleaved(combs=2)"}


@pytest.mark.parametrize(
    "scorer", [scorer if scorer in QUICK else pytest.param(scorer, marks=pytest.mark.slow) for scorer in SCORERS]
)
@pytest.mark.parametrize("model", [block_causal(), wrapped(), unmask.load("toy-transformer")], ids=lambda m: m.name)
def test_every_way_is_the_same_alone_and_in_a_batch(model: Model, scorer: str):
    prompts, texts = ["a", "abcabcab", "cab"], ["abc", "ca", "bcabcaab" + "c" * 9 * (scorer not in QUICK)]
    for scored in unmask.score(model, prompts, texts, scorer=scorer):
        alone = unmask.score(model, scored.prompt, scored.text, scorer=scorer, batch=1)
        assert (alone.logps, alone.error, alone.forward_passes) == (scored.logps, scored.error, scored.forward_passes)
        assert alone.computed == scored.computed


@pytest.mark.slow
@pytest.mark.parametrize("name", list(family))
def test_every_family_scores_the_same_in_a_batch_and_its_own_texts_as_their_decoder(name: str, tmp_path: Path):
    random_folder(tmp_path / name, name, "nano", seed=0, dtype=torch.float32)
    model = unmask.load(tmp_path / name, dtype="float32")
    prompts, texts = ["hello there", "a"], ["one two three", "x"]
    for scorer in ("duel", "elbo(n=4)", "interleaved(combs=2)"):
        for scored in unmask.score(model, prompts, texts, scorer=scorer):
            alone = unmask.score(model, scored.prompt, scored.text, scorer=scorer)
            assert (alone.logps, alone.error) == (scored.logps, scored.error)
    decoded = unmask.generate(model, "hello", decoder="low-confidence(steps=6)", length=6)
    ids = list(decoded.hypotheses[0].ids)
    again = unmask.score(model, ids[:-6], ids[-6:])
    assert (again.greedy, again.logp) == (True, pytest.approx(decoded.score, abs=1e-4))


def test_a_block_causal_model_is_scored_by_its_own_blocks():
    model = block_causal()
    scored = unmask.score(model, "abc", "bcabca", scorer="duel")
    assert scored.block == 4
    decoded = unmask.generate(model, "abc", decoder="low-confidence(steps=6)", length=6)
    again = unmask.score(model, "abc", list(decoded.hypotheses[0].ids[3:]))
    assert (again.greedy, again.logp) == (True, pytest.approx(decoded.score, abs=1e-5))
    blind = [unmask.score(model, "abc", "bcabca", scorer=scorer).logp for scorer in ("block", "future-masked")]
    assert blind[0] == pytest.approx(blind[1], abs=1e-5)  # it sees no future


def test_a_length_fills_up_with_end_of_text_and_an_empty_prompt_is_allowed():
    filled = unmask.score(NETWORK, "ab", "ca", length=4)
    assert (filled.tokens, filled.text) == (4, "ca")
    assert filled.logps == unmask.score(NETWORK, "ab", "ca..").logps
    assert unmask.score(NETWORK, "", "ca", scorer="block").forward_passes == 1


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("ab", "c"), {"scorer": "duell"}, "unknown scorer 'duell': did you mean 'duel'?"),
        (("ab", "c"), {"scorer": "duel(order=up)"}, "duel(order=…) cannot be 'up': known: confidence, entropy, left-"),
        (("ab", "c"), {"scorer": "elbo(n=1)"}, "n must be at least 2, got 1"),
        (("ab", "c"), {"scorer": "sum(first=path)"}, "sum(first=path, second=interleaved(combs=3)) needs the order"),
        (("ab", ""), {}, "the text is empty: give at least one token to score"),
        (("ab", "a_"), {}, "a text to score must not contain the mask token (id 4)"),
        (("ab", "abc"), {"length": 2}, "the text is 1 tokens longer than the length"),
        (("ab", "abc"), {"block": 0}, "block must be at least 1, got 0"),
        (("ab", "abc"), {"batch": 0}, "batch must be at least 1, got 0"),
        ((["ab", "b"], ["abc"]), {}, "1 texts need 1 or 1 prompts, got 2"),
        (("ab", "b" * 2000), {}, "prompt and answer need 2002 positions, the model takes 1024"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments: tuple[Any, Any], options: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        unmask.score(NETWORK, *arguments, **options)
    assert str(refusal.value).startswith(sentence)


def test_the_command_scores_texts_and_names_the_best(command):
    code, out, _ = command("score", "abc", "de", "fg", "-m", "toy-chain", "--json")
    told = json.loads(out)
    scores = [unmask.score("toy-chain", "abc", text).logp for text in ("de", "fg")]
    assert (code, told["best"]) == (0, scores.index(max(scores)))
    assert [each["logp"] for each in told["scores"]] == scores
    code, out, _ = command("score", "abc", "de", "-m", "toy-chain", "--scorer", "elbo(n=9)")
    assert code == 0
    assert " ± " in out
    assert command("score", "abc", "de", "-m", "toy-chain", "-w", "elbow")[::2] == (
        2,
        "unmask: unknown scorer 'elbow': did you mean 'elbo'?\n",
    )
