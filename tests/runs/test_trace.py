"""A trace rebuilds every canvas of every decoder, and a file that is none says so."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import unmask
from unmask.core import Canvas, Frame, decoder
from unmask.errors import UnmaskError

SPECS = [
    *decoder,
    "ots(beams=3, block=2, interval=1, samples=2)",
    "ots(beams=2, block=1, likelihood=all-blocks)",
    "vote(n=3, inner=ots(beams=2, block=3))",
    "best-of(n=2, inner=order-search(beams=2))",
    "token-search(score=path, beams=4)",
]


def same_canvas(one: Canvas, other: Canvas) -> bool:
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("tokens", "order", "logp"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", SPECS)
def test_replaying_a_trace_rebuilds_every_canvas(spec: str, dtype: str, tmp_path: Path):
    model = unmask.load("toy-transformer(letters=5)", dtype=dtype)
    frames: list[Frame] = []
    path = tmp_path / "trace.jsonl"
    output = unmask.generate(
        model, "abc", decoder=spec, length=7, trace=path, watch=lambda numbers, frame: frames.append(frame)
    )
    trace = unmask.Trace.load(path)
    assert trace == output.trace
    again = list(trace.replay())
    assert len(again) == len(frames)
    for seen, rebuilt in zip(frames, again, strict=True):
        assert same_canvas(seen.canvas, rebuilt.canvas)
        assert torch.equal(seen.score, rebuilt.score)
        assert seen.step == rebuilt.step
        assert (seen.branch is None) == (rebuilt.branch is None)
        if seen.branch and rebuilt.branch:
            assert same_canvas(seen.branch.canvas, rebuilt.branch.canvas)
            for name in ("completion", "draw", "score", "blocks", "kept"):
                assert torch.equal(getattr(seen.branch, name), getattr(rebuilt.branch, name)), name


def test_a_trace_does_not_depend_on_the_batch():
    model = unmask.load("toy-transformer(letters=5)")
    prompts = ["abc", "a", "dd"]
    together = unmask.generate(model, prompts, decoder="ots(beams=2, block=3)", length=6, trace=True)
    for prompt, output in zip(prompts, together, strict=True):
        alone = unmask.generate(model, prompt, decoder="ots(beams=2, block=3)", length=6, trace=True)
        assert alone.trace is not None
        assert output.trace is not None
        assert alone.trace.steps == output.trace.steps
        assert alone.trace.header == output.trace.header
        assert alone.trace.end | {"measured": {}} == output.trace.end | {"measured": {}}
        last = list(output.trace.replay())[-1].canvas.tokens.tolist()
        assert [tuple(row) for row in last] == [row.ids for row in output.hypotheses]


def test_the_gaps_of_a_text_are_traced_too():
    model = unmask.load("toy-chain")
    texts = ["ab<mask:3>c<mask:2>", "a<mask:2>"]
    outputs = unmask.fill(model, texts, decoder="ots(beams=2, block=2)", trace=True)
    for output in outputs:
        assert output.trace is not None
        last = list(output.trace.replay())[-1].canvas.tokens.tolist()
        assert [tuple(row) for row in last] == [row.ids for row in output.hypotheses]


def test_a_trace_says_what_its_tokens_are_and_which_row_was_chosen():
    model = unmask.load("toy-chain")
    trace = unmask.generate(model, "abc", decoder="vote(n=3)", length=6, trace=True).trace
    assert trace is not None
    assert list(trace.header)[:2] == ["format", "version"]
    assert trace.header["decoder"].startswith("vote(n=3, inner=low-confidence(block=6, steps=3")
    used = {token for step in trace.steps for _, _, token, *_ in step["writes"]}
    assert {str(token) for token in used} <= set(trace.end["words"])
    assert len(trace.end["texts"]) == 3
    assert 0 <= trace.end["chosen"] < 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "trace.jsonl"
    unmask.generate(unmask.load("toy-chain"), "abc", decoder="ots(block=2)", length=4, trace=file)
    return file


def test_a_torn_trace_says_where(path: Path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(UnmaskError, match="cut off: its last line is missing"):
        unmask.Trace.load(path)
    path.write_text("".join(lines[:2]) + lines[2][:20])
    with pytest.raises(UnmaskError, match="cut off or damaged at line 3"):
        unmask.Trace.load(path)


@pytest.mark.parametrize("text", ["", "hello\n", "{}\n", "[1]\n", '{"format": "other"}\n'])
def test_a_foreign_file_is_no_trace(text: str, path: Path):
    path.write_text(text)
    with pytest.raises(UnmaskError, match="is not an unmask-trace file"):
        unmask.Trace.load(path)


def test_other_unreadable_traces(path: Path, tmp_path: Path):
    header, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | {"version": 99}), *rest]))
    with pytest.raises(UnmaskError, match="must have version 1, got 99"):
        unmask.Trace.load(path)
    path.write_text("\n".join([header, rest[0].replace('"source": [0', '"source": [7'), rest[-1]]))
    with pytest.raises(UnmaskError, match="does not hold together"):
        list(unmask.Trace.load(path).replay())
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UnmaskError, match="is not an unmask-trace file"):
        unmask.Trace.load(path)
    with pytest.raises(UnmaskError, match="cannot be read"):
        unmask.Trace.load(tmp_path / "none.jsonl")
    with pytest.raises(UnmaskError, match="is a folder: name a file in it"):
        unmask.Trace.load(tmp_path)


@pytest.mark.parametrize("spec", SPECS)
def test_a_trace_counts_rows_and_drafts_only_masks(spec: str):
    model = unmask.load("toy-transformer(letters=5)")
    output = unmask.generate(model, "abc", decoder=spec, length=7, trace=True)
    trace = output.trace
    assert trace is not None
    spent = [line["forward_passes"] for line in trace.steps]
    assert spent == sorted(spent)
    assert spent[-1] == output.cost.forward_passes
    for line, frame in zip(trace.steps, trace.replay(), strict=True):
        for row, place, token in line["drafts"]:
            assert frame.canvas.masked[row, place]
            assert str(token) in trace.end["words"]


def test_a_draft_is_the_likeliest_token():
    model = unmask.load("toy-transformer(letters=5)")
    trace = unmask.generate(model, "abc", decoder="low-confidence(steps=4, block=4)", length=4, trace=True).trace
    assert trace is not None
    canvas = Canvas.blank([trace.header["ids"]], 4, trace.header["mask"])
    best, _ = model.denoiser(canvas, canvas.slots).best
    drafts = {place: token for _, place, token in trace.steps[0]["drafts"]}
    written = {place: token for _, place, token, _ in trace.steps[0]["writes"]}
    assert drafts | written == dict(zip(canvas.slots[0].tolist(), best[0].tolist(), strict=True))


@pytest.mark.parametrize("spec", SPECS)
def test_a_trace_knows_the_step_and_the_entropy_of_every_token(spec: str):
    model = unmask.load("toy-transformer(letters=5)")
    trace = unmask.generate(model, "abc", decoder=spec, length=5, trace=True).trace
    assert trace is not None
    *_, last = trace.replay()
    canvas = last.canvas.rows(torch.tensor([trace.end["chosen"]]))
    assert trace.slots == [3, 4, 5, 6, 7]
    for place, step, entropy in zip(trace.slots, trace.step_map, trace.entropies, strict=True):
        assert step == int(canvas.order[0, place])
        asked = replace(canvas, tokens=canvas.tokens.masked_fill(canvas.order >= step, canvas.mask_id))
        beliefs = model.denoiser(asked, torch.tensor([[place]]))
        assert float(beliefs.logp(canvas.tokens[:, [place]])) == pytest.approx(float(canvas.logp[0, place]), abs=1e-5)
        assert entropy == pytest.approx(float(beliefs.entropy), abs=1e-5)
