"""The model's logits at the asked positions, read in chunks: no (row, pos, vocab) tensor is ever stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unmask.core.shapes import AtFloat, AtTokens, Float, Int, PerRow
from unmask.errors import UnmaskError

CHUNK = 2**24  # logits held at a time: 64 MiB in float32, twice that for the float64 masses of a draw
CPU_CHUNK = 2**21  # malloc returns larger allocations to the system and faults them in again, which is slow
GROUP = 512  # ids whose masses are summed first, so that a draw scans vocab/512 + 512 numbers


@dataclass(frozen=True)
class Beliefs:
    """Logits at columns of each row. The mask token is never a candidate."""

    read: Callable[[Int[Tensor, " n"]], Float[Tensor, "n vocab"]]  # gives the logits of flat places, row · at + i
    shape: tuple[int, int]  # (row, at)
    vocab: int
    mask_id: int
    device: torch.device
    computed: PerRow | None = None  # positions computed for each row; None: all of them

    def logits(self, places: Int[Tensor, " n"]) -> Float[Tensor, "n vocab"]:
        logits = self.read(places)
        logits = logits.clone() if logits.dtype == torch.float64 else logits.to(torch.float32, copy=True)
        logits[:, self.mask_id] = -torch.inf
        return logits

    def rows(self, index: PerRow) -> Beliefs:
        """Return the beliefs of copies of rows: row i of the result has those of row index[i]."""
        read, width = self.read, self.shape[1]
        copied = replace(self, shape=(len(index), width), computed=None)
        return replace(copied, read=lambda places: read(index[places // width] * width + places % width))

    def among(self, index: PerRow, rows: int, token: int, dtype: torch.dtype) -> Beliefs:
        """Return the beliefs of more rows: row index[i] has those of row i, all others are certain of a token."""
        width = self.shape[1]
        own = torch.full((rows,), -1, device=self.device)
        own[index] = torch.arange(len(index), device=self.device)

        def read(places: Tensor) -> Tensor:
            row = own[places // width]
            some = (row >= 0).nonzero()[:, 0]
            logits = torch.full((len(places), self.vocab), -torch.inf, dtype=dtype, device=self.device)
            logits[:, token] = 0.0
            if len(some):
                logits[some] = self.read(row[some] * width + places[some] % width).to(dtype)
            return logits

        zeros = torch.zeros(rows, dtype=torch.long, device=self.device)
        computed = None if self.computed is None else zeros.index_copy(0, index, self.computed)
        return replace(self, read=read, shape=(rows, width), computed=computed)

    def at(self, place: PerRow) -> Beliefs:
        """Return the beliefs at one asked position of each row."""
        width = self.shape[1]
        return replace(self, read=lambda rows: self.read(rows * width + place[rows]), shape=(self.shape[0], 1))

    @cached_property
    def best(self) -> tuple[AtTokens, AtFloat]:
        """The likeliest token and its log p; ties go to the lowest id."""
        token, logp = self._tokens(lambda logits, _: logits.argmax(1, keepdim=True))
        return token[:, :, 0], logp[:, :, 0]

    def draw(
        self, uniform: Float[Tensor, "row at draw"], temperature: float
    ) -> tuple[Int[Tensor, "row at draw"], Float[Tensor, "row at draw"]]:
        """Draw tokens of softmax(logits / temperature) by inverse CDF; return them with their *untempered* log p."""
        flat = uniform.flatten(0, 1)
        wide = flat.shape[1] * GROUP  # numbers a draw scans at each place
        return self._tokens(lambda logits, places: invert(masses(logits, temperature), flat[places]), wide)

    def logp(self, tokens: AtTokens) -> AtFloat:
        flat = tokens.flatten()
        return self._tokens(lambda _, places: flat[places, None])[1][:, :, 0]

    @cached_property
    def margin(self) -> AtFloat:
        """Probability of the likeliest token minus that of the second."""
        return self._pass(lambda logits, _: (_margin(logits),))[0]

    @cached_property
    def entropy(self) -> AtFloat:
        return self._pass(lambda logits, _: (torch.special.entr(logits.softmax(1)).sum(1),))[0]

    def top(self, count: int) -> tuple[Int[Tensor, "row at top"], Float[Tensor, "row at top"]]:
        """Return the likeliest tokens with their log p, best first; ties go to the lowest id."""
        return self._tokens(lambda logits, _: logits.sort(dim=1, descending=True, stable=True).indices[:, :count])

    def _tokens(self, choose: Callable[[Tensor, Tensor], Tensor], wide: int = 1) -> tuple[Tensor, Tensor]:
        """Return the tokens chosen from the logits of some places, and their log p."""

        def reader(logits: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            token, total = choose(logits, places), logits.logsumexp(1, keepdim=True)
            return token, logits.gather(1, token) - total + 0 * total  # NaN where the total is infinite: refused

        token, logp = self._pass(reader, wide)
        return token, logp

    def _pass(self, reader: Callable[[Tensor, Tensor], tuple[Tensor, ...]], wide: int = 1) -> tuple[Tensor, ...]:
        every = torch.arange(self.shape[0] * self.shape[1], device=self.device)
        chunk = CPU_CHUNK if self.device.type == "cpu" else CHUNK
        some = max(1, chunk // max(self.vocab, wide))
        # Every chunk is read into one place: small results between large ones would fragment the heap.
        whole: tuple[Tensor, ...] = ()
        for start in range(0, max(1, len(every)), some):
            places = every[start : start + some]
            part = reader(self.logits(places), places)
            whole = whole or tuple(result.new_empty(len(every), *result.shape[1:]) for result in part)
            for result, piece in zip(whole, part, strict=True):
                result[start : start + some] = piece
        results = tuple(result.unflatten(0, self.shape) for result in whole)
        # On a GPU this look would wait for the device; there the driver looks at the final scores instead.
        if self.device.type == "cpu" and results[-1].isnan().any():
            raise UnmaskError("the model gave logits that are not numbers: check its weights and dtype")
        return results


def _margin(logits: Tensor) -> Tensor:
    first, second = logits.softmax(1).topk(2, dim=1).values.unbind(1)
    return first - second


def masses(logits: Float[Tensor, "n vocab"], temperature: float) -> Float[Tensor, "n vocab"]:
    """Return softmax(logits / temperature) up to a factor, in float64."""
    mass = logits.to(torch.float64, copy=True)  # and then in place: this is the largest tensor of a draw
    return mass.sub_(mass.amax(1, keepdim=True)).div_(temperature).exp_()


def invert(mass: Float[Tensor, "n vocab"], uniform: Float[Tensor, "n draw"]) -> Int[Tensor, "n draw"]:
    """Return the first id whose cumulative mass exceeds uniform · total, found in two levels."""
    size = min(GROUP, mass.shape[1])
    short = -mass.shape[1] % size
    groups = (torch.nn.functional.pad(mass, (0, short)) if short else mass).unflatten(1, (-1, size))
    heads = groups.sum(2).cumsum(1)
    total = heads[:, -1:]
    goal = torch.minimum(uniform * total, total.nextafter(torch.zeros_like(total)))
    group = torch.searchsorted(heads, goal, right=True).clamp_(max=heads.shape[1] - 1)
    before = torch.where(group > 0, heads.gather(1, (group - 1).clamp(min=0)), 0.0)
    inside = groups.gather(1, group[:, :, None].expand(-1, -1, size))  # (n, draw, size)
    reached = (before[:, :, None] + inside.cumsum(2) <= goal[:, :, None]).sum(2)
    # Rounding may let a group's own sum fall short of its entry in `heads`: then its last id with mass is meant.
    last = torch.where(inside > 0, torch.arange(size, device=mass.device), 0).amax(2)
    return group * size + torch.minimum(reached, last)
