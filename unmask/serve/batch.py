"""A batch: requests with equal settings, decoded together in a coroutine that stops at every forward pass.

The work of a decoder between two forward passes is done once for the whole batch, and one forward pass may serve
several batches. Rows of a forward pass do not see one another, so a result does not depend on what shares it; on a CPU
not in a single bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.core import Beliefs, CacheView, Canvas, Decoded, Denoiser, Wrapper
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.serve.request import PendingRequest
from unmask.serve.stream import RequestStream
from unmask.serve.structured import Constrained

try:
    from greenlet import GreenletExit, greenlet
except ImportError:
    raise UnmaskError("the engine needs greenlet: pip install 'unmask[serve]'") from None

MAX_PADDING = 2  # the widest row of a forward pass is at most this many times as wide as the narrowest


@dataclass(frozen=True)
class Forward:
    """A forward pass that a decoder waits for."""

    denoiser: Denoiser
    canvas: Canvas
    at: Columns
    cache: CacheView | None
    requests: int = 1  # requests that wait for its result

    def __len__(self) -> int:
        return len(self.canvas)

    def split(self, size: int) -> list[Forward]:
        """Split into parts of at most `size` rows. One with a KV cache is not split."""
        if len(self) <= size or self.denoiser.refresh is not None:
            return [self]
        return [
            replace(self, canvas=self.canvas.rows(rows), at=self.at[rows], requests=min(self.requests, len(rows)))
            for rows in torch.arange(len(self), device=self.at.device).split(size)
        ]

    def joins(self, other: Forward) -> bool:
        """Return whether both can be run as one. A KV cache belongs to the rows of one batch."""
        narrow, wide = sorted((self.canvas.width, other.canvas.width))
        cached = self.denoiser.refresh is not None
        return not cached and self.denoiser is other.denoiser and wide <= MAX_PADDING * narrow


def run_together(forwards: Sequence[Forward]) -> list[Beliefs]:
    """Run forward passes that join as one, and return the result of each."""
    first = forwards[0]
    if len(forwards) == 1:
        return [first.denoiser(first.canvas, first.at, first.cache)]
    beliefs = first.denoiser(*_merge(forwards))
    results, start = [], 0
    for forward in forwards:
        results.append(_slice(beliefs, start, *forward.at.shape))
        start += len(forward)
    return results


def _merge(forwards: Sequence[Forward]) -> tuple[Canvas, Columns]:
    """Pad all rows on the left to the widest, and their columns by repeating the last one."""
    width = max(forward.canvas.width for forward in forwards)
    most = max(forward.at.shape[1] for forward in forwards)
    tokens, pads, ats = [], [], []
    for forward in forwards:
        extra = width - forward.canvas.width
        tokens.append(pad(forward.canvas.tokens, (extra, 0)))
        pads.append(forward.canvas.pad + extra)
        at = forward.at + extra
        ats.append(torch.cat([at, at[:, -1:].expand(-1, most - at.shape[1])], dim=1))
    together, own = torch.cat(tokens), forwards[0].canvas
    canvas = replace(
        own,
        tokens=together,
        order=torch.zeros_like(together),
        logp=torch.zeros_like(together, dtype=own.logp.dtype),
        pad=torch.cat(pads),
        problem=torch.arange(len(together), device=together.device),
        ragged=any(forward.canvas.ragged or forward.canvas.width < width for forward in forwards),
    )
    return canvas, torch.cat(ats)


def _slice(beliefs: Beliefs, first: int, rows: int, width: int) -> Beliefs:
    """Return the beliefs of `rows` rows from `first` on, at their first `width` columns."""
    most = beliefs.shape[1]

    def read(places: Tensor) -> Tensor:
        return beliefs.read((first + places // width) * most + places % width)

    computed = None if beliefs.computed is None else beliefs.computed[first : first + rows]
    return replace(beliefs, read=read, shape=(rows, width), computed=computed)


def concatenate(parts: Sequence[Beliefs]) -> Beliefs:
    """Join the results of the parts of a forward pass."""
    first, width = parts[0], parts[0].shape[1]
    if len(parts) == 1:
        return first
    ends = torch.tensor([part.shape[0] for part in parts], device=first.device).cumsum(0)

    def read(places: Tensor) -> Tensor:
        owner = torch.searchsorted(ends, places // width, right=True)
        pieces, order = [], []
        for number, part in enumerate(parts):
            own = (owner == number).nonzero()[:, 0]
            before = (int(ends[number]) - part.shape[0]) * width
            pieces.append(part.read(places[own] - before))
            order.append(own)
        return torch.cat(pieces)[torch.cat(order).argsort()]

    counts = [part.computed for part in parts if part.computed is not None]
    computed = torch.cat(counts) if len(counts) == len(parts) else None
    return replace(first, read=read, shape=(int(ends[-1]), width), computed=computed)


class Batch:
    """Requests decoded by one decoder in a coroutine.

    `forward` is the forward pass that the decoder waits for, None once it has ended. `max_rows` returns the largest
    number of rows per forward pass.
    """

    def __init__(self, model: Model, key: Hashable, requests: Sequence[PendingRequest], max_rows: Callable[[], int]):
        self.model, self.key, self.requests, self.max_rows = model, key, requests, max_rows
        self.cancelled: set[int] = set()  # numbers of cancelled requests, whose rows are not computed any more
        self.forward: Forward | None = None
        self._coroutine = greenlet(self._decode)

    def __len__(self) -> int:
        """Return the number of requests that are neither answered nor in `cancelled`."""
        return sum(not each.ended and number not in self.cancelled for number, each in enumerate(self.requests))

    @property
    def active(self) -> list[PendingRequest]:
        return [pending for pending in self.requests if pending.active]

    def resume(self, result: Beliefs | BaseException | None = None) -> None:
        """Continue the decoder until it needs the next forward pass or ends. What it raises is raised here.

        None starts the decoder, or has it ask for the same forward pass again, without rows of cancelled requests.
        """
        self.forward = None
        if isinstance(result, BaseException):
            self.forward = self._coroutine.throw(result)
        else:
            self.forward = self._coroutine.switch(result)

    def stop(self) -> None:
        self._coroutine.throw(GreenletExit())
        self.forward = None

    def find_cancelled(self) -> bool:
        """Return whether requests were cancelled since the last call."""
        before, numbered = len(self.cancelled), enumerate(self.requests)
        self.cancelled.update(number for number, each in numbered if each.cancelled and not each.ended)
        return len(self.cancelled) > before

    def wait_for(self, forward: Forward) -> Beliefs | None:
        """Stop the coroutine, from inside, until `resume` is called with the result."""
        assert self._coroutine.parent is not None
        return self._coroutine.parent.switch(forward)

    def _decode(self, _: None) -> None:
        """Answer every request as `unmask generate` does. Runs in the coroutine."""
        streams = [RequestStream(self.model, pending.request) for pending in self.requests]
        if update := streams[0].begin():  # a request with updates has a batch of its own
            self.requests[0].post(update)
        requests = [pending.request for pending in self.requests]
        first = requests[0]
        generation = Generation(self.model, first.decoding, first.infill, under_meter=self._shared)
        seeds = [request.decoding.seed for request in requests]
        session = generation.session([request.prompt for request in requests], seeds, listen=first.show == "trace")
        for frame in session:
            if update := streams[0].see(frame):
                self.requests[0].post(update)
            self._answer(streams, session.ended(), frame.step)
        assert session.frame is not None
        self._answer(streams, dict(enumerate(session.results())), session.frame.step)

    def _answer(self, streams: Sequence[RequestStream], results: Mapping[int, Decoded], step: int) -> None:
        for number, decoded in results.items():
            if self.requests[number].active:
                self.requests[number].post(streams[number].end(decoded, step))

    def _shared(self, denoiser: Denoiser) -> Denoiser:
        shared, grammar = SharedDenoiser(denoiser, self), self.requests[0].request.grammar
        return shared if grammar is None else Constrained(shared, self.model, grammar)


class SharedDenoiser(Wrapper):
    """Leaves every forward pass to the scheduler, in parts of at most `max_rows` rows.

    Rows of cancelled requests are not computed: they get logits that are certain of one token, and soon end.
    """

    def __init__(self, inner: Denoiser, batch: Batch):
        super().__init__(inner)
        self.batch = batch

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        while True:  # until no request is cancelled while the result is computed
            run = self._run_active if self.batch.cancelled else self._run
            if (beliefs := run(canvas, at, cache)) is not None:
                return beliefs

    def _run_active(self, canvas: Canvas, at: Columns, cache: CacheView | None) -> Beliefs | None:
        cancelled = torch.tensor(sorted(self.batch.cancelled), device=self.device)
        rows = (~torch.isin(canvas.problem, cancelled)).nonzero()[:, 0]
        beliefs: Beliefs | None = Beliefs(
            lambda places: places, (0, at.shape[1]), self.vocab, self.mask_id, self.device
        )
        if len(rows):
            beliefs = self._run(canvas.rows(rows), at[rows], cache and cache.take_listed(rows.tolist()))
        return beliefs and beliefs.among(rows, len(canvas), int(self.mask_id == 0), self.dtype)

    def _run(self, canvas: Canvas, at: Columns, cache: CacheView | None) -> Beliefs | None:
        results = []
        for part in Forward(self.inner, canvas, at, cache, len(self.batch)).split(self.batch.max_rows()):
            if (result := self.batch.wait_for(part)) is None:
                return None
            results.append(result)
        return concatenate(results)


def batch_key(model: Model, pending: PendingRequest) -> Hashable:
    """Return a key that is equal for requests that may share a batch; it is unique for one that may not share any.

    Rows are at most twice as wide as others of their batch. Those of a block-causal model begin at the same place of a
    block.
    """
    request, decoding = pending.request, pending.request.decoding
    if pending.isolated or request.show or request.grammar or request.infill or not _ends_alone(decoding):
        return id(pending)
    size, block = len(request.prompt.ids), model.denoiser.block_size
    width = (size + decoding.length).bit_length()
    return repr(replace(decoding, seed=0)), width, size % block if block else 0


def _ends_alone(decoding: Decoding) -> bool:
    """Return whether no request of a batch has to wait for others that end later."""
    if decoding.decoder.writer.ends_together:
        return not decoding.early_end and not decoding.stop  # which may end a text before its schedule
    return decoding.decoder.announces_ends
