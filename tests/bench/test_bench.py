"""The benchmark: turns, counts, tokens, ratios and refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from unmask.bench.cases import Plan, Sizes, read_sweep
from unmask.bench.contenders import CONTENDERS, choose, fitting
from unmask.bench.measurement import Measurement
from unmask.bench.report import SAVINGS, power, ratio, spread
from unmask.bench.run import BenchmarkRun
from unmask.bench.subject import Subject
from unmask.errors import UnmaskError
from unmask.models import load
from unmask.models.checkpoints.random_weights import random_denoiser, random_shape, shape_names

CPU = torch.device("cpu")
USUAL = fitting(choose((), CPU), block_causal=False)
SMALL = Sizes(problems=2, prompt=5, length=8, block=4, beams=2)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject.of_shape("llada-nano", "cpu", "float32")


@pytest.fixture(scope="module")
def measured(subject: Subject) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    shown: list[str] = []
    saved: list[dict[str, Any]] = []
    plan = Plan(SMALL, USUAL, (("beams", (2, 3)), ("problems", (1, 2))), repeat=2, watched=1)
    return BenchmarkRun(plan, subject, shown.append, saved.append, note="a note").run(), shown, saved


def trial(results: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trial for trial in results["trials"] if trial["name"] == name)


def test_contenders_take_turns_and_everyone_is_warmed_up_first(measured):
    shown = [line.partition(":") for line in measured[1]]
    compared = [(name, "warmed" in text) for name, _, text in shown if name in USUAL]
    first = [(name, warm) for name in USUAL for warm in (True, False)]
    assert compared == first + [(name, False) for name in USUAL]
    swept = [name for name, _, text in shown if "@beams" in name and "warmed" not in text]
    assert swept == ["ots-cached@beams=3", "ots@beams=3"] * 2


def test_exact_contenders_write_the_plain_loops_tokens(measured):
    results = measured[0]
    assert set(results["same_tokens"]) == set(USUAL) - {"plain-path", "plain-ots"}
    exact = {name: count for name, count in results["same_tokens"].items() if CONTENDERS[name].kind != "approximate"}
    assert all(count == {"same": 2, "problems": 2} for count in exact.values()), exact


def test_results_are_saved_after_every_run_and_are_plain_json(measured):
    results, _, saved = measured
    runs = [sum(trial["seconds"]["n"] for trial in results["trials"]) for results in saved]
    assert runs == sorted(runs)
    assert runs[0] == 1
    assert json.loads(json.dumps(results, allow_nan=False))["note"] == "a note"
    assert not [trial["error"] for trial in results["trials"] if trial["error"]]


def test_the_plain_search_computes_the_published_number_of_rows_and_merging_saves_some(measured):
    results = measured[0]
    steps, searches, beams = 4, 2, 2
    whole = 2 * (steps * beams + searches * beams**2)
    assert trial(results, "plain-ots")["forward_passes"] == trial(results, "ots-unmerged")["forward_passes"] == whole
    assert trial(results, "ots")["forward_passes"] < whole
    assert trial(results, "plain-ots")["positions"] == trial(results, "plain-ots")["logits"] == whole * 13
    assert trial(results, "ots-whole-head")["logits"] == whole * 13
    assert trial(results, "ots-unmerged")["logits"] < whole * 13


def test_time_is_split_into_denoising_and_scoring(measured):
    for name, scored in (("ots", True), ("path", False)):
        split = trial(measured[0], name)["split"]
        assert split["steps"] == 4
        assert split["denoising"]["median"] > 0
        assert (split["scoring"]["median"] > 0) is scored
        whole = split["denoising"]["median"] + split["scoring"]["median"]
        assert whole <= trial(measured[0], name)["seconds"]["high"]


def test_ratios_divide_seconds_per_problem(measured):
    results = measured[0]
    plain, ours = (trial(results, name)["seconds"]["all"] for name in ("plain-ots", "ots"))
    by_round = [a / b for a, b in zip(plain, ours, strict=True)]
    assert results["ratios"]["plain-ots / ots"] == spread(by_round)
    alone = trial(results, "ots@problems=1")["seconds"]["all"]
    assert results["ratios"]["ots / ots@problems=1"]["median"] == pytest.approx(
        sum(b / 2 / a for a, b in zip(alone, ours, strict=True)) / 2
    )


def test_the_shares_of_the_savings_add_up_to_one(measured):
    results = measured[0]
    assert [name for name in SAVINGS if name not in CONTENDERS] == []
    assert math.fsum(saving["share"] for saving in results["savings"]) == pytest.approx(1.0)


def test_a_sweep_includes_the_point_of_the_comparison(measured):
    beams = next(fit for fit in measured[0]["growth"] if (fit["axis"], fit["what"]) == ("beams", "seconds"))
    assert [x for x, _ in beams["points"]] == [2, 2, 3, 3]
    assert beams["n"] == 4


def test_a_known_exponent_is_recovered_with_its_error():
    xs = [1.0, 2.0, 4.0, 8.0]
    assert power([(x, 3 * x**1.5) for x in xs]) == {"exponent": pytest.approx(1.5), "error": pytest.approx(0), "n": 4}
    noisy = power([(x, x * wobble) for x in xs for wobble in (0.9, 1.1)])
    assert noisy is not None
    assert noisy["exponent"] == pytest.approx(1.0)
    assert 0.01 < noisy["error"] < 0.2
    assert power([(2.0, 1.0), (2.0, 1.1)]) is None
    assert power([(1.0, 1.0), (2.0, 4.0)]) == {"exponent": pytest.approx(2.0), "error": None, "n": 2}


def test_ratios_of_unequal_numbers_of_rounds_take_medians():
    assert ratio([2.0, 4.0, 6.0], [2.0]) == {"median": 2.0, "low": 1.0, "high": 3.0, "n": 1}


def test_flops_are_those_torch_counts(subject: Subject):
    shape = subject.network.module.shape
    # Torch only counts attention's products in its unfused form.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.inference_mode():
        subject.forward(torch.zeros(2, 16, dtype=torch.long))
    run = Measurement(CPU, positions=2 * 16, pairs=2 * 16**2, logits=2 * 16)
    assert run.flops(shape) == counter.get_total_flops()


def test_at_8b_a_position_costs_two_operations_per_weight():
    shape = random_shape("llada", "8b")
    weights = shape.parameters - shape.vocab * shape.width  # the embedding is looked up
    run = Measurement(CPU, positions=416, pairs=416**2, logits=416)
    assert run.flops(shape) == pytest.approx(2 * weights * 416, rel=0.03)


def test_agreement_in_float32_is_complete(measured):
    agreement = measured[0]["agreement"]["ots"]
    assert agreement["equal_draws"] == agreement["draws"] == 2 * 8
    assert agreement["largest_log_p_difference"] < 1e-4


def test_nothing_starts_after_the_limit(subject: Subject):
    results = BenchmarkRun(Plan(SMALL, ("path", "ots"), limit=0.0), subject).run()
    assert results["trials"] == []
    assert results["ratios"] == {}


def test_a_contender_that_fails_is_named_and_the_others_go_on(subject: Subject, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("no kernel for this\nand a long story")

    broken = {**CONTENDERS, "path": CONTENDERS["path"].__class__("broken", "exact", fail)}  # type: ignore[arg-type]
    monkeypatch.setattr("unmask.bench.run.CONTENDERS", broken)
    results = BenchmarkRun(Plan(SMALL, ("path", "ots"), repeat=1), subject).run()
    assert trial(results, "path")["error"] == "RuntimeError: no kernel for this"
    assert trial(results, "ots")["seconds"]["n"] == 1


def test_input_that_no_contender_can_run_is_refused_at_once(subject: Subject):
    with pytest.raises(UnmaskError, match="the model takes 512"):
        BenchmarkRun(Plan(Sizes(prompt=500, length=64), ("ots", "path"), repeat=1), subject).run()


def test_random_weights_take_as_many_steps_as_the_embedded_model_did(measured):
    results = measured[0]
    replay, sizes = results["replay"], SMALL
    blocks = sum(replay["steps_a_block"].values()) + sum(replay["steps_an_ended_block"].values())
    assert blocks == 2 * replay["problems"] == 6
    assert 1 <= replay["mean_steps"] <= 16
    steps = trial(results, "ots-cached-threshold")["split"]["steps"]
    assert steps == min(sizes.schedule.steps, max(2, round(2 * replay["mean_steps"])))


def test_without_the_embedded_model_threshold_writing_is_left_out(subject: Subject, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("lost")

    monkeypatch.setattr("unmask.bench.run.observe", fail)
    shown: list[str] = []
    results = BenchmarkRun(Plan(SMALL, ("ots-cached", "ots-cached-threshold"), repeat=1), subject, shown.append).run()
    assert [trial["name"] for trial in results["trials"]] == ["ots-cached"]
    assert "observing the embedded model: failed (RuntimeError: lost)" in shown


def test_cached_contenders_compute_fewer_positions(measured):
    results = measured[0]
    for held, whole in (("path-cached", "path"), ("ots-cached", "ots-unmerged")):
        assert trial(results, held)["positions"] < trial(results, whole)["positions"]
        assert trial(results, held)["flops"] < trial(results, whole)["flops"]


def test_a_real_model_is_given_real_problems():
    subject = Subject.of_model(load("tiny"))
    sizes = Sizes(problems=3, length=8, block=8)
    prompts = subject.prompts(sizes)
    assert len({tuple(prompt) for prompt in prompts}) == 3
    assert subject.model is not None
    assert "Target" in subject.model.text.decode(prompts[0])


def test_random_shapes_need_no_files_and_get_no_mask_in_their_prompts():
    for name in ("llada-nano", "dream-nano"):
        subject = Subject.of_shape(name, "cpu", "float32")
        prompts = subject.prompts(Sizes(problems=50, prompt=50))
        assert all(subject.denoiser.mask_id not in prompt for prompt in prompts)
        canvas = subject.canvas(prompts[:2], 4)
        token, logp = subject.denoiser(canvas, canvas.slots).best
        assert bool((token != subject.denoiser.mask_id).all())
        assert bool(logp.isfinite().all())


def test_the_plain_loop_reads_a_shifted_network_as_ours_does():
    results = BenchmarkRun(
        Plan(SMALL, ("plain-ots", "ots"), repeat=1), Subject.of_shape("dream-nano", "cpu", "float32")
    ).run()
    assert results["same_tokens"]["ots"] == {"same": 2, "problems": 2}


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (lambda: random_denoiser("llada-9b"), "unknown shape 'llada-9b': did you mean 'llada-8b'"),
        (lambda: Sizes(problems=0), "problems=0 does not work"),
        (lambda: Sizes(prompt=0), "prompt=0 does not work"),
        (lambda: Sizes(length=16, block=32), "block=32 does not fit"),
        (lambda: Plan(SMALL, ("ots",), repeat=0), "repeat=0 does not work"),
        (lambda: Plan(SMALL, ()), "nothing to measure"),
        (lambda: read_sweep("beam"), "unknown sweep 'beam': did you mean 'beams'"),
        (lambda: read_sweep("beams=two"), "not a list of whole numbers"),
        (lambda: read_sweep("beams=0,2"), "values below 1"),
        (lambda: choose(["otss"], CPU), "unknown contender 'otss'"),
        (lambda: Subject.of_model(load("toy-chain")), "is not a transformer"),
        (lambda: Subject.of_shape("llada-nano", "cpu", None).prompts(Sizes()), "random weights cannot read text"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(refused, sentence: str):
    with pytest.raises(UnmaskError, match=sentence.replace("(", r"\(")):
        refused()


def test_a_shape_that_does_not_fit_in_memory_is_refused_early(monkeypatch):
    monkeypatch.setattr("unmask.models.devices.free", lambda device: 10**9)
    with pytest.raises(UnmaskError, match=r"llada-8b needs about .* GB"):
        random_denoiser("llada-8b", "cpu", "float32")
    assert "llada-8b" in shape_names()


@pytest.mark.slow
def test_a_block_causal_shape_is_measured_with_its_exact_cache():
    names = fitting(choose((), CPU), block_causal=True)
    assert {"path-exact", "ots-exact"} <= set(names)
    assert not any(CONTENDERS[name].kind == "approximate" for name in names)
    subject = Subject.of_shape("sdar-nano", "cpu", "float32")
    chosen = ("plain-path", "plain-ots", "path-exact", "ots-exact")
    results = BenchmarkRun(Plan(replace(SMALL, prompt=8), chosen, repeat=1), subject).run()
    assert all(count["same"] == 2 for count in results["same_tokens"].values())
    assert trial(results, "ots-exact")["positions"] < trial(results, "plain-path")["positions"]
    assert "ots-exact / plain-path" in results["ratios"]
