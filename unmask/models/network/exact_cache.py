"""The exact KV cache of block-causal networks: keys and values of finished blocks, each stored once.

The keys and values of a block depend only on the tokens up to its end. They are stored under those tokens, and every
row with that prefix shares them: beams, samples, candidates with different continuations. A call computes the blocks
that it asks about and, once, the blocks before them that no earlier call has needed.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Wrapper
from unmask.core.shapes import Columns, Float, PerRow
from unmask.models.network.cuda_graphs import Window
from unmask.models.network.network import CHUNK, Bucket, Network, buckets, in_order, take, whole_buckets

SPARE = 4  # prefixes are cached for this many times the rows of a call; the least recently used are dropped
BYTES = 8  # size of a token
_VERSIONS = count()
Page = Tensor  # keys and values of one block, (layer, 2, head, pos, dim)


class Span(NamedTuple):
    """A run of whole blocks of a row. Equal spans have equal hidden states."""

    before: bytes  # tokens up to its start
    inside: bytes  # tokens from its start to its end
    start: int  # first position
    stop: int
    length: int  # positions of the row
    width: int  # columns of the row with its padding

    @property
    def size(self) -> int:
        """Return the number of positions without padding."""
        return min(self.stop, self.length) - self.start


class Loaded(NamedTuple):
    """Rows of keys and values that hold everything before the spans of a call."""

    befores: list[bytes]
    kv: Float[Tensor, "layer 2 row head pos dim"]
    version: int


class ExactlyCached(Wrapper):
    """The network's own beliefs from fewer positions. On a CPU in float32 they are the same to the bit."""

    def __init__(self, network: Network):
        super().__init__(network)
        assert network.block_size is not None
        self.network, self.block = network, network.block_size
        # Pages by the id of the page before them and their own tokens.
        self.pages: WeakValueDictionary[tuple[int, bytes], Page] = WeakValueDictionary()
        self.prefixes: OrderedDict[bytes, tuple[Page, ...]] = OrderedDict()  # pages by their tokens
        self.blank: OrderedDict[Span, Tensor] = OrderedDict()  # hidden states of spans of masks only
        self.loaded: Loaded | None = None
        self.most = 0  # rows of the largest call so far
        self.mask = network.mask_id.to_bytes(BYTES, sys.byteorder)

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        places = self.network.read_at(canvas, at) - canvas.pad[:, None]
        self.most = max(self.most, len(canvas))
        parts = buckets(canvas, packed=True)
        read = [self._read(bucket, places[bucket.rows]) for bucket in parts]
        self._forget()
        computed = in_order(parts, [cost for _, cost in read])
        return self.network.beliefs(in_order(parts, [hidden for hidden, _ in read]), computed)

    def _read(self, bucket: Bucket, places: Columns) -> tuple[Float[Tensor, "row at width"], PerRow]:
        """Return hidden states at some positions of every row, and how many positions were computed for the row."""
        spans = self._spans(bucket, places)
        cost = self._settle(bucket, spans)
        new: dict[Span, int] = {}  # and the first row that asks about it
        for row, span in enumerate(spans):
            if span not in self.blank:
                new.setdefault(span, row)
        states: dict[Span, Tensor] = {}
        for batch in _alike(new):
            states |= zip(batch, self._forward(bucket, batch, steady=True)[0], strict=True)
        for span, row in new.items():
            cost[row] += span.size
            if span.inside == self.mask * (span.stop - span.start):
                self.blank[span] = states[span].clone()
        rows = [states[span] if span in states else self.blank[span] for span in spans]
        widest = max(map(len, rows))
        stacked = torch.stack([F.pad(row, (0, 0, 0, widest - len(row))) for row in rows])
        first = torch.tensor([span.start for span in spans], device=places.device)
        return take(stacked, places - first[:, None]), torch.tensor(cost, device=places.device)

    def _spans(self, bucket: Bucket, places: Columns) -> list[Span]:
        """Return the blocks, from the first to the last, that each row asks about. This waits for the device."""
        block, width = self.block, bucket.width
        ends = torch.stack([places.amin(1), places.amax(1), width - bucket.pad], dim=1)
        table = torch.cat([ends, bucket.tokens], dim=1).cpu().numpy()
        spans = []
        for first, last, length in table[:, :3].tolist():
            tokens = table[len(spans), 3:]
            start, stop = first // block * block, min(width, (last // block + 1) * block)
            spans.append(Span(tokens[:start].tobytes(), tokens[start:stop].tobytes(), start, stop, length, width))
        return spans

    def _settle(self, bucket: Bucket, spans: Sequence[Span]) -> list[int]:
        """Compute the blocks before each span that are not cached yet; return how many positions that took, by row."""
        cost, missing = [0] * len(spans), {}
        for row, span in enumerate(spans):
            if span.before in self.prefixes:
                self.prefixes.move_to_end(span.before)
            elif span.before not in missing:
                chain = self._chain(span.before)
                start = len(chain) * self.block
                before, inside = span.before[: start * BYTES], span.before[start * BYTES :]
                self.prefixes[before] = chain
                cost[row] = span.start - start
                missing[span.before] = (row, Span(before, inside, start, span.start, span.start, span.width))
        for batch in _alike({span: row for row, span in missing.values() if span.inside}):
            _, kv = self._forward(bucket, batch, steady=False)
            for span, keys in zip(batch, kv.unbind(2), strict=True):
                self._store(span, keys)
        return cost

    def _chain(self, tokens: bytes) -> tuple[Page, ...]:
        """Return the pages of as many blocks, from the first on, as are cached."""
        chain: list[Page] = []
        for inside in self._blocks(tokens):
            page = self.pages.get((id(chain[-1]) if chain else 0, inside))
            if page is None:
                break
            chain.append(page)
        return tuple(chain)

    def _blocks(self, tokens: bytes) -> list[bytes]:
        width = self.block * BYTES
        return [tokens[start : start + width] for start in range(0, len(tokens), width)]

    def _store(self, span: Span, kv: Float[Tensor, "layer 2 head pos dim"]) -> None:
        chain = list(self.prefixes[span.before])
        for number, inside in enumerate(self._blocks(span.inside)):
            start = span.start + number * self.block
            page = kv[..., start : start + self.block, :].clone()
            page = self.pages.setdefault((id(chain[-1]) if chain else 0, inside), page)
            chain.append(page)
        self.prefixes[span.before + span.inside] = tuple(chain)

    def _forward(self, bucket: Bucket, batch: dict[Span, int], steady: bool) -> tuple[Tensor, Tensor]:
        """Return hidden states of spans of one size, (span, pos, width), and the keys and values of their rows.

        All blocks before the spans are cached. `steady` means that calls of this shape will be repeated, so that a
        captured graph pays.
        """
        device, spans = self.device, list(batch)
        size = spans[0].stop - spans[0].start
        start = torch.tensor([span.start for span in spans], device=device)
        index = torch.tensor(list(batch.values()), device=device)
        columns = whole_buckets(start[:, None] + torch.arange(size, device=device))
        tokens, real = bucket.tokens[index].gather(1, columns), bucket.real
        window = Window(tokens, columns, columns, None if real is None else real[index])
        kv, version = self._load(spans)
        if steady and self.network.graphs.fit(window):
            hidden = self.network.graphs(kv, torch.arange(len(spans), device=device), window, version)
        else:
            hidden = self.network.module(tokens, columns, window.real, kv.__getitem__, columns)
        return hidden[:, :size], kv

    def _load(self, spans: Sequence[Span]) -> tuple[Tensor, tuple[str, int]]:
        """Return rows of keys and values with the pages before each span; the same rows are copied only once."""
        befores = [span.before for span in spans]
        if self.loaded is None or self.loaded.befores != befores or self.loaded.kv.shape[4] != spans[0].width:
            module = self.network.module
            kv = module.embed.weight.new_zeros(module.shape.room(len(spans), spans[0].width))
            for row, span in enumerate(spans):
                if span.start:
                    kv[:, :, row, :, : span.start] = torch.cat(self.prefixes[span.before], dim=3)
            self.loaded = Loaded(befores, kv, next(_VERSIONS))
        return self.loaded.kv, ("exact", self.loaded.version)

    def _forget(self) -> None:
        """Drop old prefixes; a page is freed with the last prefix that holds it."""
        for cached in (self.prefixes, self.blank):
            while len(cached) > SPARE * self.most:
                cached.popitem(last=False)


def _alike(rows: dict[Span, int]) -> list[dict[Span, int]]:
    """Return spans of one size and their rows, as many together as go through the network at a time."""
    sizes: dict[int, list[tuple[Span, int]]] = {}
    for span, row in rows.items():
        sizes.setdefault(span.stop - span.start, []).append((span, row))
    parts = ((some, max(1, CHUNK // size)) for size, some in sizes.items())
    return [dict(some[start : start + many]) for some, many in parts for start in range(0, len(some), many)]
