"""A running server, through the official client where that can ask, and by hand where it cannot."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import openai
import pytest
import torch

import unmask
from tests.serve.conftest import Served
from tests.serve.driver import failing, until
from unmask.serve.limits import RequestLimits
from unmask.serve.scheduler import Scheduler

QUESTION: Any = [{"role": "user", "content": "abc"}]
DECODER = "random(temperature=0.7)"


@pytest.fixture(scope="module")
def client(served):
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)


def alone(model, **options) -> unmask.Output:
    chosen: Any = {"decoder": DECODER, "length": 6, **options}
    return unmask.generate(model, "abc", **chosen)


def test_the_official_client_gets_what_generate_gives(model, client):
    options: Any = {"model": "toy", "max_tokens": 6, "n": 2, "seed": 3, "extra_body": {"decoder": DECODER}}
    reply = client.chat.completions.create(messages=QUESTION, logprobs=True, **options)
    seeds = [3, unmask.reseed(3, 1)]
    outputs = [alone(model, seed=seed) for seed in seeds]
    assert [choice.message.content for choice in reply.choices] == [output.text for output in outputs]
    assert reply.usage.forward_passes == sum(output.cost.forward_passes for output in outputs)
    assert reply.usage.prompt_tokens == 3
    scores = [sum(entry.logprob for entry in choice.logprobs.content) for choice in reply.choices]
    assert reply.usage.completion_tokens == sum(len(choice.logprobs.content) for choice in reply.choices)
    for choice, score, output in zip(reply.choices, scores, outputs, strict=True):
        if choice.finish_reason == "length":  # then the text is the whole row, and so is its score
            assert score == pytest.approx(output.score)
    text = client.completions.create(prompt="abc", logprobs=0, **options)
    assert [choice.text for choice in text.choices] == [output.text for output in outputs]
    assert "".join(text.choices[0].logprobs.tokens) == outputs[0].text
    assert [entry.id for entry in client.models.list()] == ["toy"]
    assert client.models.retrieve("toy").owned_by == "unmask"


def test_a_stream_is_the_answer_in_pieces(model, client):
    options: Any = {"model": "toy", "max_tokens": 6, "stream": True, "stream_options": {"include_usage": True}}
    more: Any = {"decoder": "ots(beams=2, block=2)", "stream_mode": "denoise"}
    chunks = list(client.chat.completions.create(messages=QUESTION, n=2, extra_body=more, **options))
    output = alone(model, decoder="ots(beams=2, block=2)")
    pieces = [choice for chunk in chunks for choice in chunk.choices]
    text = "".join(choice.delta.content or "" for choice in pieces if choice.index == 0)
    drafts = [choice.draft for choice in pieces if choice.index == 0 and "draft" in choice.model_extra]
    assert text == drafts[-1] == output.text
    assert "░" in drafts[0]
    assert sorted(choice.index for choice in pieces if choice.finish_reason) == [0, 1]
    assert chunks[-1].usage.forward_passes >= output.cost.forward_passes
    text = client.completions.create(prompt="abc", extra_body={"decoder": "ar"}, **options)
    assert "".join(choice.text for chunk in text for choice in chunk.choices) == alone(model, decoder="ar").text


@pytest.mark.anyio
async def test_the_asynchronous_client_is_cancelled_and_its_rows_are_freed(model, served):
    long: Any = {"model": "toy", "messages": QUESTION, "max_tokens": 512, "extra_body": {"decoder": "ots(block=1)"}}
    drafts = {**long, "extra_body": {**long["extra_body"], "stream_mode": "denoise"}}
    short = {**long, "max_tokens": 4, "extra_body": {"decoder": "ar"}}
    engine = served.engine
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        await until(lambda: engine.running == 0)  # a request of an earlier test counts until the end of its last step
        whole = asyncio.create_task(client.chat.completions.create(**long))
        await until(lambda: engine.running == 1)
        whole.cancel()
        await until(lambda: engine.running == 0)
        stream = await client.chat.completions.create(stream=True, **drafts)
        await until(lambda: engine.running == 1)
        await stream.close()
        await until(lambda: engine.running == 0)
        reply = await client.chat.completions.create(**short)
    assert reply.choices[0].message.content == alone(model, decoder="ar", length=4).text


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"model": "toyy"}, openai.NotFoundError, "unknown model 'toyy': did you mean 'toy'?"),
        ({"top_p": 0.5}, openai.BadRequestError, "top_p=0.5 is not supported: use the decoder `dream`"),
        ({"top_logprobs": 3, "logprobs": True}, openai.BadRequestError, "top_logprobs=3 is not supported"),
        ({"extra_body": {"decodr": "ar"}}, openai.BadRequestError, "unknown setting 'decodr': did you mean 'decoder'?"),
        ({"extra_body": {"decoder": "otss"}}, openai.BadRequestError, "did you mean 'ots'"),
        ({"extra_body": {"stream_mode": "denoise"}}, openai.BadRequestError, "is for streams"),
        ({"temperature": 1, "extra_body": {"decoder": "threshold"}}, openai.BadRequestError, "has no temperature"),
        ({"max_tokens": 4000}, openai.BadRequestError, "max_tokens must be at most 1024 on this server, got 4000"),
        ({"max_completion_tokens": 4000}, openai.BadRequestError, "max_completion_tokens must be at most 1024"),
        ({"n": 17}, openai.BadRequestError, "n must be at most 16 on this server, got 17"),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "writes from left to right"),
        ({"messages": [{"role": "tool", "content": "x"}]}, openai.BadRequestError, "messages.0.role"),
        ({"extra_body": {"timeout": 0.001}}, openai.APIStatusError, "took more than 0.001 s"),
    ],
)
def test_errors_have_the_client_s_types_and_one_sentence(client, options, kind, sentence):
    call: Any = {"model": "toy", "messages": QUESTION, **options}
    with pytest.raises(kind) as refused:
        client.chat.completions.create(**call)
    assert sentence in refused.value.body["message"]
    assert refused.value.body["type"]


def test_odd_bodies_get_the_right_status(served):
    with httpx.Client(base_url=served.url) as http:
        path = "/v1/completions"
        assert "Content-Type" in http.post(path, content=b"{}").json()["error"]["message"]
        post = partial(http.post, headers={"content-type": "application/json"})
        assert post(path, content=b"{bad").json()["error"]["message"].startswith("the body is not JSON")
        for prompt in (b'"\\ud800"', b'"\xff"', b"[" * 100_000):
            assert post(path, content=b'{"model": "toy", "prompt": ' + prompt + b"}").status_code == 400
        for prompt in ("☃", "", [0, 1, 10**9], [-5]):  # a toy reads letters only
            assert post(path, json={"model": "toy", "prompt": prompt}).status_code == 400
        assert post(path, json={"model": "toy", "prompt": "a", "n": True}).status_code == 400
        assert http.get(path).status_code == 405
        assert http.get("/nowhere").json()["error"]["type"] == "invalid_request_error"
        assert http.get("/healthz").json() == {"status": "ok"}


@contextmanager
def begun(served: Served, length: int) -> Iterator[socket.socket]:
    """A connection that has sent the head of a request and the first byte of its body."""
    address = httpx.URL(served.url)
    with socket.create_connection((address.host, address.port or 80)) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{" % length)
        yield raw


def test_large_bodies_are_refused_before_they_are_read(served):
    with begun(served, 100_000_000) as raw:
        assert raw.recv(12) == b"HTTP/1.1 413"
    parts = (b"x" * 1_000_000 for _ in range(5))
    assert httpx.post(f"{served.url}/v1/completions", content=parts).status_code == 413


def test_a_suffix_and_a_template_are_fixed_text(model, client):
    more: Any = {"decoder": "low-confidence"}
    reply = client.completions.create(model="toy", prompt="abc", suffix="yz", max_tokens=4, extra_body=more)
    whole = unmask.fill(model, "abc<mask:4>yz", decoder="low-confidence").text
    assert f"abc{reply.choices[0].text}yz" == whole
    more["template"] = "q<mask:2>r<mask:2>"
    chat = client.chat.completions.create(model="toy", messages=QUESTION, extra_body=more)
    whole = unmask.fill(model, "abcq<mask:2>r<mask:2>", decoder="low-confidence").text
    assert f"abc{chat.choices[0].message.content}" == whole


def test_frames_are_the_lines_of_a_trace(model, served):
    body = {"model": "toy", "prompt": "abc", "length": 6, "decoder": "ots(beams=2, block=3)"}
    lines = httpx.post(f"{served.url}/api/decode", json=body).text.splitlines()
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    trace = unmask.generate(model, "abc", length=6, decoder="ots(beams=2, block=3)", trace=True).trace
    assert trace is not None
    assert events == ["header", *["step"] * len(trace.steps), "end"]
    assert {**data[0], "words": None} == {**trace.header, "words": None}
    assert [step["writes"] for step in data[1:-1]] == [step["writes"] for step in trace.steps]
    words = {token: word for line in data[:-1] for token, word in line["words"].items()}
    assert trace.end["words"].items() <= words.items()
    assert data[-1]["end"]["texts"] == trace.end["texts"]


def test_a_key_locks_everything_but_health_and_a_full_queue_says_when_to_return(model):
    with Served(model, RequestLimits(running=1, waiting=0), keys=("secret",)) as served:
        assert httpx.get(f"{served.url}/healthz").status_code == httpx.get(f"{served.url}/readyz").status_code == 200
        assert httpx.get(f"{served.url}/metrics").status_code == 401
        wrong = openai.OpenAI(base_url=f"{served.url}/v1", api_key="secre", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            wrong.models.list()
        right = openai.OpenAI(base_url=f"{served.url}/v1", api_key="secret", max_retries=0)
        with pytest.raises(openai.RateLimitError) as refused:
            right.completions.create(model="toy", prompt="abc")
        assert int(refused.value.response.headers["retry-after"]) >= 1
        served.engine.queue.max_waiting = 1
        right.completions.create(model="toy", prompt="abc", max_tokens=2, extra_body={"decoder": "ar"})
        metrics = httpx.get(f"{served.url}/metrics", headers={"authorization": "Bearer secret"}).text
        assert 'unmask_requests_total{model="toy",outcome="done"} 1.0' in metrics
        assert 'unmask_batch_size_count{model="toy"} 2.0' in metrics
        assert 'unmask_waiting_requests{model="toy"} 0.0' in metrics
        served.engine.drain()
        assert httpx.get(f"{served.url}/readyz").status_code == 503
        with pytest.raises(openai.InternalServerError) as closing:
            right.completions.create(model="toy", prompt="abc")
        assert closing.value.status_code == 503


def test_a_client_that_never_sends_its_body_does_not_hold_up_others(served, client):
    with begun(served, 100):
        time.sleep(0.05)
        assert client.completions.create(model="toy", prompt="abc", max_tokens=2).choices[0].finish_reason


def test_a_body_that_does_not_come_is_refused(served, monkeypatch):
    monkeypatch.setattr("unmask.serve.app.BODY_SECONDS", 0.05)
    with begun(served, 100) as slow:
        assert slow.recv(12) == b"HTTP/1.1 408"


def test_a_device_that_failed_makes_the_server_unhealthy(model):
    with Served(model) as served:
        [replica] = served.engine.replicas
        assert isinstance(replica, Scheduler)
        replica.model = failing(model, torch.AcceleratorError("CUDA error"))
        body = {"model": "toy", "prompt": "abc"}
        assert httpx.post(f"{served.url}/v1/completions", json=body).status_code == 500
        replica.join(10.0)
        assert httpx.post(f"{served.url}/v1/completions", json=body).status_code == 503
        assert httpx.get(f"{served.url}/readyz").status_code == httpx.get(f"{served.url}/healthz").status_code == 503
