"""One transformer for the shapes of Llama, Qwen2, Qwen3 and their mixtures of experts, as diffusion models use them.

It has RMSNorm, rotary positions, SwiGLU and grouped heads. Projections that read the same input are one matrix. A
position attends to the whole row or, in a block-causal model, to its own block and all earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.core.shapes import Bool, Columns, Float, Int, Tokens
from unmask.models.network.experts import Experts, Mixture, swiglu

# Returns the keys and values of whole rows, (2, row, head, pos, dim), for the number of a layer, which writes to them.
LayerCache = Callable[[int], Tensor]


@dataclass(frozen=True)
class Shape:
    """The sizes and options of a transformer."""

    width: int  # size of a hidden state
    layers: int
    heads: int
    hidden: int  # hidden size of the MLP
    vocab: int  # rows of the embedding
    context: int  # positions at most
    kv_heads: int | None = None  # fewer than `heads` when keys and values are shared; None: as many
    theta: float = 500_000.0  # base of the rotary frequencies
    eps: float = 1e-5  # added to the mean square of a norm
    qkv_bias: bool = False  # queries, keys and values have biases
    tied: bool = False  # the head is the embedding
    head: int | None = None  # width of a head; None: width / heads
    qk_norm: bool = False  # queries and keys have norms, head by head
    rotary: int | None = None  # how much of a head's width is rotated by its position; None: all of it
    block: int | None = None  # positions per block of a block-causal model; None: full attention
    experts: Experts | None = None  # mixture that replaces the MLP in some layers

    @property
    def head_width(self) -> int:
        return self.head or self.width // self.heads

    @property
    def q_width(self) -> int:
        return self.head_width * self.heads

    @property
    def kv_width(self) -> int:
        return self.head_width * (self.kv_heads or self.heads)

    def experts_of(self, layer: int) -> Experts | None:
        return self.experts if self.experts is not None and layer >= self.experts.dense else None

    def room(self, rows: int, width: int) -> torch.Size:
        """Return the size of the keys and values of whole rows: (layer, 2, row, head, pos, dim)."""
        return torch.Size((self.layers, 2, rows, self.kv_heads or self.heads, width, self.head_width))

    @cached_property
    def parameters(self) -> int:
        with torch.device("meta"):
            return sum(weight.numel() for weight in Transformer(self).parameters())


class Norm(nn.Module):
    """RMSNorm with its mean square in float32 or better."""

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
    def __init__(self, shape: Shape, number: int = 0):
        super().__init__()
        self.shape = shape
        width, kv = shape.width, shape.kv_width
        self.attention_norm = Norm(width, shape.eps)
        self.qkv = nn.Linear(width, shape.q_width + 2 * kv, bias=shape.qkv_bias)
        if shape.qk_norm:
            self.q_norm, self.k_norm = Norm(shape.head_width, shape.eps), Norm(shape.head_width, shape.eps)
        self.out = nn.Linear(shape.q_width, width, bias=False)
        self.mlp_norm = Norm(width, shape.eps)
        self.mixture = None
        if (experts := shape.experts_of(number)) is not None:
            self.mixture = Mixture(width, experts)
        else:
            self.gate_up = nn.Linear(width, 2 * shape.hidden, bias=False)
            self.down = nn.Linear(shape.hidden, width, bias=False)

    def forward(
        self,
        x: Tensor,
        rotation: Tensor,
        mask: Tensor | None,
        kv: Tensor | None = None,
        columns: Columns | None = None,
    ) -> Tensor:
        """Return the next hidden states; with `kv`, x are some `columns` of rows whose keys and values it holds."""
        x = x + self.attend(self.attention_norm(x), rotation, mask, kv, columns)
        inner = self.mlp_norm(x)
        return x + (self.down(swiglu(self.gate_up(inner))) if self.mixture is None else self.mixture(inner))

    def attend(
        self, x: Tensor, rotation: Tensor, mask: Tensor | None, kv: Tensor | None, columns: Columns | None
    ) -> Tensor:
        heads, kv_heads = self.shape.heads, self.shape.kv_heads or self.shape.heads
        qkv = self.qkv(x).unflatten(-1, (-1, self.shape.head_width)).transpose(1, 2)  # (row, head, pos, dim)
        qk, v = qkv.split([heads + kv_heads, kv_heads], dim=1)
        if self.shape.qk_norm:
            q, k = qk.split([heads, kv_heads], dim=1)
            qk = torch.cat([self.q_norm(q), self.k_norm(k)], dim=1)
        q, k = rotate(qk, rotation).split([heads, kv_heads], dim=1)
        if kv is not None and columns is not None:
            k, v = write_kv(kv, columns, k, v)
        shared = heads // kv_heads
        if shared > 1 and mask is not None and q.is_cuda:  # no fused kernel takes both a mask and shared keys
            k, v, shared = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1), 1
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=shared > 1)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """The network from token ids to hidden states and logits."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        weight = torch.empty(shape.vocab, shape.width)
        if not weight.is_meta:  # on the meta device this would draw nothing and import torch's compiler
            nn.init.normal_(weight)
        self.embed = nn.Embedding(shape.vocab, shape.width, _weight=weight)
        self.layers = nn.ModuleList(Layer(shape, number) for number in range(shape.layers))
        self.norm = Norm(shape.width, shape.eps)
        self.head = nn.Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embed.weight

    def forward(
        self,
        tokens: Tokens,
        places: Int[Tensor, "#row pos"] | None = None,
        real: Bool[Tensor, "row whole"] | None = None,
        cache: LayerCache | None = None,
        columns: Int[Tensor, "row pos"] | None = None,
    ) -> Float[Tensor, "row pos width"]:
        """Return hidden states after the last norm. `places` are rotary positions; only `real` ones are attended to.

        With `cache` the tokens are those at `columns` of longer rows whose other keys and values it holds; those of the
        tokens are written to it. The rows of a block-causal model begin at column 0.
        """
        if places is None:
            places = torch.arange(tokens.shape[1], device=tokens.device)[None]
        x = self.embed(tokens)
        rotation = rotary(places, self.shape, x.dtype)
        first = cache and cache(0)
        mask = None if real is None else real[:, None, None, :]
        if self.shape.block is not None:
            earlier = block_causal(places, tokens.shape[1] if first is None else first.shape[3], self.shape.block)
            mask = earlier if mask is None else earlier & mask
        for number, layer in enumerate(self.layers):
            kv = cache(number) if cache and number else first
            x = layer(x, rotation, mask, kv, columns)
        return self.norm(x)

    def room(self, rows: int, width: int) -> Float[Tensor, "layer 2 row head pos dim"]:
        """Allocate the keys and values of whole rows."""
        return self.embed.weight.new_empty(self.shape.room(rows, width))

    def logits(self, hidden: Float[Tensor, "n width"]) -> Float[Tensor, "n vocab"]:
        """Return logits in float32 or better: bfloat16 is too coarse to compare them."""
        if hidden.is_cuda and hidden.dtype in (torch.bfloat16, torch.float16):
            return torch.mm(hidden, self.head.weight.T, out_dtype=torch.float32)
        return self.head(hidden)


def write_kv(kv: Tensor, columns: Columns, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Write keys and values at some columns; return those of whole rows, (row, head, pos, dim) each."""
    if torch.compiler.is_compiling():  # in one write: for two the compiler would copy the whole cache
        row = torch.arange(len(columns), device=columns.device)[:, None]
        kv[:, row, :, columns] = torch.stack([k, v]).permute(1, 3, 0, 2, 4)
        return kv[0], kv[1]
    index = columns[:, None, :, None].expand_as(k)
    return kv[0].scatter_(2, index, k), kv[1].scatter_(2, index, v)


def lines(kv: Float[Tensor, "layer 2 row head pos dim"], rows: Int[Tensor, " new"]) -> Int[Tensor, " line"]:
    """Return the indices of some rows' keys and values among all heads of a layer."""
    two, count, heads = kv.shape[1:4]
    part = torch.arange(two, device=rows.device)[:, None, None] * count + rows[:, None]  # keys, then values
    return (part * heads + torch.arange(heads, device=rows.device)).flatten()


def select(kv: Float[Tensor, "2 row head pos dim"], line: Int[Tensor, " line"], out: Tensor | None = None) -> Tensor:
    """Return a layer's keys and values of some rows, copied head by head, which is faster than row by row."""
    two, _, heads, *rest = kv.shape
    target = None if out is None else out.view(len(line), -1)
    return torch.index_select(kv.flatten(0, 2).flatten(1), 0, line, out=target).view(two, -1, heads, *rest)


def block_causal(places: Int[Tensor, "#row pos"], width: int, block: int) -> Bool[Tensor, "#row 1 pos whole"]:
    """Return which columns a position sees: those of its own block and of earlier ones, counted from column 0."""
    every = torch.arange(width, device=places.device)
    return (every // block <= places[:, :, None] // block)[:, None]


def rotary(places: Int[Tensor, "row pos"], shape: Shape, dtype: torch.dtype) -> Float[Tensor, "2 row 1 pos half"]:
    """Return cosines and sines of every position's angles, in float32 or better."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    rotated = shape.rotary or shape.head_width
    half = torch.arange(0, rotated, 2, device=places.device, dtype=wide) / rotated
    angles = places[:, None, :, None].to(wide) * shape.theta**-half
    return torch.stack([angles.cos(), angles.sin()])


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """Pair the first half of the rotated width with the second; the rest of a head is left as it is."""
    cos, sin = rotation
    rotated = 2 * cos.shape[-1]
    first, second = x[..., :rotated].to(rotation.dtype).chunk(2, dim=-1)
    parts = [first * cos - second * sin, second * cos + first * sin]
    if rotated < x.shape[-1]:
        parts.append(x[..., rotated:].to(rotation.dtype))
    return torch.cat(parts, dim=-1).to(x.dtype)
