"""Random numbers with addresses: a draw depends on what it is for, never on what else is being drawn.

The address of a number is (seed, problem, lineage, purpose, draw, step, place). It is hashed by SplitMix64's finaliser,
chained, in int64 tensor operations that give the same bits on every device.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from unmask.core.canvas import Canvas
from unmask.core.shapes import Columns, Float, Int, PerRow, Steps

Purpose = Literal["token", "order", "sample"]
_PURPOSES = {"token": 1, "order": 2, "sample": 3}


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


_GAMMA, _FIRST, _SECOND = map(_signed, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _shift(word: Tensor, bits: int) -> Tensor:
    """Shift right without sign; torch's own operator keeps the sign."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


def mix(word: Tensor, more: Tensor | int) -> Tensor:
    word = (word ^ more) + _GAMMA
    word = (word ^ _shift(word, 30)) * _FIRST
    word = (word ^ _shift(word, 27)) * _SECOND
    return word ^ _shift(word, 31)


def reseed(seed: int, sample: int) -> int:
    """Return the seed of the n-th independent sample under a seed; sample 0 has the seed itself."""
    if sample == 0:
        return seed
    return int(_resown(torch.tensor(_signed(seed % (1 << 64))), torch.tensor(sample)))


def _resown(seed: Tensor, sample: Tensor) -> Tensor:
    return torch.where(sample == 0, seed, mix(mix(seed, 0x5A3D), sample) & ((1 << 53) - 1))


@dataclass(frozen=True)
class Noise:
    """One stream of random numbers per row."""

    seed: PerRow  # the same for all rows of a problem, unless they are independent samples
    problem: PerRow  # a hash of the prompt's ids: not its place in a file or batch
    lineage: PerRow  # 0 at the root; forks give every live row its own

    @classmethod
    def of(cls, canvas: Canvas, seed: int | Sequence[int]) -> Noise:
        """Make the noise of a canvas, with one seed for all rows or one for each."""
        tokens, pads = canvas.tokens[:, : canvas.start].tolist(), canvas.pad.tolist()
        keys = [key(row[pad:]) for row, pad in zip(tokens, pads, strict=True)]
        return cls.root(torch.tensor(keys, device=canvas.tokens.device, dtype=torch.long), seed)

    @classmethod
    def root(cls, problem: PerRow, seed: int | Sequence[int]) -> Noise:
        seeds = [seed] * len(problem) if isinstance(seed, int) else seed
        words = [_signed(each % (1 << 64)) for each in seeds]
        return cls(problem.new_tensor(words), problem, torch.zeros_like(problem))

    def again(self, sample: int | PerRow) -> Noise:
        """Return the noise of the n-th independent sample: that of a run under `reseed(seed, n)`."""
        return replace(self, seed=_resown(self.seed, torch.as_tensor(sample, device=self.seed.device)))

    def rows(self, index: Int[Tensor, " new"]) -> Noise:
        """Select rows: row i of the result has the stream of row index[i]."""
        return Noise(self.seed[index], self.problem[index], self.lineage[index])

    def joined(self, noise: Noise) -> Noise:
        words = (torch.cat([getattr(self, name), getattr(noise, name)]) for name in ("seed", "problem", "lineage"))
        return Noise(*words)

    def children(self, parent: Int[Tensor, " new"], draw: Int[Tensor, " new"], step: int) -> Noise:
        """Return the noise of children of the rows `parent`: draw 0 keeps its parent's stream, others get their own."""
        rows = self.rows(parent)
        return replace(rows, lineage=torch.where(draw == 0, rows.lineage, mix(mix(rows.lineage, step), draw)))

    @cached_property
    def _stream(self) -> PerRow:
        return mix(mix(self.seed, self.problem), self.lineage)

    def uniform(self, purpose: Purpose, step: Steps, places: Columns, draws: int = 1) -> Float[Tensor, "row at draw"]:
        """Return uniform numbers in [0, 1) with 53 bits, one per row, place and draw."""
        word = mix(self._stream, (_PURPOSES[purpose] << 32) | step)
        draw = torch.arange(draws, device=word.device)
        word = mix(mix(word[:, None, None], draw), places[:, :, None])
        return _shift(word, 11).double() * 2.0**-53


def key(ids: Sequence[int]) -> int:
    """Return a hash of a prompt's ids, which identifies the problem among random numbers."""
    packed = struct.pack(f"<{len(ids)}q", *ids)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little", signed=True)
