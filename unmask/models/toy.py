"""Small models for documentation and tests, whose probabilities can be checked by hand.

`toy-joint` is a table of all sequences, `toy-chain` a Markov chain: both have exact conditionals for any mask pattern.
`toy-transformer` is the real network with random weights.
"""

from __future__ import annotations

import itertools
import string
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Denoiser
from unmask.core.shapes import Columns, Float
from unmask.errors import UnmaskError, check_between
from unmask.models.model import Messages, Model, model
from unmask.models.network.network import Network
from unmask.models.network.transformer import Shape, Transformer

LARGEST = 2**20  # entries of a joint table
LARGEST_SIZES = {"width": 4096, "layers": 256, "heads": 256, "context": 2**20}


@dataclass(frozen=True)
class Letters:
    """Text of single characters: letters, then `.` (the end of an answer), then `_` (the mask)."""

    count: int  # tokens without the mask

    @property
    def alphabet(self) -> str:
        return (string.ascii_lowercase + string.ascii_uppercase + string.digits)[: self.count - 1] + "._"

    def encode(self, text: str) -> list[int]:
        for letter in text:
            if letter not in self.alphabet:
                raise UnmaskError(f"the toy model cannot read {letter!r}: it knows {self.alphabet[:-1]}")
        return [self.alphabet.index(letter) for letter in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.alphabet[i] for i in ids)

    def chat(self, messages: Messages) -> str:
        return "".join(message["content"] for message in messages)


class Exact(ABC):
    """A denoiser with known conditionals: subclasses compute p(token at each column | visible tokens)."""

    dtype = torch.float64
    refresh = block_size = None

    def __init__(self, letters: int, context: int, seed: int, device: torch.device):
        self.letters, self.mask_id, self.context = letters, letters, context
        self.vocab = letters + 1
        self.seed, self.device = seed, device

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        logits = torch.full((*at.shape, self.letters + 1), -torch.inf, dtype=torch.float64, device=self.device)
        for row, (tokens, pad) in enumerate(zip(canvas.tokens, canvas.pad.tolist(), strict=True)):
            marginals = self.marginals(tokens[pad:])
            logits[row, :, :-1] = marginals[at[row] - pad].log()
        flat = logits.flatten(0, 1)
        return Beliefs(flat.__getitem__, (at.shape[0], at.shape[1]), self.letters + 1, self.mask_id, self.device)

    @abstractmethod
    def marginals(self, tokens: Tensor) -> Float[Tensor, "pos letter"]: ...

    def _generator(self, length: int) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed * 1009 + length)


class Joint(Exact):
    """A joint distribution in which every sequence of a length has its own random probability."""

    def __init__(self, letters: int, seed: int, sharpness: float, device: torch.device):
        context = max(n for n in range(1, 21) if letters**n <= LARGEST)
        super().__init__(letters, context, seed, device)
        self.sharpness = sharpness
        self.table = cache(self._table)

    def _table(self, length: int) -> Tensor:
        size = (self.letters,) * length
        logits = torch.randn(size, generator=self._generator(length), dtype=torch.float64) * self.sharpness
        return logits.flatten().softmax(0).view(size).to(self.device)

    def marginals(self, tokens: Tensor) -> Tensor:
        seen = [slice(None) if token == self.mask_id else token for token in tokens.tolist()]
        table = self.table(len(seen))[tuple(seen)]
        out = torch.zeros(len(seen), self.letters, dtype=torch.float64, device=self.device)
        axis = itertools.count()
        for place, token in enumerate(seen):
            if isinstance(token, slice):
                own = next(axis)
                sums = table.sum([i for i in range(table.ndim) if i != own]) if table.ndim > 1 else table
                out[place] = sums / sums.sum()
            else:
                out[place, token] = 1.0
        return out


class Chain(Exact):
    """A Markov chain: conditionals at any length by messages from the left and from the right."""

    def __init__(self, letters: int, seed: int, sharpness: float, context: int, device: torch.device):
        super().__init__(letters, context, seed, device)
        steps = torch.randn(letters, letters, generator=self._generator(0), dtype=torch.float64) * sharpness
        self.move = steps.softmax(1).to(device)

    def marginals(self, tokens: Tensor) -> Tensor:
        seen = torch.ones(len(tokens), self.letters, dtype=torch.float64, device=self.device)
        for place, token in enumerate(tokens.tolist()):
            if token != self.mask_id:
                seen[place] = torch.nn.functional.one_hot(tokens[place], self.letters)
        ahead, back = seen.clone(), torch.ones_like(seen)
        for i in range(1, len(seen)):
            ahead[i] = seen[i] * ((ahead[i - 1] / ahead[i - 1].sum()) @ self.move)
        for i in reversed(range(len(seen) - 1)):
            known = seen[i + 1] * back[i + 1]  # exactly one-hot at a visible token: what follows has no influence
            message = self.move @ (known / known.sum())
            back[i] = message / message.sum()
        both = ahead * back
        return both / both.sum(1, keepdim=True)


class Toy(ABC):
    """A model over `letters` tokens; subclasses build its denoiser."""

    letters: int  # number of tokens
    seed: int  # seed of its random numbers
    sharpness: float  # spread of the log-probabilities

    @abstractmethod
    def denoiser(self, device: torch.device, dtype: torch.dtype | None) -> Denoiser: ...

    def load(self, device: torch.device, dtype: torch.dtype | None) -> Model:
        check_between(2, 62, letters=self.letters)
        for name, most in LARGEST_SIZES.items():
            check_between(1, most, **{name: getattr(self, name, 1)})
        check_between(0, sys.float_info.max, sharpness=self.sharpness)
        check_between(1 - 2**32, 2**32 - 1, seed=self.seed)
        text, eos = Letters(self.letters), frozenset({self.letters - 1})
        return Model(model.name(self), self.denoiser(device, dtype), text, eos, default_length=8)


@model("toy-joint")
@dataclass(frozen=True)
class ToyJoint(Toy):
    """A random table of all sequences: exact conditionals for any mask pattern, for a dozen positions."""

    letters: int = 4
    seed: int = 0
    sharpness: float = 1.0

    def denoiser(self, device: torch.device, dtype: torch.dtype | None) -> Denoiser:
        del dtype
        return Joint(self.letters, self.seed, self.sharpness, device)


@model("toy-chain")
@dataclass(frozen=True)
class ToyChain(Toy):
    """A random Markov chain: exact conditionals for any mask pattern, at any length."""

    letters: int = 8
    seed: int = 0
    sharpness: float = 2.0
    context: int = 1024  # positions at most

    def denoiser(self, device: torch.device, dtype: torch.dtype | None) -> Denoiser:
        del dtype
        return Chain(self.letters, self.seed, self.sharpness, self.context, device)


@model("toy-transformer")
@dataclass(frozen=True)
class ToyTransformer(Toy):
    """The real network with random weights."""

    letters: int = 32
    width: int = 32  # size of a hidden state
    layers: int = 2  # transformer layers
    heads: int = 4  # attention heads per layer
    context: int = 1024  # positions at most
    sharpness: float = 2.0  # spread of the logits
    seed: int = 0

    def denoiser(self, device: torch.device, dtype: torch.dtype | None) -> Denoiser:
        if self.width // self.heads % 2 or self.width < self.heads:
            raise UnmaskError(f"width must be an even multiple of heads={self.heads}, got {self.width}")
        shape = Shape(
            self.width, self.layers, self.heads, hidden=2 * self.width, vocab=self.letters + 1, context=self.context
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            module = Transformer(shape)
            for weight in module.parameters():
                if weight.ndim == 2:
                    torch.nn.init.normal_(weight, std=1.5 / weight.shape[1] ** 0.5)
            torch.nn.init.normal_(module.embed.weight)
            torch.nn.init.normal_(module.head.weight, std=self.sharpness / self.width**0.5)
        return Network(module.to(device, dtype or torch.float32).requires_grad_(False), mask_id=self.letters)
