"""A transformer as a denoiser: padding, row buckets, and the head only where it is asked. Block-causal networks: a position sees its own block and all earlier ones, blocks counted from position 0.

Rows are packed out from position 0 on and filled up at their ends, so that a column is a position. What a block says
depends on nothing that comes after it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas
from unmask.core.shapes import Bool, Columns, Float, Int, PerRow, Tokens
from unmask.models.network.cuda_graphs import Graphs
from unmask.models.network.transformer import Transformer

BUCKET = 16  # on a CPU a row is padded to a multiple of this by its own length, even alone: same bytes in any batch
CHUNK = 2**15  # positions sent through the network at a time


@dataclass(frozen=True)
class Bucket:
    """Rows of a canvas that go through the network together."""

    rows: Int[Tensor, " row"]  # their numbers in the canvas
    tokens: Tokens
    pad: PerRow
    extra: int  # columns added on the left of the canvas; cut off where negative
    masked: bool  # whether some of its columns may not be attended to

    @property
    def width(self) -> int:
        return self.tokens.shape[1]


def buckets(canvas: Canvas) -> list[Bucket]:
    """On a GPU one; on a CPU one per padded length."""
    device = canvas.tokens.device
    if device.type != "cpu":
        rows = torch.arange(len(canvas), device=device)
        return [Bucket(rows, canvas.tokens, canvas.pad, 0, canvas.ragged)]
    widths = [-(-length // BUCKET) * BUCKET for length in (canvas.width - canvas.pad).tolist()]
    parts = []
    for width in sorted(set(widths)):
        rows = torch.tensor([row for row, own in enumerate(widths) if own == width])
        extra = width - canvas.width
        tokens = torch.nn.functional.pad(canvas.tokens[rows], (extra, 0))  # a negative pad cuts
        parts.append(Bucket(rows, tokens, canvas.pad[rows] + extra, extra, masked=True))
    return parts


class Network:
    """With `shifted`, the logits at position i - 1 are about position i.

    A row's first token has nothing before it: as in the published loop, it is read at its own position.
    """

    refresh = None

    def __init__(self, module: Transformer, mask_id: int, shifted: bool = False):
        self.module = module.eval()
        self.mask_id, self.shifted = mask_id, shifted
        self.context = module.shape.context
        self.graphs = Graphs(module)

    @property
    def device(self) -> torch.device:
        return self.module.embed.weight.device

    @property
    def vocab(self) -> int:
        return self.module.shape.vocab

    @property
    def block_size(self) -> int | None:
        return None

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.module.embed.weight.dtype == torch.float64 else torch.float32

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        return self.beliefs(self.hidden(canvas, self.read_at(canvas, at)))

    def read_at(self, canvas: Canvas, at: Columns) -> Columns:
        """Where the logits about these columns are."""
        return torch.maximum(at - 1, canvas.pad[:, None]) if self.shifted else at

    def beliefs(self, hidden: Float[Tensor, "row at width"], computed: PerRow | None = None) -> Beliefs:
        flat = hidden.flatten(0, 1)

        def read(places: Tensor) -> Tensor:
            asked = flat[places]
            if self.device.type == "cpu":  # products of one to three rows are summed in another order
                asked = torch.nn.functional.pad(asked, (0, 0, 0, max(0, BUCKET - len(places))))
            return self.module.logits(asked)[: len(places)]

        shape = (hidden.shape[0], hidden.shape[1])
        return Beliefs(read, shape, self.vocab, self.mask_id, self.device, computed)

    def hidden(self, canvas: Canvas, at: Columns) -> Float[Tensor, "row at width"]:
        parts = buckets(canvas)
        if len(parts) == 1:
            return self._chunked(parts[0], at + parts[0].extra)
        out = self.module.embed.weight.new_empty(*at.shape, self.module.shape.width)
        for bucket in parts:
            out[bucket.rows] = self._chunked(bucket, at[bucket.rows] + bucket.extra)
        return out

    def _chunked(self, bucket: Bucket, at: Columns) -> Tensor:
        rows = max(1, CHUNK // bucket.width)
        parts = zip(bucket.tokens.split(rows), bucket.pad.split(rows), at.split(rows), strict=True)
        return torch.cat([take(self.whole(tokens, pad, bucket.masked), some) for tokens, pad, some in parts])

    def whole(
        self, tokens: Tokens, pad: PerRow, masked: bool, kv: Tensor | None = None
    ) -> Float[Tensor, "row pos width"]:
        """Hidden states everywhere; with `kv` (layer, 2, row, head, pos, dim) the keys and values go there."""
        columns = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens).contiguous()
        places = columns - pad[:, None]
        real = (places >= 0) if masked else None
        places = places.clamp(min=0) if masked else places[:1]
        if kv is None:
            return self.module(tokens, places, real)
        return self.module(tokens, places, real, kv.__getitem__, columns)


def take(hidden: Float[Tensor, "row pos width"], at: Columns) -> Float[Tensor, "row at width"]:
    return hidden.gather(1, at[:, :, None].expand(-1, -1, hidden.shape[-1]))


def make_network(module: Transformer, mask_id: int, shifted: bool = False) -> Network:
    return (Network if module.shape.block is None else BlockCausal)(module, mask_id, shifted)


@dataclass(frozen=True)
class PackedRows:
    """Rows of a canvas that go through the network together, each from its own position 0 on."""

    rows: Int[Tensor, " row"]  # their numbers in the canvas
    tokens: Tokens
    length: PerRow
    full: bool  # whether no row is filled up

    @property
    def real(self) -> Bool[Tensor, "row pos"] | None:
        if self.full:
            return None
        return torch.arange(self.tokens.shape[1], device=self.length.device) < self.length[:, None]


def packed_rows(canvas: Canvas) -> list[PackedRows]:
    """On a GPU all rows together; on a CPU by their own padded length: a row has the same bytes in any batch."""
    length = canvas.width - canvas.pad
    if canvas.tokens.device.type != "cpu":
        rows = torch.arange(len(canvas), device=length.device)
        return [PackedRows(rows, _shifted(canvas, rows, canvas.width), length, not canvas.ragged)]
    widths = [-(-count // BUCKET) * BUCKET for count in length.tolist()]
    parts = []
    for width in sorted(set(widths)):
        rows = torch.tensor([row for row, own in enumerate(widths) if own == width])
        parts.append(PackedRows(rows, _shifted(canvas, rows, width), length[rows], full=False))
    return parts


def _shifted(canvas: Canvas, rows: Int[Tensor, " some"], width: int) -> Int[Tensor, "some width"]:
    """Tokens without the padding on their left, filled up on the right by whatever comes last."""
    column = canvas.pad[rows, None] + torch.arange(width, device=rows.device)
    return canvas.tokens[rows].gather(1, column.clamp(max=canvas.width - 1))


class BlockCausal(Network):
    """Without a cache: every question is a forward of whole rows."""

    @property
    def block_size(self) -> int:
        assert self.module.shape.block is not None
        return self.module.shape.block

    def hidden(self, canvas: Canvas, at: Columns) -> Float[Tensor, "row at width"]:
        out = self.module.embed.weight.new_empty(*at.shape, self.module.shape.width)
        places = at - canvas.pad[:, None]
        for packed in packed_rows(canvas):
            size = max(1, CHUNK // packed.tokens.shape[1])
            parts = [self.module(some.tokens, None, some.real) for some in _split(packed, size)]
            out[packed.rows] = take(torch.cat(parts), places[packed.rows])
        return out


def _split(packed: PackedRows, size: int) -> list[PackedRows]:
    parts = zip(packed.rows.split(size), packed.tokens.split(size), packed.length.split(size), strict=True)
    return [PackedRows(*part, packed.full) for part in parts]
