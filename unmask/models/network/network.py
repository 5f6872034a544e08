"""A transformer as a denoiser: padding, buckets of rows, and the head only where it is asked.

Rows of a network with full attention are padded on the left, as in the canvas. Rows of a block-causal network, where a
position sees its own block and all earlier ones, are packed: each begins at column 0, from which blocks are counted,
and is padded on the right, where nothing depends on the padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas
from unmask.core.shapes import Bool, Columns, Float, Int, PerRow, Tokens
from unmask.models.network.cuda_graphs import Graphs
from unmask.models.network.transformer import Transformer

BUCKET = 16  # on a CPU a row is padded to a multiple of this by its own length, even alone: same bytes in any batch
CHUNK = 2**15  # positions sent through the network at a time


@dataclass(frozen=True)
class Bucket:
    """Rows of a canvas that go through the network together, padded to the same width."""

    rows: Int[Tensor, " row"]  # indices in the canvas
    tokens: Tokens
    pad: PerRow  # columns of padding: on the right of packed rows, else on the left
    extra: int  # columns added on the left of the canvas, cut off where negative; 0 for packed rows
    packed: bool
    ragged: bool  # some columns may be padding

    @property
    def width(self) -> int:
        return self.tokens.shape[1]

    @property
    def real(self) -> Bool[Tensor, "row pos"] | None:
        """Return the columns that may be attended to; None for all of them."""
        if not self.ragged:
            return None
        columns = torch.arange(self.width, device=self.pad.device)
        return columns < self.width - self.pad[:, None] if self.packed else columns >= self.pad[:, None]

    def take(self, index: Int[Tensor, " some"]) -> Bucket:
        """Return a bucket of some of the rows."""
        return replace(self, rows=self.rows[index], tokens=self.tokens[index], pad=self.pad[index])


def buckets(canvas: Canvas, packed: bool = False) -> list[Bucket]:
    """Return one bucket on a GPU, and one per padded length on a CPU: a row has the same bytes in any batch."""
    device = canvas.tokens.device
    if device.type != "cpu":
        rows = torch.arange(len(canvas), device=device)
        tokens = _pack(canvas, rows, canvas.width) if packed else canvas.tokens
        return [Bucket(rows, tokens, canvas.pad, 0, packed, canvas.ragged)]
    widths = [-(-length // BUCKET) * BUCKET for length in (canvas.width - canvas.pad).tolist()]
    parts = []
    for width in sorted(set(widths)):
        rows = torch.tensor([row for row, own in enumerate(widths) if own == width])
        extra = width - canvas.width
        tokens = _pack(canvas, rows, width) if packed else F.pad(canvas.tokens[rows], (extra, 0))  # cuts if negative
        parts.append(Bucket(rows, tokens, canvas.pad[rows] + extra, 0 if packed else extra, packed, ragged=True))
    return parts


def _pack(canvas: Canvas, rows: Int[Tensor, " some"], width: int) -> Int[Tensor, "some width"]:
    """Return rows without the padding on their left, padded on the right by their last token."""
    column = canvas.pad[rows, None] + torch.arange(width, device=rows.device)
    return canvas.tokens[rows].gather(1, column.clamp(max=canvas.width - 1))


def in_order(parts: list[Bucket], values: list[Tensor]) -> Tensor:
    """Return the values of all buckets' rows in the order of the canvas."""
    if len(parts) == 1:
        return values[0]
    return torch.cat(values)[torch.cat([bucket.rows for bucket in parts]).argsort()]


def chunks(rows: int, width: int, device: torch.device) -> tuple[Int[Tensor, " some"], ...]:
    """Return indices of rows of this width, as many together as go through the network at a time."""
    return torch.arange(rows, device=device).split(max(1, CHUNK // width))


def whole_buckets(columns: Columns) -> Int[Tensor, "row wider"]:
    """Return the columns, on a CPU repeating the last: products of a few positions are summed in a different order."""
    if columns.device.type != "cpu":
        return columns
    return torch.cat([columns, columns[:, -1:].expand(-1, -columns.shape[1] % BUCKET)], dim=1)


class Network:
    """The denoiser of a transformer, without a cache: every call is a forward pass of whole rows.

    With `shifted`, the logits at position i - 1 are about position i. A row's first token has nothing before it: as in
    the published loop, it is read at its own position.
    """

    refresh = None

    def __init__(self, module: Transformer, mask_id: int, shifted: bool = False):
        self.module = module.eval()
        self.mask_id, self.shifted = mask_id, shifted
        self.context, self.block_size = module.shape.context, module.shape.block
        self.packed = module.shape.block is not None
        self.graphs = Graphs(module)

    @property
    def device(self) -> torch.device:
        return self.module.embed.weight.device

    @property
    def vocab(self) -> int:
        return self.module.shape.vocab

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.module.embed.weight.dtype == torch.float64 else torch.float32

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        return self.beliefs(self.hidden(canvas, self.read_at(canvas, at)))

    def read_at(self, canvas: Canvas, at: Columns) -> Columns:
        """Return the columns at which the logits about these columns are."""
        return torch.maximum(at - 1, canvas.pad[:, None]) if self.shifted else at

    def beliefs(self, hidden: Float[Tensor, "row at width"], computed: PerRow | None = None) -> Beliefs:
        flat = hidden.flatten(0, 1)

        def read(places: Tensor) -> Tensor:
            asked = flat[places]
            if self.device.type == "cpu":  # products of one to three rows are summed in a different order
                asked = F.pad(asked, (0, 0, 0, max(0, BUCKET - len(places))))
            return self.module.logits(asked)[: len(places)]

        shape = (hidden.shape[0], hidden.shape[1])
        return Beliefs(read, shape, self.vocab, self.mask_id, self.device, computed)

    def hidden(self, canvas: Canvas, at: Columns) -> Float[Tensor, "row at width"]:
        if self.packed:
            at = at - canvas.pad[:, None]
        parts = buckets(canvas, self.packed)
        return in_order(parts, [self._chunked(bucket, at[bucket.rows] + bucket.extra) for bucket in parts])

    def _chunked(self, bucket: Bucket, at: Columns) -> Tensor:
        some = chunks(len(at), bucket.width, self.device)
        return torch.cat([take(self.whole(bucket.take(rows)), at[rows]) for rows in some])

    def whole(self, bucket: Bucket, kv: Tensor | None = None) -> Float[Tensor, "row pos width"]:
        """Return hidden states everywhere; keys and values are written to `kv` (layer, 2, row, head, pos, dim)."""
        tokens = bucket.tokens
        if bucket.packed:
            return self.module(tokens, None, bucket.real)
        columns = torch.arange(bucket.width, device=tokens.device).expand_as(tokens).contiguous()
        places = columns - bucket.pad[:, None]
        places = places.clamp(min=0) if bucket.ragged else places[:1]
        if kv is None:
            return self.module(tokens, places, bucket.real)
        return self.module(tokens, places, bucket.real, kv.__getitem__, columns)


def take(hidden: Float[Tensor, "row pos width"], at: Columns) -> Float[Tensor, "row at width"]:
    """Return the hidden states at some columns of each row."""
    return hidden.gather(1, at[:, :, None].expand(-1, -1, hidden.shape[-1]))
