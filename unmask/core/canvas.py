"""The text being filled: tokens, masks, and for every written position the step that wrote it and how sure it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.core.shapes import AtBool, AtFloat, AtTokens, Bool, Columns, Float, Int, PerRow, Score, Steps, Tokens
from unmask.core.text import check_prompt
from unmask.errors import UnmaskError

BY_ROW = ("tokens", "order", "logp", "pad", "problem")


@dataclass(frozen=True)
class Canvas:
    """The tokens of a batch. A row is a hypothesis of a problem; prompts are left-padded so that answers line up."""

    tokens: Tokens
    order: Tokens  # the step that wrote each position; 0 where it was given or is still masked
    logp: Float[Tensor, "row pos"]  # log p of each token when it was written; 0 where nothing was
    pad: PerRow  # columns on the left that do not exist for this row
    problem: PerRow  # the problem of the batch that each row belongs to
    start: int  # column at which answers begin
    mask_id: int
    ragged: bool  # True if some row may be padded; known without asking the device

    @classmethod
    def blank(
        cls,
        prompts: Sequence[Sequence[int]],
        length: int,
        mask_id: int,
        *,
        infill: bool = False,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Canvas:
        """Make a row per prompt, followed by `length` masks. Masks inside prompts need `infill`."""
        for prompt in prompts:
            check_prompt(prompt, length, mask_id, infill)
        return cls.of([[*prompt, *[mask_id] * length] for prompt in prompts], length, mask_id, device, dtype)

    @classmethod
    def of(
        cls, texts: Sequence[Sequence[int]], length: int, mask_id: int, device: torch.device | str, dtype: torch.dtype
    ) -> Canvas:
        """Make a row per text, padded on the left. The last `length` positions of each are its answer."""
        width = max(map(len, texts), default=length)
        pads = [width - len(text) for text in texts]
        rows = [[0] * pad + list(text) for pad, text in zip(pads, texts, strict=True)]
        tokens = torch.tensor(rows, dtype=torch.long, device=device).view(len(texts), width)
        order, pad, problem = torch.zeros_like(tokens), tokens.new_tensor(pads), torch.arange(len(texts), device=device)
        return cls(tokens, order, order.to(dtype), pad, problem, width - length, mask_id, any(pads))

    def __len__(self) -> int:
        return len(self.tokens)

    def cpu(self) -> Canvas:
        """Copy to the host, so that rows can be read without asking the device about each of them."""
        return replace(self, **{name: getattr(self, name).cpu() for name in BY_ROW})

    @property
    def width(self) -> int:
        return self.tokens.shape[1]

    @property
    def real(self) -> Bool[Tensor, "row pos"]:
        """False on padding."""
        return torch.arange(self.width, device=self.tokens.device) >= self.pad[:, None]

    @property
    def masked(self) -> Bool[Tensor, "row pos"]:
        return (self.tokens == self.mask_id) & self.real

    @property
    def done(self) -> bool:
        return not bool(self.masked.any())

    @property
    def slots(self) -> Columns:
        """The masked columns of each row, left to right. Rows of one canvas have equally many."""
        counts = self.masked.sum(1)
        if len(counts) and bool((counts != counts[0]).any()):
            raise UnmaskError(
                f"rows of one canvas need equally many masks, not {sorted(set(counts.tolist()))}: "
                "decode() groups problems so that they have"
            )
        return self.masked.nonzero()[:, 1].view(len(self), -1)

    def places(self, at: Columns) -> Columns:
        """Positions counted from each row's own first token, whatever padding its batch gave it."""
        return at - self.pad[:, None]

    def at(self, at: Columns) -> AtTokens:
        return self.tokens.gather(1, at)

    def sum_logp(self, at: Columns) -> Score:
        """Sum the log p of what was written at these columns. A sum over the whole row would depend on its padding."""
        return self.logp.gather(1, at).sum(1)

    def write(self, at: Columns, tokens: AtTokens, where: AtBool, step: Steps, logp: AtFloat) -> Canvas:
        """Replace masks by tokens at the columns where `where` holds. A column may be named twice, with one token."""
        steps = torch.full_like(at, step) if isinstance(step, int) else step[:, None].expand_as(at)
        written = torch.zeros_like(self.tokens).scatter_reduce(1, at, where.long(), "amax").bool()
        return replace(
            self,
            tokens=torch.where(written, self.tokens.scatter(1, at, tokens), self.tokens),
            order=torch.where(written, self.order.scatter(1, at, steps), self.order),
            logp=torch.where(written, self.logp.scatter(1, at, logp.to(self.logp.dtype)), self.logp),
        )

    def remask(self, at: Columns) -> Canvas:
        return replace(
            self,
            tokens=self.tokens.scatter(1, at, self.mask_id),
            order=self.order.scatter(1, at, 0),
            logp=self.logp.scatter(1, at, 0.0),
        )

    def rows(self, index: Int[Tensor, " new"]) -> Canvas:
        """Select rows to fork, prune or reorder: row i of the result is row index[i] of this canvas."""
        return replace(self, **{name: getattr(self, name)[index] for name in BY_ROW})

    def put(self, index: Int[Tensor, " some"], rows: Canvas) -> Canvas:
        """Replace the rows that the index names."""
        return replace(self, **{name: getattr(self, name).index_copy(0, index, getattr(rows, name)) for name in BY_ROW})

    def joined(self, rows: Canvas) -> Canvas:
        """Append rows of the same batch."""
        return replace(self, **{name: torch.cat([getattr(self, name), getattr(rows, name)]) for name in BY_ROW})
