"""The benchmark: turns, counts, tokens, ratios and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from unmask.bench.contenders import CONTENDERS, choose
from unmask.bench.report import ratio, spread
from unmask.bench.run import BenchmarkRun, Plan, read_sweep
from unmask.bench.subject import Sizes, Subject
from unmask.errors import UnmaskError
from unmask.models import load
from unmask.models.checkpoints.random_weights import random_denoiser, shape_names

CPU = torch.device("cpu")
SMALL = Sizes(problems=2, prompt=5, length=8, block=4, beams=2)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject.of_shape("llada-nano", "cpu", "float32")


def fitting(subject: Subject) -> tuple[str, ...]:
    return tuple(name for name in choose((), CPU) if CONTENDERS[name].fits(subject))


@pytest.fixture(scope="module")
def measured(subject: Subject) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    shown: list[str] = []
    saved: list[dict[str, Any]] = []
    plan = Plan(SMALL, fitting(subject), (("beams", (2, 3)), ("problems", (1, 2))), repeat=2)
    return BenchmarkRun(plan, subject, shown.append, saved.append, note="a note").run(), shown, saved


def trial(results: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trial for trial in results["trials"] if trial["name"] == name)


def test_contenders_take_turns_after_a_warm_up(measured, subject: Subject):
    usual = fitting(subject)
    shown = [line.partition(":") for line in measured[1]]
    compared = [(name, "warmed" in text) for name, _, text in shown if name in usual]
    first = [(name, warm) for name in usual for warm in (True, False)]
    assert compared == first + [(name, False) for name in usual]
    swept = [name for name, _, text in shown if "@beams" in name and "warmed" not in text]
    assert swept == ["ots-cached@beams=3", "ots@beams=3"] * 2


def test_exact_contenders_write_the_plain_loops_tokens(measured, subject: Subject):
    results = measured[0]
    assert set(results["same_tokens"]) == set(fitting(subject)) - {"plain-path", "plain-ots"}
    exact = {name: count for name, count in results["same_tokens"].items() if CONTENDERS[name].kind != "approximate"}
    assert all(count == {"same": 2, "problems": 2} for count in exact.values()), exact


def test_results_are_saved_after_every_run_and_are_plain_json(measured):
    results, _, saved = measured
    runs = [sum(trial["seconds"]["n"] for trial in results["trials"]) for results in saved]
    assert runs == sorted(runs)
    assert runs[0] == 1
    assert json.loads(json.dumps(results, allow_nan=False))["note"] == "a note"
    assert not [trial["error"] for trial in results["trials"] if trial["error"]]


def test_the_plain_search_computes_the_published_forward_passes_and_identical_ones_are_saved(measured):
    results = measured[0]
    steps, searches, beams = 4, 2, 2
    whole = 2 * (steps * beams + searches * beams**2)
    assert trial(results, "plain-ots")["forward_passes"] == whole
    assert trial(results, "plain-ots")["positions"] == whole * 13
    assert trial(results, "ots")["forward_passes"] < whole


def test_ratios_divide_seconds_per_problem(measured):
    results = measured[0]
    plain, ours = (trial(results, name)["seconds"]["all"] for name in ("plain-ots", "ots"))
    by_round = [a / b for a, b in zip(plain, ours, strict=True)]
    assert results["ratios"]["plain-ots / ots"] == spread(by_round)
    alone = trial(results, "ots@problems=1")["seconds"]["all"]
    assert results["ratios"]["ots / ots@problems=1"]["median"] == pytest.approx(
        sum(b / 2 / a for a, b in zip(alone, ours, strict=True)) / 2
    )


def test_ratios_ignore_surplus_rounds():
    assert ratio([2.0, 4.0, 6.0], [1.0, 4.0]) == {"median": 1.5, "low": 1.0, "high": 2.0, "n": 2}


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
    with pytest.raises(UnmaskError, match="512"):
        BenchmarkRun(Plan(Sizes(prompt=500, length=64), ("ots", "path"), repeat=1), subject).run()


def test_cached_contenders_compute_fewer_positions(measured):
    results = measured[0]
    for cached, whole in (("path-cached", "path"), ("ots-cached", "plain-ots")):
        assert trial(results, cached)["positions"] < trial(results, whole)["positions"]


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
        assert all(subject.network.mask_id not in prompt for prompt in prompts)
        canvas = subject.canvas(prompts[:2], 4)
        token, logp = subject.network(canvas, canvas.slots).best
        assert bool((token != subject.network.mask_id).all())
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
        (lambda: Sizes(problems=0), "problems must be between"),
        (lambda: Sizes(prompt=0), "prompt must be between"),
        (lambda: Sizes(length=16, block=32), "block"),
        (lambda: Plan(SMALL, ("ots",), repeat=0), "repeat must be at least 1"),
        (lambda: Plan(SMALL, ()), "nothing to measure"),
        (lambda: read_sweep("beam"), "unknown sweep 'beam': did you mean 'beams'"),
        (lambda: read_sweep("beams=two"), "not a list of whole numbers"),
        (lambda: read_sweep("beams=0,2"), "at least 1"),
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
    subject = Subject.of_shape("sdar-nano", "cpu", "float32")
    names = fitting(subject)
    assert {"path-exact", "ots-exact"} <= set(names)
    assert not any(CONTENDERS[name].kind == "approximate" for name in names)
    chosen = ("plain-path", "plain-ots", "path-exact", "ots-exact")
    results = BenchmarkRun(Plan(replace(SMALL, prompt=8), chosen, repeat=1), subject).run()
    assert all(count["same"] == 2 for count in results["same_tokens"].values())
    assert trial(results, "ots-exact")["positions"] < trial(results, "plain-path")["positions"]
    assert "ots-exact / plain-path" in results["ratios"]
