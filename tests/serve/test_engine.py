"""The engine without HTTP: awaited, iterated over, cancelled, timed out, closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import unmask
from tests.serve.driver import until
from unmask.serve.limits import RefusedError, RequestLimits

ENDLESS = {"decoder": "ots(beams=4, block=1)", "length": 512}
pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(model) -> AsyncIterator[unmask.AsyncEngine]:
    async with unmask.AsyncEngine(model) as engine:
        yield engine


async def test_many_tasks_get_what_generate_gives(model):
    options = {"decoder": "random(temperature=0.7)", "length": 6}
    async with unmask.AsyncEngine([model, model]) as engine:  # two replicas
        outputs = await asyncio.gather(*(engine.generate("abc", seed=seed, **options) for seed in range(6)))
    for seed, output in enumerate(outputs):
        alone = unmask.generate(model, "abc", seed=seed, **options)
        assert (output.text, output.hypotheses, output.settings) == (alone.text, alone.hypotheses, alone.settings)


@pytest.mark.parametrize("show", ["text", "drafts", "trace"])
async def test_updates_carry_text_drafts_and_traces(model, show):
    async with unmask.AsyncEngine(model, decoding={"decoder": "ots(beams=2, block=4)"}) as engine:
        updates = [update async for update in engine.stream("abc", show=show, length=8)]
    alone = unmask.generate(model, "abc", decoder="ots(beams=2, block=4)", length=8, trace=True)
    assert "".join(update.text for update in updates) == alone.text
    answer = updates[-1].answer
    assert answer is not None
    assert answer.output.hypotheses == alone.hypotheses
    if show == "drafts":
        drafts = [update.draft or "" for update in updates]
        assert drafts[0].count("░") > drafts[2].count("░")
        assert drafts[-1] == alone.text
    if show == "trace":
        assert alone.trace is not None
        header, *steps = (update.line for update in updates if update.line)
        assert header["ids"] == list(alone.hypotheses[0].ids[:3])
        assert [step | {"words": None} for step in steps] == [step | {"words": None} for step in alone.trace.steps]


async def test_a_cancelled_task_frees_its_rows(engine):
    task = asyncio.create_task(engine.generate("abc", **ENDLESS))
    await until(lambda: engine.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: engine.running == 0)
    async for _ in engine.stream("abc", show="drafts", **ENDLESS):
        break  # leaving the loop cancels the request as well
    await until(lambda: engine.running == 0)


async def test_a_reader_that_waits_learns_that_its_request_was_cancelled(engine):
    updates = engine.submit(engine.request("abc", **ENDLESS))
    reader = asyncio.create_task(updates.answer())
    await until(lambda: engine.running == 1)
    updates.cancel()
    with pytest.raises(RefusedError, match="cancelled"):
        await asyncio.wait_for(reader, 10)


async def test_a_request_that_takes_too_long_is_cancelled(model):
    async with unmask.AsyncEngine(model, RequestLimits(max_seconds=0.05)) as engine:
        with pytest.raises(RefusedError, match=r"more than 0\.05 s"):
            await engine.generate("abc", timeout=5.0, **ENDLESS)
        await until(lambda: engine.running == 0)


async def test_a_full_engine_refuses_and_a_closing_one_finishes_what_it_began(model):
    engine = unmask.AsyncEngine(model, RequestLimits(running=1, waiting=1))
    first = asyncio.create_task(engine.generate("abc", decoder="ar", length=24))
    await until(lambda: engine.running == 1)
    second = asyncio.create_task(engine.generate("abc", decoder="ar", length=4))
    await until(lambda: engine.waiting == 1)
    with pytest.raises(RefusedError, match="waiting already"):
        await engine.generate("abc", decoder="ar", length=4)
    await engine.close()
    with pytest.raises(RefusedError, match="shutting down"):
        await second
    with pytest.raises(RefusedError, match="shutting down"):
        await engine.generate("abc", decoder="ar", length=4)
    assert (await first).text == unmask.generate(model, "abc", decoder="ar", length=24).text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"length": 2000}, "length must be at most 1024 on this server, got 2000"),
        ({"length": 512, "decoder": "order-search(beams=20)"}, "forward passes, .*: this server allows 65,536"),
        ({"decoder": "otss"}, "did you mean 'ots'"),
        ({"decoder": "ar(block=9)", "length": 4}, "block must be between 1 and 4"),
        ({"decodr": "ar"}, "unknown argument 'decodr': did you mean 'decoder'"),
    ],
)
async def test_what_cannot_be_done_is_refused_before_it_waits(engine, options, sentence):
    with pytest.raises(unmask.UnmaskError, match=sentence):
        await engine.generate("abc", **options)
    assert engine.waiting == engine.running == 0


async def test_a_template_is_filled_as_fill_does(model, engine):
    request = engine.request("abc", template="x<mask:3>yz<mask:2>", decoder="low-confidence", show="text")
    updates = [update async for update in engine.submit(request)]
    alone = unmask.fill(model, "abcx<mask:3>yz<mask:2>", decoder="low-confidence")
    answer = updates[-1].answer
    assert answer is not None
    assert answer.text == "".join(update.text for update in updates) == alone.text[3:]
