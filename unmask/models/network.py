"""A transformer as a denoiser: padding, row buckets, and the head only where it is asked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser
from unmask.core.shapes import Columns, Float, Int, Rows, Tokens
from unmask.models.graphs import Graphs
from unmask.models.transformer import Transformer

BUCKET = 16  # on a CPU a row is padded to a multiple of this by its own length, even alone: same bytes in any batch
CHUNK = 2**15  # positions sent through the network at a time


@dataclass(frozen=True)
class Sheet:
    """Rows of a canvas that go through the network together."""

    rows: Int[Tensor, " row"]  # which they are
    tokens: Tokens
    pad: Rows
    extra: int  # columns it has more on the left than the canvas; fewer where negative
    masked: bool  # whether some of its columns may not be attended to

    @property
    def width(self) -> int:
        return self.tokens.shape[1]


def sheets(canvas: Canvas) -> list[Sheet]:
    """On a GPU one; on a CPU one for each bucket of lengths."""
    device = canvas.tokens.device
    if device.type != "cpu":
        rows = torch.arange(len(canvas), device=device)
        return [Sheet(rows, canvas.tokens, canvas.pad, 0, canvas.ragged)]
    buckets = [-(-length // BUCKET) * BUCKET for length in (canvas.width - canvas.pad).tolist()]
    made = []
    for width in sorted(set(buckets)):
        rows = torch.tensor([row for row, bucket in enumerate(buckets) if bucket == width])
        extra = width - canvas.width
        tokens = torch.nn.functional.pad(canvas.tokens[rows], (extra, 0))  # a negative pad cuts
        made.append(Sheet(rows, tokens, canvas.pad[rows] + extra, extra, masked=True))
    return made


class Network:
    def __init__(self, module: Transformer, mask_id: int):
        self.module = module.eval()
        self.mask_id = mask_id
        self.context = module.shape.context
        self.graphs = Graphs(module)

    @property
    def device(self) -> torch.device:
        return self.module.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.module.embed.weight.dtype == torch.float64 else torch.float32

    def hold(self, canvas: Canvas, fresh: Columns) -> Denoiser:
        del canvas, fresh
        return self

    def __call__(self, canvas: Canvas, at: Columns) -> Beliefs:
        return self.beliefs(self.hidden(canvas, at))

    def beliefs(self, hidden: Float[Tensor, "row at width"], computed: Rows | None = None) -> Beliefs:
        flat = hidden.flatten(0, 1)

        def read(places: Tensor) -> Tensor:
            asked = flat[places]
            if self.device.type == "cpu":  # products of one to three rows are summed in another order
                asked = torch.nn.functional.pad(asked, (0, 0, 0, max(0, BUCKET - len(places))))
            return self.module.logits(asked)[: len(places)]

        shape = (hidden.shape[0], hidden.shape[1])
        return Beliefs(read, shape, self.module.shape.vocab, self.mask_id, self.device, computed)

    def hidden(self, canvas: Canvas, at: Columns) -> Float[Tensor, "row at width"]:
        parts = sheets(canvas)
        if len(parts) == 1:
            return self._chunked(parts[0], at + parts[0].extra)
        out = self.module.embed.weight.new_empty(*at.shape, self.module.shape.width)
        for sheet in parts:
            out[sheet.rows] = self._chunked(sheet, at[sheet.rows] + sheet.extra)
        return out

    def _chunked(self, sheet: Sheet, at: Columns) -> Tensor:
        rows = max(1, CHUNK // sheet.width)
        parts = zip(sheet.tokens.split(rows), sheet.pad.split(rows), at.split(rows), strict=True)
        return torch.cat([take(self.whole(tokens, pad, sheet.masked), some) for tokens, pad, some in parts])

    def whole(
        self, tokens: Tokens, pad: Rows, masked: bool, kv: Tensor | None = None
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
