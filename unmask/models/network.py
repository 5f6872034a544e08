"""A transformer as a denoiser: padding, row buckets, and the head only where it is asked."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.core import Beliefs, Canvas, Denoiser
from unmask.core.shapes import Columns, Float
from unmask.models.transformer import Transformer

BUCKET = 16  # on a CPU a row is padded to a multiple of this by its own length, even alone: same bytes in any batch
CHUNK = 2**15  # positions sent through the network at a time


class Network:
    def __init__(self, module: Transformer, mask_id: int):
        self.module = module.eval()
        self.mask_id = mask_id
        self.context = module.shape.context

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
        hidden = self.hidden(canvas, at).flatten(0, 1)

        def read(places: Tensor) -> Tensor:
            asked = hidden[places]
            if self.device.type == "cpu":  # products of one to three rows are summed in another order
                asked = torch.nn.functional.pad(asked, (0, 0, 0, max(0, BUCKET - len(places))))
            return self.module.logits(asked)[: len(places)]

        shape = (at.shape[0], at.shape[1])
        return Beliefs(read, shape, self.module.shape.vocab, self.mask_id, self.device)

    def hidden(self, canvas: Canvas, at: Columns) -> Float[Tensor, "row at width"]:
        if self.device.type != "cpu":
            return self._chunked(canvas.tokens, canvas.pad, at, masked=canvas.ragged)
        lengths = (canvas.width - canvas.pad).tolist()
        buckets = [-(-length // BUCKET) * BUCKET for length in lengths]
        out = None
        for width in sorted(set(buckets)):
            rows = torch.tensor([row for row, bucket in enumerate(buckets) if bucket == width])
            extra = width - canvas.width
            tokens = torch.nn.functional.pad(canvas.tokens[rows], (extra, 0))  # a negative pad cuts
            part = self._chunked(tokens, canvas.pad[rows] + extra, at[rows] + extra, masked=True)
            out = part.new_empty(*at.shape, part.shape[-1]) if out is None else out
            out[rows] = part
        assert out is not None
        return out

    def _chunked(self, tokens: Tensor, pad: Tensor, at: Tensor, masked: bool) -> Tensor:
        rows = max(1, CHUNK // tokens.shape[1])
        parts = zip(tokens.split(rows), pad.split(rows), at.split(rows), strict=True)
        return torch.cat([self._forward(*part, masked) for part in parts])

    def _forward(self, tokens: Tensor, pad: Tensor, at: Tensor, masked: bool) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)[None] - pad[:, None]
        real = (places >= 0) if masked else None
        hidden = self.module(tokens, places.clamp(min=0) if masked else places[:1], real)
        return hidden.gather(1, at[:, :, None].expand(-1, -1, hidden.shape[-1]))
