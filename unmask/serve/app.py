"""What stands before the application: the key, and the size and time of a body. The HTTP application: OpenAI's interface, frames for a page, health and metrics."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi import Request as Call
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from unmask.core import decoder
from unmask.errors import UnmaskError, nearest
from unmask.serve.engine import AsyncEngine, Updates
from unmask.serve.errors import (
    BadBodyError,
    BusyError,
    ClientGoneError,
    RefusedError,
    UnknownModelError,
    error_body,
    status_and_body,
)
from unmask.serve.events import chunk_events, streamed, trace_events
from unmask.serve.openai_format import Replies, dumps
from unmask.serve.operations import Metrics
from unmask.serve.request import Completed, Request
from unmask.serve.schemas import ChatCompletion, Completion, Decode, Settings, TextCompletion
from unmask.version import __version__
from unmask.view.playground import HEADERS, describe_registry, playground_page
from unmask.view.trace_page import blank_page

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

OPEN = ("/", "/page.html", "/healthz", "/readyz")  # without a key
BODY_SECONDS = 30.0  # a client may take to send its request


class Guarded:
    """Refuses requests without a key, and bodies that are too large or too slow, before anything reads them."""

    def __init__(self, app: Application, keys: Sequence[str], largest: int):
        self.app, self.largest = app, largest
        self.keys = [key.encode() for key in keys]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.lower(): value for name, value in scope["headers"]}
        if self.keys and scope["path"] not in OPEN and not self._knows(headers.get(b"authorization", b"")):
            sentence = "the API key is missing or wrong: send it as `Authorization: Bearer …`"
            return await _send_error(send, 401, sentence, "authentication_error", "invalid_api_key")
        too_large = f"the request has more than {self.largest} bytes: shorten it"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self.largest:
            return await _send_error(send, 413, too_large, "invalid_request_error", "request_too_large")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._body(receive)
        except TimeoutError:
            sentence = f"the request did not arrive within {BODY_SECONDS:g} s"
            return await _send_error(send, 408, sentence, "timeout_error", "slow_request")
        if body is None:
            return await _send_error(send, 413, too_large, "invalid_request_error", "request_too_large")
        return await self.app(scope, _replay(body, receive), send)

    def _knows(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        return scheme.lower() == b"bearer" and any(hmac.compare_digest(given.strip(), key) for key in self.keys)

    async def _body(self, receive: Receive) -> bytes | None:
        """None where it is too large."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the client went away
                return b"".join(parts)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.largest:
                return None
            if not message.get("more_body"):
                return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return parts.pop() if parts else await receive()

    return again


async def _send_error(send: Send, status: int, sentence: str, kind: str, code: str) -> None:
    body = dumps(error_body(sentence, kind, code)).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


log = logging.getLogger("unmask.serve")
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}
    for status, text in {
        400: "The request cannot be honoured",
        401: "The key is missing or wrong",
        404: "There is no such model",
        408: "The request took too long",
        413: "The request is too large",
        429: "Too many requests are waiting",
        503: "The server is shutting down or out of memory",
    }.items()
}

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, whole or as events", "content": {"application/json": {}, "text/event-stream": {}}}
}


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dumps(content).encode()


def make_app(engines: Mapping[str, AsyncEngine], metrics: Metrics, keys: Sequence[str] = ()) -> Application:
    """The application of some engines by the names they are served under. Its end is theirs."""
    routes = Routes(engines, metrics)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.gather(*(engine.close() for engine in engines.values()))

    app = FastAPI(title="unmask", version=__version__, lifespan=life, docs_url=None, redoc_url=None, responses=REFUSALS)
    for name, engine in engines.items():
        metrics.follow(name, lambda engine=engine: engine.waiting, lambda engine=engine: engine.running)
    app.get("/", response_class=HTMLResponse)(routes.playground)
    app.get("/page.html", response_class=HTMLResponse)(routes.page)
    app.get("/healthz")(routes.healthy)
    app.get("/readyz")(routes.ready)
    app.get("/metrics", response_class=PlainTextResponse)(routes.metrics_text)
    app.get("/v1/models")(routes.list_models)
    app.get("/v1/models/{name:path}")(routes.show_model)
    app.post("/v1/completions", responses=STREAMED)(routes.complete)
    app.post("/v1/chat/completions", responses=STREAMED)(routes.chat)
    app.get("/api/registry")(routes.registry)
    app.post("/api/decode", responses=STREAMED)(routes.decode)
    app.openapi = partial(_schema, app, app.openapi, list(engines))
    app.exception_handler(UnmaskError)(_refuse)
    app.exception_handler(RequestValidationError)(_refuse_body)
    app.exception_handler(HTTPException)(_refuse_call)
    app.exception_handler(Exception)(_fail)
    largest = max(engine.limits.max_body for engine in engines.values())
    return Guarded(app, keys, largest)


def _schema(app: FastAPI, make: Callable[[], dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """FastAPI's own, with the models there are and without its 422, which is a 400 here."""
    schema = make()
    for body in schema["components"]["schemas"].values():
        if "model" in body.get("properties", {}):
            body["properties"]["model"]["enum"] = names
    for path in schema["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    app.openapi_schema = schema
    return schema


class Routes:
    def __init__(self, engines: Mapping[str, AsyncEngine], metrics: Metrics):
        self.engines, self.metrics, self.began = engines, metrics, int(time.time())

    async def playground(self) -> Response:
        return HTMLResponse(playground_page(), headers=HEADERS)

    async def page(self) -> Response:
        """Without traces: a browser puts them in, and saves it."""
        return HTMLResponse(blank_page(), headers=HEADERS)

    async def registry(self) -> dict[str, Any]:
        """What the playground's forms are made from."""
        models = [{"id": name, "length": engine.default_length} for name, engine in self.engines.items()]
        chosen = next(iter(self.engines.values())).default_decoder
        default = chosen if isinstance(chosen, str) else decoder.spec(chosen)
        return {"models": models, "default": default, **describe_registry()}

    async def healthy(self) -> Response:
        broken = [name for name, engine in self.engines.items() if engine.broken]
        return Json({"status": f"the device of {broken[0]} failed"}, 503) if broken else Json({"status": "ok"})

    async def ready(self) -> Response:
        ready = all(engine.ready for engine in self.engines.values())
        return Json({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def metrics_text(self) -> Response:
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def list_models(self) -> dict[str, Any]:
        return {"object": "list", "data": [self._model(name) for name in self.engines]}

    async def show_model(self, name: str) -> dict[str, Any]:
        self._engine(name)
        return self._model(name)

    async def complete(self, body: TextCompletion, call: Call) -> Response:
        body.check()
        prompt, template = body.one_prompt(), body.template
        length = body.length
        if body.suffix:
            if template is not None or isinstance(prompt, list) or "<mask" in body.suffix:
                raise UnmaskError("suffix is text without gaps, after a prompt that is text: leave out the template")
            gap = length or self._engine(body.model).default_length
            template, length = f"<mask:{gap}>{body.suffix}", 0
        return await self._answer(body, call, prompt, template, length, body.suffix or "")

    async def chat(self, body: ChatCompletion, call: Call) -> Response:
        body.check()
        messages = [message.plain() for message in body.messages]
        return await self._answer(body, call, messages, body.template, body.length)

    async def decode(self, body: Decode, call: Call) -> Response:
        engine = self._engine(body.model)
        request = await asyncio.to_thread(
            engine.request,
            body.one_prompt(),
            template=body.template,
            show="trace",
            client=_client(body, call),
            **body.decoding(engine.default_decoder, body.length),
        )
        updates = engine.submit(request, body.timeout)
        return streamed(trace_events(updates), [updates])

    async def _answer(
        self, body: Completion, call: Call, prompt: Any, template: str | None, length: int | None, suffix: str = ""
    ) -> Response:
        engine = self._engine(body.model)
        if length is not None and length > (most := engine.limits.max_length):
            sentence = f"{body.length_name}={length} is above this server's limit: choose at most {most}"
            raise BadBodyError(sentence, body.length_name)
        show = ("drafts" if body.stream_mode == "denoise" else "text") if body.stream else None
        grammar = body.response_format.grammar() if body.response_format else None
        request = await asyncio.to_thread(  # tokenizers and grammars may take their time
            engine.request,
            prompt,
            template=template,
            suffix=suffix,
            grammar=grammar,
            show=show,
            client=_client(body, call),
            **body.decoding(engine.default_decoder, length),
        )
        limits = engine.limits
        if body.n > limits.max_choices or body.n * request.rows > limits.max_forward_passes:
            raise UnmaskError(f"n={body.n} is above this server's limits: choose less")
        replies = Replies(body.model, engine.model, isinstance(body, ChatCompletion), body.wants_logprobs)
        every = submit(engine, request, body.n, body.timeout)
        if not body.stream:
            return Json(replies.whole(await _unless_gone(call, every)))
        usage = body.stream_options is not None and body.stream_options.include_usage
        return streamed(chunk_events(replies, every, usage), every)

    def _engine(self, name: str) -> AsyncEngine:
        if name not in self.engines:
            raise UnknownModelError(f"there is no model {name!r} here: {nearest(name, self.engines)}")
        return self.engines[name]

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self.began, "owned_by": "unmask"}


def submit(engine: AsyncEngine, request: Request, count: int, timeout: float | None) -> list[Updates]:
    """`count` independent answers; the i-th is that of a request under `reseed(seed, i)`."""
    every: list[Updates] = []
    try:
        for number in range(count):
            every.append(engine.submit(request.sample(number), timeout))
    except RefusedError:
        for updates in every:
            updates.cancel()
        raise
    return every


async def _unless_gone(call: Call, every: Sequence[Updates]) -> list[Completed]:
    """All answers; given up when the client goes away or one of them fails."""
    answers = asyncio.gather(*(updates.answer() for updates in every))
    gone = asyncio.ensure_future(_gone(call))
    try:
        await asyncio.wait({answers, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise ClientGoneError("the client went away")
        return answers.result()
    finally:
        gone.cancel()
        answers.cancel()
        for updates in every:
            updates.cancel()


async def _gone(call: Call) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass


def _client(body: Settings, call: Call) -> str:
    return body.user or (call.client.host if call.client else "")


async def _refuse(call: Call, error: Exception) -> Response:
    status, body = status_and_body(error)
    log.info("refused", extra={"facts": {"path": call.url.path, "status": status}})
    return Json(body, status, {"retry-after": str(error.retry_after)} if isinstance(error, BusyError) else None)


async def _fail(call: Call, error: Exception) -> Response:
    return Json(status_and_body(error)[1], 500)


async def _refuse_call(call: Call, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = f"{call.method} {call.url.path}: {error.detail}"
    return Json(error_body(sentence, "invalid_request_error"), error.status_code, error.headers)


async def _refuse_body(call: Call, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:] if not str(part).startswith("list["))
    if first["type"] == "extra_forbidden":
        known = {"/v1/completions": TextCompletion, "/v1/chat/completions": ChatCompletion, "/api/decode": Decode}
        model = known.get(call.url.path)
        hint = nearest(where, model.model_fields) if model and "." not in where else "leave it out"
        sentence = f"unknown setting {where!r}: {hint}"
    elif first["type"] == "json_invalid":
        where, sentence = "", f"the body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}"
    else:
        sentence = f"{where or 'the body'}: {first['msg'].removeprefix('Value error, ')}"
    return await _refuse(call, BadBodyError(sentence, where or None))
