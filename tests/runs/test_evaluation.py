"""The evaluation line: the same records whatever the batch, whatever was interrupted, whatever failed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import unmask
from tests.runs.nano import lasting, run_here, small_grid
from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.runs import worker
from unmask.runs.generation import Generation
from unmask.runs.record import trace_file
from unmask.runs.store import RECORDS, read_run
from unmask.runs.trace import Trace
from unmask.tasks import Countdown, task


@pytest.fixture(scope="module")
def undisturbed(model: str, tmp_path_factory: pytest.TempPathFactory):
    return run_here(small_grid(model), tmp_path_factory.mktemp("run") / "whole")


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_records_do_not_depend_on_the_batch(model: str, out: Path, undisturbed, batch: int):
    run = run_here(small_grid(model), out, batch)
    assert lasting(run) == lasting(undisturbed)
    assert {record.measured.batch for record in run.records} <= set(range(1, batch + 1))
    assert b"".join(record.line() for record in run.records)  # and each of them is a line


def test_the_embedded_model_gives_the_same_records_at_every_batch(tmp_path: Path):
    changes = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=6)", "ots(beams=2, steps=4)"]}
    grid = small_grid("tiny", **changes, lengths=[12], limit=3)
    first, *others = (lasting(run_here(grid, tmp_path / str(batch), batch)) for batch in (1, 2, 64))
    assert all(other == first for other in others)


def test_a_record_holds_what_generate_gives(model: str, undisturbed):
    loaded = unmask.load(model, "cpu")
    countdown = task.make("countdown")
    problems = {problem.id: problem for problem, _ in zip(countdown.problems(), range(9), strict=False)}
    records = [record for record in undisturbed.records if record.task.startswith("countdown")]
    assert len(records) == 27
    for record in records[::5]:
        messages = countdown.messages(problems[record.problem])
        output = unmask.generate(
            loaded, messages, decoder=record.decoder, length=8, seed=record.seed, key=countdown.key
        )
        assert (record.prompt, record.text, record.likelihood) == (output.prompt, output.text, output.score)
        assert (record.cost.forward_passes, record.cost.computed) == (output.cost.forward_passes, output.cost.computed)
        grade = countdown.grade(problems[record.problem], output.text)
        assert (record.right, record.score, record.answer) == (grade.right, grade.score, grade.answer)
        assert record.key == countdown.key(output.text)


def test_a_sample_is_what_a_run_under_its_own_seed_gives(model: str, tmp_path: Path):
    changes = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=4, temperature=0.9)"], "limit": 3}
    many = run_here(small_grid(model, **changes, samples=3, seeds=[5]), tmp_path / "many")
    for sample in range(3):
        alone = run_here(small_grid(model, **changes, seeds=[reseed(5, sample)]), tmp_path / str(sample))
        texts = [record.text for record in many.records if record.sample == sample]
        assert texts == [record.text for record in alone.records]


def test_a_finished_run_is_only_read(model: str, out: Path, monkeypatch: pytest.MonkeyPatch):
    grid = small_grid(model, limit=2)
    run_here(grid, out)
    before = (out / RECORDS).read_bytes()
    monkeypatch.setattr(Generation, "outputs", lambda *_, **__: pytest.fail("decoded again"))
    run_here(grid, out)
    assert (out / RECORDS).read_bytes() == before


def test_out_of_memory_halves_the_batch_and_goes_on(
    model: str, out: Path, undisturbed, monkeypatch: pytest.MonkeyPatch
):
    sizes: list[int] = []
    whole = Generation.outputs

    def outputs(self, prompts, *rest):
        sizes.append(len(prompts))
        if len(prompts) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory") if len(sizes) % 2 else MemoryError
        return whole(self, prompts, *rest)

    monkeypatch.setattr(Generation, "outputs", outputs)
    run = run_here(small_grid(model), out, batch=9)
    assert lasting(run) == lasting(undisturbed)
    assert max(record.measured.batch for record in run.records) == 3
    assert sizes[:5] == [9, 5, 3, 2, 4]
    assert sizes.count(9) == 3  # each decoder learns it once


def test_a_problem_that_does_not_fit_alone_is_a_recorded_failure(
    model: str, out: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = Generation.outputs

    def outputs(self, prompts, *rest):
        if any("Target: 22" in prompt.text for prompt in prompts):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return whole(self, prompts, *rest)

    grid = small_grid(model, tasks=["countdown(level=3)"], decoders=["low-confidence(steps=2)"])
    monkeypatch.setattr(Generation, "outputs", outputs)
    failed = [record for record in run_here(grid, out).records if record.error]
    assert [record.error for record in failed] == ["the memory does not hold this prompt, even alone"]
    assert (failed[0].right, failed[0].text, failed[0].cost.forward_passes) == (None, "", 0)
    monkeypatch.undo()
    assert [record.error for record in run_here(grid, out).records if record.error] == [failed[0].error]
    again = run_here(grid, out, retry=True)
    assert len(again.records) == 9
    assert not any(record.error for record in again.records)


def test_prompts_a_model_cannot_take_are_recorded_failures_whatever_the_batch(model: str, tmp_path: Path):
    options = {"tasks": ["mini-gsm(level=4)"], "decoders": ["threshold(sure=0.0)"], "limit": 5}
    text = unmask.load(model, "cpu").text
    prompts = [record.prompt for record in run_here(small_grid(model, **options), tmp_path / "short").records]
    sizes = sorted(len(text.encode(prompt)) for prompt in prompts)
    grid = small_grid(model, **options | {"lengths": [512 - sizes[2]]})
    single, many = run_here(grid, tmp_path / "1", 1), run_here(grid, tmp_path / "5", 5)
    assert lasting(single) == lasting(many)
    errors = [record.error for record in single.records if record.error]
    assert len(errors) == sum(size > sizes[2] for size in sizes) > 0
    assert all("positions, the model takes 512" in error for error in errors)


def test_a_model_that_cannot_read_the_task_says_so_in_every_record(out: Path):
    run = run_here(small_grid("toy-chain", tasks=["countdown"], limit=2), out)
    assert {record.error for record in run.records} == {"the toy model cannot read 'N': it knows abcdefg."}


def test_a_grader_that_stumbles_over_a_text_is_a_recorded_failure(
    model: str, out: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Countdown, "key", lambda self, text: 1 / 0)
    run = run_here(small_grid(model, tasks=["countdown"], decoders=["low-confidence(steps=2)"], limit=2), out)
    assert [record.error for record in run.records] == [
        "the grader failed on this text: ZeroDivisionError division by zero"
    ] * 2
    assert all(record.text and record.right is None for record in run.records)


def test_a_clock_that_jumps_changes_nothing_but_the_time_written(
    model: str, out: Path, undisturbed, monkeypatch: pytest.MonkeyPatch
):
    clock = iter(range(2_000_000_000, 0, -3_000_000))
    monkeypatch.setattr(worker.time, "time", lambda: float(next(clock)))
    run = run_here(small_grid(model), out)
    monkeypatch.undo()
    assert lasting(run) == lasting(undisturbed)
    assert all(0 < record.measured.seconds < 1_000_000 for record in run.records)  # less than one jump
    assert min(record.measured.time for record in run.records) < "2031" < run.head["created"]
    assert lasting(run_here(small_grid(model), out)) == lasting(undisturbed)


def test_every_record_of_a_traced_run_has_its_trace(model: str, out: Path):
    run = run_here(small_grid(model, limit=2, traces=True), out)
    for record in run.records:
        trace = Trace.load(out / trace_file(record.name))
        assert (trace.header["decoder"], trace.end["texts"][trace.end["chosen"]]) == (record.decoder, record.text)


def test_a_run_says_every_default(model: str, out: Path):
    spec = run_here(small_grid(model, limit=1, lengths=[8, 12], decoders=["ots", "vote"]), out).spec
    assert spec["decoders"] == [
        f"order-token-search(beams=4, block={n}, steps={n // 2}, temperature=0.4, interval=none, likelihood=block, "
        "samples=1, sure=none)"
        for n in (8, 12)
    ] + [
        f"vote(n=5, inner=low-confidence(block={n}, steps={n // 2}, temperature=0.8), weighted=false)" for n in (8, 12)
    ]
    assert spec["tasks"] == ["countdown(level=4, split=test, seed=0)", "mini-gsm(level=2, split=test, seed=0)"]
    assert (spec["seeds"], spec["samples"], spec["limit"], spec["metric"]) == ([0], 1, 1, "ours")
    assert (spec["device"], spec["dtype"], spec["prompts"], spec["stop"]) == ("cpu", "float32", [None, None], [])


def test_the_same_cell_spelt_twice_is_done_once(model: str, out: Path):
    grid = small_grid(model, decoders=["low-confidence", "low-confidence(steps=4)"], limit=1)
    assert len(run_here(grid, out).records) == 2
    assert len(read_run(out).records) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"limit": None}, "has no end: say how many problems with --limit"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"lengths": [0]}, "length must be at least 1, got 0"),
        ({"decoders": ["ots(block=64)"]}, "block must be between 1 and 8"),
        ({"decoders": ["otss"]}, "did you mean 'ots'"),
        ({"tasks": ["humaneval"]}, "allow it with --allow-code"),
        ({"allow_code": True}, "no setting for --allow-code"),
        ({"prompts": "words.json"}, "no setting for --prompts"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"dtype": "float31"}, "float31"),
        ({"decoders": []}, "at least one of decoders"),
    ],
)
def test_what_cannot_work_is_refused_before_a_folder_is_made(model: str, out: Path, changes, sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        run_here(small_grid(model, **changes), out)
    assert not out.exists()
