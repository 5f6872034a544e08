"""Block-causal networks: a position sees its own block and all earlier ones, blocks counted from position 0.

Rows are packed out from position 0 on and filled up at their ends, so that a column is a position. What a block says
depends on nothing that comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.core import Canvas
from unmask.core.shapes import Bool, Columns, Float, Int, PerRow, Tokens
from unmask.models.network import BUCKET, CHUNK, Network, take
from unmask.models.transformer import Transformer


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
