"""Streams: the updates of requests as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from sse_starlette import EventSourceResponse

from unmask.runs.files import strict_json
from unmask.serve.engine import Updates
from unmask.serve.errors import status_and_body
from unmask.serve.openai_format import Replies, dumps
from unmask.serve.request import Completed, Update

PING = 15  # seconds after which a quiet stream shows that it is alive
STUCK = 60.0  # seconds after which a client that takes nothing from its stream is let go


def streamed(events: AsyncIterator[dict[str, str]], every: Sequence[Updates]) -> EventSourceResponse:
    """A client that goes away gives its requests up, even before the first event."""

    async def give_up(message: object) -> None:
        for updates in every:
            updates.cancel()

    return EventSourceResponse(
        events,
        ping=PING,
        sep="\n",
        send_timeout=STUCK,
        headers={"cache-control": "no-store"},
        client_close_handler_callable=give_up,
    )


async def chunk_events(replies: Replies, every: Sequence[Updates], usage: bool) -> AsyncIterator[dict[str, str]]:
    answers: dict[int, Completed] = {}
    try:
        for index in range(len(every)) if replies.chat else ():
            yield {"data": dumps(replies.opening(index))}
        async for index, update in merged(every):
            if update.draft is not None:
                yield {"event": "draft", "data": dumps(replies.draft(index, update.step, update.draft))}
            if update.text:
                yield {"data": dumps(replies.piece(index, update.text))}
            if update.answer is not None:
                answers[index] = update.answer
                yield {"data": dumps(replies.closing(index, update.answer))}
        if usage:
            yield {"data": dumps(replies.last([answers[index] for index in sorted(answers)]))}
        yield {"data": "[DONE]"}
    except Exception as error:
        yield {"data": dumps(status_and_body(error)[1])}
    finally:
        for updates in every:
            updates.cancel()


async def trace_events(updates: Updates) -> AsyncIterator[dict[str, str]]:
    """The lines of a trace file as events: header, step …, end."""
    try:
        async for update in updates:
            if update.line is not None:
                yield {"event": "step" if update.step else "header", "data": strict_json(update.line)}
            if (answer := update.answer) is not None:
                output = answer.output
                texts = [row.text for row in output.hypotheses]
                end = {"chosen": output.chosen, "text": answer.text, "texts": texts, "cost": vars(output.cost)}
                yield {"event": "end", "data": dumps({"end": end})}
    except Exception as error:
        yield {"event": "error", "data": dumps(status_and_body(error)[1])}
    finally:
        updates.cancel()


async def merged(every: Sequence[Updates]) -> AsyncIterator[tuple[int, Update]]:
    """The updates of several requests as they come, each with the number of its request."""
    events: asyncio.Queue[tuple[int, Update | Exception | None]] = asyncio.Queue()

    async def follow(index: int, updates: Updates) -> None:
        try:
            async for update in updates:
                events.put_nowait((index, update))
            events.put_nowait((index, None))
        except Exception as error:
            events.put_nowait((index, error))

    tasks = [asyncio.ensure_future(follow(index, updates)) for index, updates in enumerate(every)]
    try:
        left = len(tasks)
        while left:
            index, event = await events.get()
            if isinstance(event, Exception):
                raise event
            if event is None:
                left -= 1
            else:
                yield index, event
    finally:
        for task in tasks:
            task.cancel()
