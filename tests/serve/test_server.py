"""Whole servers: processes that are stopped, sixteen clients at once, and every request that a schema allows."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from typing import Any

import httpx
import openai
import pytest

import unmask
from tests.serve.conftest import Served, serving, shown
from unmask.serve.limits import RequestLimits
from unmask.serve.request import PendingRequest, read_request
from unmask.serve.server import JsonLines, log_request


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_server_that_is_told_to_stop_finishes_what_it_began():
    long: Any = {"model": "toy-transformer", "prompt": "abc", "max_tokens": 300, "extra_body": {"decoder": "ar"}}
    with serving("--model", "toy-transformer", "--running", "1", "--log-prompts") as (process, url, lines):
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
            stream = await client.completions.create(stream=True, **long)
            waiting = asyncio.create_task(client.completions.create(**long))
            await shown(url, 'unmask_waiting_requests{model="toy-transformer"} 1.0')
            text = ""
            async for chunk in stream:
                if not text:
                    process.send_signal(signal.SIGTERM)
                text += chunk.choices[0].text
            with pytest.raises(openai.APIStatusError) as refused:
                await waiting
        assert refused.value.status_code == 503
        assert text == unmask.generate("toy-transformer", "abc", decoder="ar", length=300).text
        assert process.wait(30) == 0
        assert any('"prompt": "abc"' in line and '"outcome": "done"' in line for line in lines)


@pytest.mark.slow
def test_many_clients_get_what_generate_gives(model):
    specs = ["low-confidence", "threshold(sure=0.3)", "ots(beams=2, block=4)", "vote(n=3)"]
    with Served(model, RequestLimits(running=8)) as served:

        async def client(number: int) -> list[tuple[dict, str]]:
            async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="x") as remote:
                answers = []
                for turn in range(4):
                    options: Any = {"decoder": specs[(number + turn) % 4], "length": 6 + number % 5, "seed": turn}
                    prompt = "abcdefghijklmnop"[: 1 + number]
                    call: Any = {"model": "toy", "prompt": prompt, "max_tokens": options["length"], "seed": turn}
                    more: Any = {"extra_body": {"decoder": options["decoder"], "user": f"client {number % 3}"}}
                    if turn % 2:
                        chunks = await remote.completions.create(stream=True, **call, **more)
                        text = "".join([choice.text async for chunk in chunks for choice in chunk.choices])
                    else:
                        text = (await remote.completions.create(**call, **more)).choices[0].text
                    answers.append(({"prompt": prompt, **options}, text))
                return answers

        async def every():
            return await asyncio.gather(*(client(number) for number in range(16)))

        answers = [answer for answers in asyncio.run(every()) for answer in answers]
        assert served.engine.running == served.engine.waiting == 0
    assert len(answers) == 64
    for options, text in answers:
        assert text == unmask.generate(model, **options).text


@pytest.mark.slow
def test_no_request_that_the_schema_allows_breaks_the_server(tmp_path):
    limits = RequestLimits(max_length=8, max_forward_passes=40, max_choices=2)
    with Served(unmask.load("tiny"), limits, length=4) as served:
        words = ["run", f"{served.url}/openapi.json", "--max-examples", "25", "--seed", "1", "--workers", "1"]
        checks = "not_a_server_error,status_code_conformance,content_type_conformance"
        words += [
            "--generation-deterministic",
            "--checks",
            checks,
            "--request-timeout",
            "120",
        ]  # a busy machine is slow
        schemathesis = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        ran = subprocess.run([schemathesis, *words], capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert ran.returncode == 0, ran.stdout[-6000:]
        assert httpx.get(f"{served.url}/readyz").status_code == 200


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines: set --api-key or UNMASK_API_KEY"),
        (["--decoder", "otss"], "did you mean 'ots'"),
        (["--engine", "rya"], "unknown --engine 'rya': did you mean 'ray'?"),
        (["--address", "x:1"], "--address is for --engine ray"),
        (["--running", "0"], "running must be greater than 0, got 0"),
        (["--host", "nowhere.invalid", "--unlocked"], "cannot listen on nowhere.invalid:8000"),
        (["--model", "tinny", "--port", "0"], "tinny"),
    ],
)
def test_a_server_that_cannot_run_says_why(command, monkeypatch, words, sentence):
    monkeypatch.delenv("UNMASK_API_KEY", raising=False)
    code, _, error = command("serve", *words)
    assert code == 2
    assert sentence in error


def test_a_port_in_use_is_named_with_its_option(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, error = command("serve", "--port", str(port))
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in error
    assert "--port" in error


def test_prompts_are_logged_only_if_asked_for(model, caplog):
    options = {"decoder": "ar", "length": 4, "client": "someone"}
    pending = PendingRequest(read_request(model, "secret", options, RequestLimits()), [].append)
    with caplog.at_level(logging.INFO, "unmask.serve"):
        for log_prompts in (False, True):
            log_request("toy", log_prompts, pending, "cancelled", None)
    without, line = (json.loads(JsonLines().format(record)) for record in caplog.records[-2:])
    assert (line["event"], line["outcome"], line["client"], line["length"]) == ("request", "cancelled", "someone", 4)
    assert line["prompt"] == "secret"
    assert "secret" not in json.dumps(without)
