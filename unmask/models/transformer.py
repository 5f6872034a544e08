"""One bidirectional transformer for the shapes of LLaDA (arXiv 2502.09992) and Dream (Qwen2.5).

RMSNorm, rotary positions, SwiGLU, grouped heads. The projections that read the same input are one matrix each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.core.shapes import Bool, Columns, Float, Int, Tokens

# Of a layer by its number: the keys and values of whole rows, (2, row, head, pos, dim), which it may write to.
Memory = Callable[[int], Tensor]


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    hidden: int  # of the MLP
    vocab: int  # rows of the embedding
    context: int
    kv_heads: int | None = None  # fewer than `heads` when keys and values are shared; None: as many
    theta: float = 500_000.0  # base of the rotary frequencies
    eps: float = 1e-5
    qkv_bias: bool = False
    tied: bool = False  # the head is the embedding

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        return self.head_width * (self.kv_heads or self.heads)

    def room(self, rows: int, width: int) -> torch.Size:
        """Of the keys and values of whole rows: (layer, 2, row, head, pos, dim)."""
        return torch.Size((self.layers, 2, rows, self.kv_heads or self.heads, width, self.head_width))

    @property
    def parameters(self) -> int:
        attention = self.width * (2 * self.width + 2 * self.kv_width)
        bias = (self.width + 2 * self.kv_width) * self.qkv_bias
        layer = attention + bias + 3 * self.width * self.hidden + 2 * self.width
        return self.layers * layer + self.width * (1 + self.vocab * (1 if self.tied else 2))


class Norm(nn.Module):
    """RMSNorm, its mean square in float32 or better."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda:  # one kernel; it rounds once, after the weight
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        wide = x if x.dtype == torch.float64 else x.float()
        return self.weight * (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        width, kv = shape.width, shape.kv_width
        self.attention_norm = Norm(width, shape.eps)
        self.qkv = nn.Linear(width, width + 2 * kv, bias=shape.qkv_bias)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp_norm = Norm(width, shape.eps)
        self.gate_up = nn.Linear(width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, width, bias=False)

    def forward(
        self,
        x: Tensor,
        turn: Tensor,
        mask: Tensor | None,
        held: Tensor | None = None,
        columns: Columns | None = None,
    ) -> Tensor:
        """With `held` the positions of x are those `columns` of rows whose other keys and values are in it."""
        x = x + self.attend(self.attention_norm(x), turn, mask, held, columns)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)

    def attend(
        self, x: Tensor, turn: Tensor, mask: Tensor | None, held: Tensor | None, columns: Columns | None
    ) -> Tensor:
        heads, kv = self.shape.heads, self.shape.kv_heads or self.shape.heads
        qkv = self.qkv(x).unflatten(-1, (-1, self.shape.head_width)).transpose(1, 2)  # (row, head, pos, dim)
        qk, v = qkv.split([heads + kv, kv], dim=1)
        q, k = rotate(qk, turn).split([heads, kv], dim=1)
        if held is not None and columns is not None:
            k, v = keep(held, columns, k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=kv != heads)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        weight = torch.empty(shape.vocab, shape.width)
        if not weight.is_meta:  # a draw on the meta device draws nothing and imports torch's compiler: a second lost
            nn.init.normal_(weight)
        self.embed = nn.Embedding(shape.vocab, shape.width, _weight=weight)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width, shape.eps)
        self.head = nn.Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embed.weight

    def forward(
        self,
        tokens: Tokens,
        places: Int[Tensor, "#row pos"] | None = None,
        real: Bool[Tensor, "row whole"] | None = None,
        memory: Memory | None = None,
        columns: Int[Tensor, "row pos"] | None = None,
    ) -> Float[Tensor, "row pos width"]:
        """Hidden states after the last norm. `places` are rotary positions; only `real` positions are attended to.

        With `memory` the tokens are those at `columns` of longer rows, the rest of which is known by its keys and
        values; those of the tokens are written there.
        """
        if places is None:
            places = torch.arange(tokens.shape[1], device=tokens.device)[None]
        x = self.embed(tokens)
        turn = rotary(places, self.shape, x.dtype)
        mask = None if real is None else real[:, None, None, :]
        for number, layer in enumerate(self.layers):
            x = layer(x, turn, mask, memory and memory(number), columns)
        return self.norm(x)

    def room(self, rows: int, width: int) -> Float[Tensor, "layer 2 row head pos dim"]:
        """For the keys and values of whole rows, with nothing in it yet."""
        return self.embed.weight.new_empty(self.shape.room(rows, width))

    def logits(self, hidden: Float[Tensor, "n width"]) -> Float[Tensor, "n vocab"]:
        """In float32 or better: bfloat16 would leave logits of 20 a resolution of an eighth."""
        if hidden.is_cuda and hidden.dtype in (torch.bfloat16, torch.float16):
            return torch.mm(hidden, self.head.weight.T, out_dtype=torch.float32)
        return self.head(hidden)


def keep(held: Tensor, columns: Columns, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Whole rows' keys and values, (row, head, pos, dim) each, once those of the columns are written to them."""
    if torch.compiler.is_compiling():  # in one write: of two the compiler makes copies of the whole memory
        row = torch.arange(len(columns), device=columns.device)[:, None]
        held[:, row, :, columns] = torch.stack([k, v]).permute(1, 3, 0, 2, 4)
        return held[0], held[1]
    index = columns[:, None, :, None].expand_as(k)
    return held[0].scatter_(2, index, k), held[1].scatter_(2, index, v)


def lines(kv: Float[Tensor, "layer 2 row head pos dim"], rows: Int[Tensor, " new"]) -> Int[Tensor, " line"]:
    """The indices of some rows' keys and values among all heads of a layer."""
    two, count, heads = kv.shape[1:4]
    part = torch.arange(two, device=rows.device)[:, None, None] * count + rows[:, None]  # keys, then values
    return (part * heads + torch.arange(heads, device=rows.device)).flatten()


def select(held: Float[Tensor, "2 row head pos dim"], line: Int[Tensor, " line"], out: Tensor | None = None) -> Tensor:
    """A layer's keys and values of some rows, head by head: whole rows would be copied three times as slowly."""
    two, _, heads, *rest = held.shape
    target = None if out is None else out.view(len(line), -1)
    return torch.index_select(held.flatten(0, 2).flatten(1), 0, line, out=target).view(two, -1, heads, *rest)


def rotary(places: Int[Tensor, "row pos"], shape: Shape, dtype: torch.dtype) -> Float[Tensor, "2 row 1 pos half"]:
    """Cosines and sines of every position's angles, in float32 or better."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    half = torch.arange(0, shape.head_width, 2, device=places.device, dtype=wide) / shape.head_width
    angles = places[:, None, :, None].to(wide) * shape.theta**-half
    return torch.stack([angles.cos(), angles.sin()])


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Half-rotation: the first half of a head's width is paired with the second."""
    cos, sin = turn
    first, second = x.to(turn.dtype).chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
