"""Replicas as Ray actors: the same answers, and none is left hanging when an actor is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import openai
import pytest

import unmask
from tests.runs.processes import actors
from tests.serve.conftest import serving, shown

pytest.importorskip("ray")


async def leave_a_stream(client: openai.AsyncOpenAI) -> None:
    more = {"decoder": "ots(block=1)", "stream_mode": "denoise"}
    call: Any = {"model": "toy-transformer", "prompt": "abc", "max_tokens": 800, "extra_body": more}
    stream = await client.completions.create(stream=True, **call)
    async for _ in stream:
        break
    await stream.close()


@pytest.mark.slow
def test_requests_of_a_killed_worker_are_answered_or_refused():
    words = ["--model", "toy-transformer", "--engine", "ray", "--replicas", "2"]
    with serving(*words) as (process, url, _):

        async def ask(client: openai.AsyncOpenAI, seed: int, stream: bool) -> str:
            call: Any = {"model": "toy-transformer", "prompt": "abc", "max_tokens": 200, "seed": seed}
            call |= {"extra_body": {"decoder": "ar(temperature=1.0)"}, "stream": stream}
            reply = await client.completions.create(**call)
            if not stream:
                return reply.choices[0].text
            return "".join([choice.text async for chunk in reply for choice in chunk.choices])

        async def every() -> list[str | BaseException]:
            async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
                tasks = [asyncio.create_task(ask(client, seed, seed % 2 == 0)) for seed in range(8)]
                await shown(url, 'unmask_running_requests{model="toy-transformer"} 8.0')
                os.kill(actors(process.pid)[0], signal.SIGKILL)
                async with asyncio.timeout(120):
                    answers = await asyncio.gather(*tasks, return_exceptions=True)
                await leave_a_stream(client)  # which frees its place on the worker
                await shown(url, 'unmask_running_requests{model="toy-transformer"} 0.0')
                return answers

        answers = asyncio.run(every())
    model, answered = unmask.load("toy-transformer"), 0
    for seed, answer in enumerate(answers):
        if isinstance(answer, str):
            answered += 1
            assert answer == unmask.generate(model, "abc", decoder="ar(temperature=1.0)", length=200, seed=seed).text
        else:
            assert isinstance(answer, openai.APIError)
            assert "the worker that decoded this request died" in str(answer)
    assert answered >= 4  # those that were not streamed begin again
