"""What stands before the application: the key, and the size and time of a body."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from unmask.serve.refusals import error_body
from unmask.serve.replies import dumps

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
            return await _refuse(send, 401, sentence, "authentication_error", "invalid_api_key")
        too_large = f"the request has more than {self.largest} bytes: shorten it"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > self.largest:
            return await _refuse(send, 413, too_large, "invalid_request_error", "request_too_large")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._body(receive)
        except TimeoutError:
            sentence = f"the request did not arrive within {BODY_SECONDS:g} s"
            return await _refuse(send, 408, sentence, "timeout_error", "slow_request")
        if body is None:
            return await _refuse(send, 413, too_large, "invalid_request_error", "request_too_large")
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


async def _refuse(send: Send, status: int, sentence: str, kind: str, code: str) -> None:
    body = dumps(error_body(sentence, kind, code)).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
