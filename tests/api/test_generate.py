"""unmask.generate, stream and fill: prompts of every kind in, texts with rows, scores and cost out."""

import io
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

import unmask
from unmask.core import Canvas, decode, decoder
from unmask.decoders import LowConfidence
from unmask.models.wrappers import Guided

CHAIN = "toy-chain(seed=1)"
VARYING: dict[str, Any] = {"calls": 0, "seconds": 0.0, "memory": 0, "batch_seconds": 0.0}


@pytest.fixture(scope="module")
def chain() -> unmask.Model:
    return unmask.load(CHAIN)


@pytest.fixture(scope="module")
def transformer() -> unmask.Model:
    return unmask.load("toy-transformer(letters=6)", dtype="float64")


ALONE = """
import sys, unmask
assert "torch" not in sys.modules
dir(unmask)
chain = unmask.load("toy-chain")
assert "torch" in sys.modules

# Types are not checked here as they are under test: the refusals are our own.
for prompt, settings, sentence in [
    (7, {}, "got int"),
    (None, {}, "got NoneType"),
    ([None], {}, "got NoneType"),
    ([["abc"]], {}, "got list"),
    ("abc", {"length": 4.0}, "length must be an integer"),
    ("abc", {"seed": "x"}, "seed must be an integer"),
    ("abc", {"guidance": "much"}, "guidance must be a number"),
    ("abc", {"stop": [7]}, "stop strings must be text"),
    ("abc", {"stop": 7}, "stop must be a text"),
    ("abc", {"guidance": True}, "guidance must be a number"),
    ("abc", {"temperature": 0.7}, "such as decoder='low-confidence(temperature=…)'"),
    ("abc", {"max_new_tokens": 7}, "did you mean 'length'"),
    ("abc", {"decoder": 7}, "got int"),
    ("abc", {"batch": "x"}, "batch must be an integer"),
]:
    try:
        unmask.generate(chain, prompt, **settings)
    except unmask.UnmaskError as error:
        assert sentence in str(error), (sentence, error)
    else:
        raise AssertionError(sentence)
for model in (None, 7, chain.denoiser):
    try:
        unmask.generate(model, "abc")
    except unmask.UnmaskError as error:
        assert "what unmask.load and unmask.wrap return" in str(error)
    else:
        raise AssertionError(model)

import numpy
exact = unmask.generate(chain, "abc", length=numpy.int64(4), seed=numpy.int32(1), stop=None)
assert exact.settings == unmask.generate(chain, "abc", length=4, seed=1).settings
assert type(exact.settings["seed"]) is int
"""


def test_importing_unmask_does_not_import_torch_and_wrong_types_are_refused():
    subprocess.run([sys.executable, "-c", ALONE], check=True)


def test_every_exported_name_is_there():
    for name in unmask.__all__:
        assert getattr(unmask, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        unmask.generat  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_generate_makes_no_decoder_but_its_own_and_reads_each_file_once(monkeypatch: pytest.MonkeyPatch):
    made, opened, read = set(), Counter[str](), io.open

    def counted(path, *options, **more):
        opened[str(path)] += "tiny_weights" in str(path)
        return read(path, *options, **more)

    for kind in map(decoder.find, decoder):

        def note(self, *values, _init=kind.__init__, **more):
            made.add(type(self))
            _init(self, *values, **more)

        monkeypatch.setattr(kind, "__init__", note)
    monkeypatch.setattr(io, "open", counted)
    unmask.generate("tiny", "Numbers: [3, 5]", decoder="search", length=8)
    assert made == {decoder.find("search")}
    assert set(opened.values()) - {0} == {1}


def test_text_messages_and_ids_are_one_prompt_and_lists_of_them_are_many(chain):
    ids = chain.text.encode("abc")
    message = [{"role": "user", "content": "abc"}]
    alone = unmask.generate(chain, "abc", length=6)
    assert unmask.generate(chain, ids, length=6).text == alone.text
    assert unmask.generate(chain, message, length=6).text == alone.text
    assert unmask.generate(CHAIN, "abc", length=6).text == alone.text
    for many in (["abc", "b"], [message, [{"role": "user", "content": "b"}]], [ids, chain.text.encode("b")]):
        outputs = unmask.generate(chain, many, length=6)
        assert isinstance(outputs, list)
        assert outputs[0].text == alone.text
        assert len(outputs) == 2


def test_an_output_carries_its_rows_scores_cost_and_settings(chain):
    output = unmask.generate(chain, "abc", decoder="ots(beams=3, block=4)", length=8, seed=5)
    assert output.hypotheses[output.chosen].text == output.text
    assert output.hypotheses[output.chosen].score == output.score == max(row.score for row in output.hypotheses)
    assert output.cost.forward_passes == decoder.make("ots(beams=3, block=4)").max_forward_passes(8)
    assert output.decoder == (
        "order-token-search(beams=3, block=4, steps=4, temperature=0.4, interval=none, likelihood=block, samples=1, "
        "sure=none)"
    )
    assert output.seed == output.settings["seed"] == 5
    assert output.trace is None
    again = unmask.generate(chain, "abc", decoder=output.decoder, length=8, seed=output.seed)
    assert [row.ids for row in again.hypotheses] == [row.ids for row in output.hypotheses]


def test_a_decoder_may_be_an_object_and_the_length_the_models_own(chain):
    output = unmask.generate(chain, "abc", decoder=LowConfidence(temperature=0.5))
    assert len(output.hypotheses[0].ids) == 3 + chain.default_length


def test_results_do_not_depend_on_the_batch(transformer):
    prompts = ["ab", "abcde", "a", "cc"]
    one = unmask.generate(transformer, prompts, decoder="ots(beams=2)", length=6, batch=1)
    all_ = unmask.generate(transformer, prompts, decoder="ots(beams=2)", length=6, batch=16)
    assert [output.hypotheses for output in one] == [output.hypotheses for output in all_]


def test_the_text_ends_at_the_first_end_of_text_and_at_stop_strings(chain):
    output = unmask.generate(chain, "abc", decoder="left-to-right(temperature=3.0)", length=30, seed=2)
    whole = chain.text.decode(output.hypotheses[0].ids[3:])
    assert "." in whole
    assert output.text == whole.partition(".")[0]
    middle = output.text[2]
    cut = unmask.generate(
        chain, "abc", decoder="left-to-right(temperature=3.0)", length=30, seed=2, stop=["zz", middle]
    )
    assert cut.text == output.text.partition(middle)[0]


@pytest.mark.parametrize("temperature", [0.0, 3.0])
def test_suppression_works_at_any_temperature(chain, temperature: float):
    def ends(suppress: bool) -> int:
        outputs = [
            unmask.generate(
                chain, "abc", decoder=f"random(temperature={temperature})", length=24, seed=seed, suppress=suppress
            )
            for seed in range(6)
        ]
        return sum(chain.text.decode(output.hypotheses[0].ids).count(".") for output in outputs)

    assert ends(suppress=True) == 0
    if temperature:
        assert ends(suppress=False) > 0


def test_guidance_doubles_the_rows_and_masks_what_was_given(transformer):
    plain = unmask.generate(transformer, ["abc", "e"], decoder="ots(beams=2)", length=6)
    guided = unmask.generate(transformer, ["abc", "e"], decoder="ots(beams=2)", length=6, guidance=2.0)
    assert [output.cost.forward_passes for output in guided] == [2 * output.cost.forward_passes for output in plain]
    assert guided[0].settings["guidance"] == 2.0
    canvas = Canvas.blank([[1, 2, 3], [4]], 4, 6, dtype=torch.float64)
    hidden = Canvas.blank([[6, 6, 6], [6]], 4, 6, infill=True, dtype=torch.float64)
    at = canvas.slots
    adapter = Guided(transformer.denoiser, canvas.real & ~canvas.masked, 2.0)
    given, not_given = (transformer.denoiser(one, at).logits(torch.arange(8)) for one in (canvas, hidden))
    expected = not_given + 3.0 * (given - not_given)
    found = adapter(canvas, at).logits(torch.arange(8))
    assert torch.allclose(found[:, :6], expected[:, :6])


def test_early_end_costs_less_and_gives_the_same_in_any_batch(chain):
    settings = {"decoder": "left-to-right(temperature=3.0)", "length": 40, "seed": 2}
    prompts = ["abc", "d", "gg"]
    full = unmask.generate(chain, prompts, **settings)
    short = unmask.generate(chain, prompts, early_end=True, **settings)
    assert [output.text for output in short] == [output.text for output in full]  # left to right nothing looks ahead
    assert sum(output.cost.forward_passes for output in short) < sum(output.cost.forward_passes for output in full)
    assert all(output.settings["early_end"] for output in short)
    for prompt, output in zip(prompts, short, strict=True):
        alone = unmask.generate(chain, prompt, early_end=True, **settings)
        assert alone.hypotheses == output.hypotheses
        assert alone.cost.forward_passes == output.cost.forward_passes


PATHS = ["low-confidence(block=4, temperature=2)", "left-to-right(temperature=2)", "dream(temperature=2)"]
PATHS += ["adaptive(block=4, temperature=2)", "threshold(block=4)"]


@pytest.mark.parametrize("spec", PATHS)
def test_a_single_path_computes_nothing_after_a_stop_string(chain, spec: str):
    settings: dict[str, Any] = {"decoder": spec, "length": 24, "suppress": True}
    prompts = ["abc", "d", "gg"]
    full = unmask.generate(chain, prompts, **settings)
    stops = ("ab", "ga", full[0].text[3:5], full[1].text[:6] + "?")  # the last is never completed
    short = unmask.generate(chain, prompts, stop=stops, **settings)
    for prompt, whole, output in zip(prompts, full, short, strict=True):
        cuts = [whole.text.find(stop) for stop in stops if stop in whole.text]
        assert output.text == whole.text[: min(cuts, default=None)]
        assert output.finish_reason == ("stop" if cuts else whole.finish_reason)
        alone = unmask.generate(chain, prompt, stop=stops, **settings)
        assert (alone.hypotheses, alone.cost.forward_passes) == (output.hypotheses, output.cost.forward_passes)
    assert sum(output.cost.forward_passes for output in short) < sum(output.cost.forward_passes for output in full)


@pytest.mark.parametrize("spec", ["ots(beams=2)", "best-of(n=2)", "vote(n=2)", "repair(rounds=1)", "search(budget=20)"])
def test_where_scores_decide_a_stop_string_only_cuts(chain, spec: str):
    full = unmask.generate(chain, "abc", decoder=spec, length=12)
    short = unmask.generate(chain, "abc", decoder=spec, length=12, stop=full.text[:2])
    assert short.text == ""
    assert (short.score, short.cost.forward_passes) == (full.score, full.cost.forward_passes)


def test_a_stop_string_that_began_earlier_may_still_be_completed(chain):
    settings: dict[str, Any] = {"decoder": "left-to-right(temperature=2)", "length": 12, "suppress": True}
    text = unmask.generate(chain, "abc", **settings).text
    stops = [text[1:3], text[:6]]  # the first is complete before the second, which begins earlier
    assert text.find(stops[0]) == 1
    assert unmask.generate(chain, "abc", stop=stops, **settings).text == ""


def test_a_gap_of_the_prompt_is_filled_before_a_stop_string_ends_a_path(chain):
    settings: dict[str, Any] = {"decoder": "low-confidence(block=4, temperature=2)", "length": 12, "suppress": True}
    full = unmask.fill(chain, "ab<mask:3>cd", **settings)
    short = unmask.fill(chain, "ab<mask:3>cd", stop=(stop := full.text[9:11]), **settings)
    assert short.text == full.text[:7] + full.text[7:].partition(stop)[0]
    assert short.cost.forward_passes < full.cost.forward_passes


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["prefix", "dual"])
@pytest.mark.parametrize("more", [{"guidance": 1.5}, {"early_end": True}, {"suppress": True}, {"stop": ("ab",)}])
def test_a_cache_stands_under_every_other_setting_and_changes_no_batch(cache, more):
    model = unmask.load("toy-transformer(letters=3, seed=1)")
    prompts = ["abba", "b", "aab"]
    for spec in ("ots(beams=3, block=4, temperature=1, likelihood=all-blocks)", "ots(beams=2, block=1)", "threshold"):
        settings: dict[str, Any] = {"decoder": spec, "length": 12, "cache": cache, **more}
        together = unmask.generate(model, prompts, **settings)
        for prompt, output in zip(prompts, together, strict=True):
            alone = unmask.generate(model, prompt, **settings)
            assert alone.hypotheses == output.hypotheses
            assert replace(alone.cost, **VARYING) == replace(output.cost, **VARYING)
            assert output.settings["cache"] == cache
            exactly: dict[str, Any] = settings | {"cache": "none"}
            plain = unmask.generate(model, prompt, **exactly)
            assert output.cost.positions / output.cost.computed <= plain.cost.positions / plain.cost.computed


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_gaps_are_filled_and_moments_streamed_under_a_cache(cache):
    model = unmask.load("toy-transformer(letters=9, seed=1)")
    text = "ab<mask:5>cd<mask:3>e"
    settings: dict[str, Any] = {"decoder": "ots(beams=2, block=3, temperature=1)", "cache": cache, "suppress": True}
    both = unmask.fill(model, [text, "h<mask:2>"], length=6, **settings)
    assert [output.text for output in both] == [
        unmask.fill(model, one, length=6, **settings).text for one in (text, "h<mask:2>")
    ]
    assert both[0].text[:2] == "ab"
    assert both[0].text[7:9] == "cd"
    moments = list(unmask.stream(model, "abc", length=6, **settings))
    assert moments[-1].text == unmask.generate(model, "abc", length=6, **settings).text


def test_a_trace_says_how_many_positions_each_row_wrote_at_each_step():
    model = unmask.load("toy-chain(letters=4, sharpness=4)")
    output = unmask.generate(model, "abc", decoder="ots(beams=2, block=8, steps=8, sure=0.5)", length=16, trace=True)
    assert output.trace is not None
    writes = output.trace.writes()
    assert len(writes) < 8
    assert sum(map(max, writes)) == 16
    assert writes[-1] == [2, 2]


@pytest.mark.parametrize("spec", list(decoder))
def test_early_end_works_under_every_decoder(spec: str):
    model = unmask.load("toy-transformer(letters=3, seed=1)")
    output = unmask.generate(model, "ab", decoder=spec, length=12, early_end=True)
    full = unmask.generate(model, "ab", decoder=spec, length=12)
    assert output.cost.forward_passes <= full.cost.forward_passes
    for row in output.hypotheses:
        assert model.denoiser.mask_id not in row.ids


def test_streaming_shows_every_step_and_ends_where_generate_does(chain):
    moments = list(unmask.stream(chain, "abc", decoder="ots(beams=2, block=4)", length=8))
    output = unmask.generate(chain, "abc", decoder="ots(beams=2, block=4)", length=8)
    assert [moment.step for moment in moments] == [1, 2, 3, 4]
    assert moments[0].text.count("░") == 6
    assert moments[-1].text.partition(".")[0] == output.text
    many = list(unmask.stream(chain, ["abc", "a"], decoder="low-confidence", length=4))
    assert len(many[-1].texts) == 2


def test_filling_touches_only_the_gaps(chain):
    output = unmask.fill(chain, "ab<mask:3>cd<mask>", decoder="low-confidence(block=2)")
    assert output.text.startswith("ab")
    assert "cd" in output.text
    assert len(output.hypotheses[0].ids) == 8
    assert output.hypotheses[0].ids[:2] + output.hypotheses[0].ids[5:7] == (0, 1, 2, 3)
    more = unmask.fill(chain, "ab<mask:3>", length=4)
    assert len(more.hypotheses[0].ids) == 2 + 3 + 4


def test_filling_one_exact_gap_finds_the_likeliest_letter():
    model = unmask.load("toy-joint(letters=4)")
    output = unmask.fill(model, "ab<mask>a", decoder="low-confidence")
    table = model.denoiser.table(4)  # type: ignore[attr-defined]
    assert output.hypotheses[0].ids[2] == int(table[0, 1, :, 0].argmax())


def test_the_driver_takes_what_the_api_does(chain):
    """Evaluation lines may call decode themselves: the same rows come out."""
    canvas = Canvas.blank([chain.text.encode("abc")], 6, chain.denoiser.mask_id, dtype=chain.denoiser.dtype)
    [found] = decode(decoder.make("search"), chain.denoiser, canvas, seed=3)
    output = unmask.generate(chain, "abc", length=6, seed=3)
    assert [tuple(row) for row in found.canvas.tokens.tolist()] == [row.ids for row in output.hypotheses]


@pytest.mark.parametrize(
    ("prompt", "settings", "sentence"),
    [
        ("", {}, "the prompt is empty"),
        ([], {}, "give at least one prompt"),
        (b"abc", {}, "got bytes: decode it first"),
        (7, {}, "got int"),
        ({"role": "user"}, {}, "got dict"),
        (torch.zeros(1, 1, 1).int(), {}, "1 or 2 dimensions, got 3"),
        (torch.zeros(2), {}, "must be integers .* got 1 of torch.float32"),
        ([1, "a"], {}, r"must be integers, got 'a' \(number 1 of 2\)"),
        ([0, 99], {}, r"token id 99 \(number 1 of 2\)"),
        ([[0], [0, 1, -1]], {}, r"prompt 1: token id -1 \(number 2 of 3\)"),
        (["abc", "xyz"], {}, "prompt 1: the toy model cannot read 'x'"),
        (["abc", "a" * 2000], {"length": 4}, "prompt 1: prompt and answer need 2004 positions"),
        ([{"role": "usr", "content": "a"}], {}, "unknown role 'usr'"),
        ([{"content": "a"}], {}, "must have a role"),
        ("a<mask:3>", {}, "use fill"),
        ("a_", {}, "use fill"),
        ("abc", {"length": 0}, "length must be at least 1"),
        ("abc", {"length": 5000}, "shorten the length by"),
        ("abc", {"decoder": "low-confidance"}, "did you mean 'low-confidence'"),
        ("abc", {"decoder": "ots(beam=4)"}, "did you mean 'beams'"),
        ("abc", {"decoder": "ots(beams=four)"}, "takes a whole number"),
        ("abc", {"guidance": -1.0}, "guidance must be at least 0"),
        ("abc", {"stop": ""}, "stop strings must be"),
        ("abc", {"suppress": True, "early_end": True}, "choose one"),
        ("abc", {"batch": 0}, "batch must be at least 1"),
        (["abc", "a"], {"trace": "x.jsonl"}, "one prompt"),
        ("abc", {"trace": "/no/such/folder/x.jsonl"}, "there is no folder"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(chain, prompt, settings: dict, sentence: str):
    with pytest.raises(unmask.UnmaskError, match=sentence) as refused:
        unmask.generate(chain, prompt, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("abc", "has no gap"),
        ("a<mask:0>", "is not a gap"),
        ("a<mask:x>b", "is not a gap"),
        ("a<mask:-1>", "is not a gap"),
    ],
)
def test_gaps_that_are_none_are_refused(chain, prompt: str, sentence: str):
    with pytest.raises(unmask.UnmaskError, match=sentence):
        unmask.fill(chain, prompt)


@pytest.mark.parametrize(
    ("function", "name", "hint"),
    [
        (unmask.generate, "lenght", "did you mean 'length'"),
        (unmask.generate, "tarce", "did you mean 'trace'"),
        (unmask.fill, "early_end", "known: batch, cache"),
        (unmask.stream, "sede", "did you mean 'seed'"),
        (unmask.load, "dtpe", "did you mean 'dtype'"),
        (unmask.score, "blok", "did you mean 'block'"),
        (unmask.wrap, "mask", "did you mean 'mask_id'"),
    ],
)
def test_an_unknown_argument_is_answered_with_the_nearest(chain, function, name: str, hint: str):
    with pytest.raises(unmask.UnmaskError, match=f"unknown argument '{name}': {hint}"):
        function(chain, "a<mask:2>", **{name: 1})
