"""The HTTP application: OpenAI's interface, traces for the playground, health and metrics, behind a check of keys."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi import Request as Call
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unmask.core import decoder
from unmask.errors import UnmaskError, nearest
from unmask.runs.files import strict_json
from unmask.serve.engine import AsyncEngine, Updates
from unmask.serve.limits import CODES, RefusedError
from unmask.serve.request import Completed, Request
from unmask.serve.schemas import (
    ChatCompletion,
    Completion,
    Decode,
    Replies,
    Settings,
    TextCompletion,
    chunk_events,
    error_body,
    event_stream,
    status_and_body,
    trace_events,
)
from unmask.version import __version__
from unmask.view.playground import HEADERS, describe_registry, playground_page
from unmask.view.trace_page import blank_page

PUBLIC = ("/", "/page.html", "/healthz", "/readyz")  # paths that need no key
BODY_SECONDS = 30.0  # seconds that a client may take to send its request
log = logging.getLogger("unmask.serve")


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return strict_json(content).encode()


class Guard:
    """Middleware that refuses requests without a key, and bodies that are too large or too slow."""

    def __init__(self, app: ASGIApp, keys: Sequence[str], max_body: int):
        self.app, self.max_body = app, max_body
        self.keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            unread = [{"type": "http.request", "body": await self._checked_body(scope, receive), "more_body": False}]
        except RefusedError as error:
            headers = {"connection": "close"} | ({"www-authenticate": "Bearer"} if error.status == 401 else {})
            return await Json(status_and_body(error)[1], error.status, headers)(scope, receive, send)

        async def replay() -> Message:
            """Return the body that was read, then what follows it."""
            return unread.pop() if unread else await receive()

        return await self.app(scope, replay, send)

    async def _checked_body(self, scope: Scope, receive: Receive) -> bytes:
        headers = {name.lower(): value for name, value in scope["headers"]}
        if self.keys and scope["path"] not in PUBLIC and not self._knows(headers.get(b"authorization", b"")):
            message = "the API key is missing or wrong: send it as `Authorization: Bearer …`"
            raise RefusedError(message, "invalid_api_key")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self.max_body:
            raise self._too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._read(receive)
        except TimeoutError:
            raise RefusedError(f"the request did not arrive within {BODY_SECONDS:g} s", "slow_request") from None

    def _knows(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        return scheme.lower() == b"bearer" and any(hmac.compare_digest(given.strip(), key) for key in self.keys)

    async def _read(self, receive: Receive) -> bytes:
        parts, more = bytearray(), True
        while more:
            message = await receive()
            parts += message.get("body", b"")
            more = message.get("more_body", False)  # none if the client has disconnected
            if len(parts) > self.max_body:
                raise self._too_large()
        return bytes(parts)

    def _too_large(self) -> RefusedError:
        return RefusedError(f"the request must have at most {self.max_body} bytes: shorten it", "request_too_large")


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": {"type": "object"}}}}
    for status, _ in CODES.values()
    if status != CODES["client_gone"][0]  # which no client sees
}

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, whole or as events", "content": {"application/json": {}, "text/event-stream": {}}}
}


def make_app(engines: Mapping[str, AsyncEngine], metrics: Callable[[], bytes], keys: Sequence[str] = ()) -> ASGIApp:
    """Make the application for engines by the names of their models; it closes them at its end.

    `metrics` returns the text for Prometheus.
    """
    routes = Routes(engines, metrics)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.gather(*(engine.close() for engine in engines.values()))

    app = FastAPI(title="unmask", version=__version__, lifespan=life, docs_url=None, redoc_url=None, responses=REFUSALS)
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
    app.exception_handler(Exception)(_refuse)
    return Guard(app, keys, max(engine.limits.max_body for engine in engines.values()))


def _schema(app: FastAPI, make: Callable[[], dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """Return FastAPI's schema with the names of the models, and without its 422, which is a 400 here."""
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
    def __init__(self, engines: Mapping[str, AsyncEngine], metrics: Callable[[], bytes]):
        self.engines, self.metrics, self.began = engines, metrics, int(time.time())

    async def playground(self) -> Response:
        return HTMLResponse(playground_page(), headers=HEADERS)

    async def page(self) -> Response:
        """Return the trace page without traces: the playground puts them in and saves it."""
        return HTMLResponse(blank_page(), headers=HEADERS)

    async def registry(self) -> dict[str, Any]:
        """Return the models, decoders and settings for the forms of the playground."""
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
        return Response(self.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def list_models(self) -> dict[str, Any]:
        return {"object": "list", "data": [self._model(name) for name in self.engines]}

    async def show_model(self, name: str) -> dict[str, Any]:
        self._engine(name)
        return self._model(name)

    async def complete(self, body: TextCompletion, call: Call) -> Response:
        prompt, template, length = body.one_prompt(), body.template, body.length
        if body.suffix:
            if template is not None or isinstance(prompt, list) or "<mask" in body.suffix:
                raise UnmaskError("suffix is text without gaps, after a prompt that is text: leave out the template")
            gap = length or self._engine(body.model).default_length
            template, length = f"<mask:{gap}>{body.suffix}", 0
        more = {"template": template, "length": length, "suffix": body.suffix or ""}
        return await self._answer(body, call, prompt, **more)

    async def chat(self, body: ChatCompletion, call: Call) -> Response:
        return await self._answer(body, call, [message.plain() for message in body.messages])

    async def decode(self, body: Decode, call: Call) -> Response:
        engine = self._engine(body.model)
        request = await _request(engine, body, call, body.one_prompt(), show="trace")
        updates = engine.submit(request, body.timeout)
        return event_stream(trace_events(updates), updates, "error")

    async def _answer(self, body: Completion, call: Call, prompt: Any, **more: Any) -> Response:
        body.check()
        engine = self._engine(body.model)
        limits = engine.limits
        if body.length is not None and body.length > limits.max_length:
            name, most = body.length_name, limits.max_length
            raise RefusedError(f"{name} must be at most {most} on this server, got {body.length}", param=name)
        show = ("drafts" if body.stream_mode == "denoise" else "text") if body.stream else None
        grammar = body.response_format.grammar() if body.response_format else None
        request = await _request(engine, body, call, prompt, show=show, grammar=grammar, **more)
        most = min(limits.max_choices, limits.max_forward_passes // request.max_forward_passes)
        if body.n > most:
            raise UnmaskError(f"n must be at most {most} on this server, got {body.n}")
        replies = Replies(body.model, engine.model, isinstance(body, ChatCompletion), body.wants_logprobs)
        updates = engine.submit(request, body.timeout, body.n)
        if not body.stream:
            return Json(replies.whole(await _unless_gone(call, updates)))
        usage = body.stream_options is not None and body.stream_options.include_usage
        return event_stream(chunk_events(replies, updates, usage), updates)

    def _engine(self, name: str) -> AsyncEngine:
        if name not in self.engines:
            raise RefusedError(f"unknown model {name!r}: {nearest(name, self.engines)}", "model_not_found")
        return self.engines[name]

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self.began, "owned_by": "unmask"}


async def _request(engine: AsyncEngine, body: Settings, call: Call, prompt: Any, **more: Any) -> Request:
    client = body.user or (call.client.host if call.client else "")
    options = {**body.decoding(engine.default_decoder), "template": body.template, "client": client, **more}
    return await asyncio.to_thread(engine.request, prompt, **options)  # tokenizers and grammars take time


async def _unless_gone(call: Call, updates: Updates) -> list[Completed]:
    """Return all answers. All requests are cancelled when the client disconnects or one of them fails."""
    answers, gone = asyncio.ensure_future(updates.answers()), asyncio.ensure_future(_gone(call))
    gone.add_done_callback(lambda _: answers.cancel())
    try:
        return await answers
    except asyncio.CancelledError:
        if gone.done():
            raise RefusedError("the client disconnected", "client_gone") from None
        raise
    finally:
        gone.cancel()
        updates.cancel()


async def _gone(call: Call) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass


async def _refuse(call: Call, error: Exception) -> Response:
    status, body = status_and_body(error)
    log.info("refused", extra={"facts": {"path": call.url.path, "status": status}})
    seconds = getattr(error, "retry_after", None)
    return Json(body, status, {"retry-after": str(seconds)} if seconds else None)


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
    return await _refuse(call, RefusedError(sentence, param=where or None))
