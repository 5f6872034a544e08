"""The exact cache of block-causal networks: keys and values of finished blocks, each stored once.

The keys and values of a block depend only on the tokens up to its end. They are stored under those tokens, and every
row that begins with them shares them: beams, samples, candidates with different futures. A question computes the
blocks that it asks about and, once, the blocks before them that no earlier question has needed.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas, Wrapper
from unmask.core.shapes import Columns, Float, PerRow
from unmask.models.network.cuda_graphs import Window
from unmask.models.network.network import BUCKET, CHUNK, BlockCausal, PackedRows, packed_rows

SPARE = 4  # beginnings of texts are remembered for this many times the rows of a question, the latest first
BYTES = 8  # of a token
_VERSIONS = count()


class Page:
    """Keys and values of one block, (layer, 2, head, pos, dim)."""

    def __init__(self, kv: Tensor):
        self.kv = kv


class Stretch(NamedTuple):
    """A stretch of a row, of whole blocks. Equal stretches have equal hidden states."""

    before: bytes  # the tokens up to its start
    inside: bytes  # and from there to its end
    start: int  # its first position
    stop: int
    length: int  # of the row
    whole: int  # of the row as the network is given it, filled up

    @property
    def size(self) -> int:
        """Without what fills the row up."""
        return min(self.stop, self.length) - self.start


class Loaded(NamedTuple):
    """Rows of keys and values in which everything before a question's stretches is filled in."""

    befores: list[bytes]
    kv: Float[Tensor, "layer 2 row head whole dim"]
    version: int


class ExactlyCached(Wrapper):
    """The network's own beliefs, for fewer positions. On a CPU in float32 they are equal to the bit."""

    def __init__(self, network: BlockCausal):
        super().__init__(network)
        self.network = network
        self.pages: WeakValueDictionary[tuple[int, bytes], Page] = WeakValueDictionary()  # by parent and tokens
        self.beginnings: OrderedDict[bytes, tuple[Page, ...]] = OrderedDict()  # by the tokens that they hold
        self.blank: OrderedDict[Stretch, Tensor] = OrderedDict()  # hidden states of stretches that were all masks
        self.loaded: Loaded | None = None
        self.most = 0  # rows of a question so far
        self.mask = network.mask_id.to_bytes(BYTES, sys.byteorder)

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        places = self.network.read_at(canvas, at) - canvas.pad[:, None]
        self.most = max(self.most, len(canvas))
        computed = torch.zeros_like(canvas.pad)
        hidden: Tensor | None = None
        for packed in packed_rows(canvas):
            states, first, cost = self._read(packed, places[packed.rows])
            asked = (places[packed.rows] - first[:, None])[:, :, None].expand(-1, -1, states.shape[-1])
            taken = states.gather(1, asked)
            hidden = taken.new_empty(*at.shape, taken.shape[-1]) if hidden is None else hidden
            hidden[packed.rows], computed[packed.rows] = taken, cost
        assert hidden is not None
        self._forget()
        return self.network.beliefs(hidden, computed)

    def _read(self, packed: PackedRows, places: Columns) -> tuple[Tensor, PerRow, PerRow]:
        """Hidden states of every row's stretch, its first position, and the positions computed for the row."""
        stretches = self._stretches(packed, places)
        cost = self._settle(packed, stretches)
        new: dict[Stretch, int] = {}  # with the first row that asks about it
        for row, stretch in enumerate(stretches):
            if stretch not in self.blank:
                new.setdefault(stretch, row)
        states = dict(zip(new, self._compute(packed, list(new), list(new.values())), strict=True))
        for stretch, row in new.items():
            cost[row] += stretch.size
            if stretch.inside == self.mask * (stretch.stop - stretch.start):
                self.blank[stretch] = states[stretch].clone()
        rows = [states[stretch] if stretch in states else self.blank[stretch] for stretch in stretches]
        widest = max(map(len, rows))
        stacked = torch.stack([F.pad(row, (0, 0, 0, widest - len(row))) for row in rows])
        first = torch.tensor([stretch.start for stretch in stretches], device=places.device)
        return stacked, first, torch.tensor(cost, device=places.device)

    def _stretches(self, packed: PackedRows, places: Columns) -> list[Stretch]:
        """From the first to the last block that each row asks about. Reading the tokens waits for the device."""
        block, whole = self.network.block_size, packed.tokens.shape[1]
        ends = torch.stack([places.amin(1), places.amax(1), packed.length], dim=1)
        table = torch.cat([ends, packed.tokens], dim=1).cpu().numpy()
        stretches = []
        for first, last, length in table[:, :3].tolist():
            tokens = table[len(stretches), 3:]
            start, stop = first // block * block, min(whole, (last // block + 1) * block)
            stretches.append(
                Stretch(tokens[:start].tobytes(), tokens[start:stop].tobytes(), start, stop, length, whole)
            )
        return stretches

    def _settle(self, packed: PackedRows, stretches: Sequence[Stretch]) -> list[int]:
        """Compute the blocks before each stretch that are not there yet; how many positions that took, by row."""
        cost, missing = [0] * len(stretches), {}
        for row, stretch in enumerate(stretches):
            if stretch.before in self.beginnings:
                self.beginnings.move_to_end(stretch.before)
            elif stretch.before not in missing:
                chain = self._chain(stretch.before)
                start = len(chain) * self.network.block_size
                before, inside = stretch.before[: start * BYTES], stretch.before[start * BYTES :]
                self.beginnings[before] = chain
                cost[row] = stretch.start - start
                missing[stretch.before] = (
                    row,
                    Stretch(before, inside, start, stretch.start, stretch.start, stretch.whole),
                )
        left = [entry for entry in missing.values() if entry[1].inside]
        for numbers in _alike([stretch for _, stretch in left]):
            rows, some = zip(*(left[number] for number in numbers), strict=True)
            _, kv = self._forward(packed, some, rows, steady=False)
            for stretch, keys in zip(some, kv.unbind(2), strict=True):
                self._store(stretch, keys)
        return cost

    def _chain(self, tokens: bytes) -> tuple[Page, ...]:
        """The pages of as many blocks, from the first on, as there are."""
        chain: list[Page] = []
        for inside in self._blocks(tokens):
            page = self.pages.get((id(chain[-1]) if chain else 0, inside))
            if page is None:
                break
            chain.append(page)
        return tuple(chain)

    def _blocks(self, tokens: bytes) -> list[bytes]:
        width = self.network.block_size * BYTES
        return [tokens[start : start + width] for start in range(0, len(tokens), width)]

    def _store(self, stretch: Stretch, kv: Float[Tensor, "layer 2 head whole dim"]) -> None:
        chain = list(self.beginnings[stretch.before])
        for number, inside in enumerate(self._blocks(stretch.inside)):
            start = stretch.start + number * self.network.block_size
            page = Page(kv[..., start : start + self.network.block_size, :].clone())
            page = self.pages.setdefault((id(chain[-1]) if chain else 0, inside), page)
            chain.append(page)
        self.beginnings[stretch.before + stretch.inside] = tuple(chain)

    def _compute(self, packed: PackedRows, stretches: Sequence[Stretch], rows: Sequence[int]) -> list[Tensor]:
        """Hidden states of each stretch, all blocks before which are there."""
        states: dict[int, Tensor] = {}
        for numbers in _alike(stretches):
            some = [stretches[number] for number in numbers]
            hidden, _ = self._forward(packed, some, [rows[number] for number in numbers], steady=True)
            states |= zip(numbers, hidden, strict=True)
        return [states[number] for number in range(len(stretches))]

    def _forward(
        self, packed: PackedRows, stretches: Sequence[Stretch], rows: Sequence[int], steady: bool
    ) -> tuple[Tensor, Tensor]:
        """Hidden states of stretches of one size, (stretch, pos, width), and the keys and values of their rows.

        A steady question comes again: its keys and values are then those of a captured graph.
        """
        device, size = self.device, stretches[0].stop - stretches[0].start
        start, index = (
            torch.tensor(numbers, device=device) for numbers in ([stretch.start for stretch in stretches], rows)
        )
        columns = start[:, None] + torch.arange(size, device=device)
        if device.type == "cpu":  # products of a few rows are summed in another order
            columns = torch.cat([columns, columns[:, -1:].expand(-1, -size % BUCKET)], dim=1)
        real = packed.real
        tokens = packed.tokens[index].gather(1, columns)
        window = Window(tokens, columns, columns, None if real is None else real[index])
        kv, version = self._load(stretches)
        if steady and self.network.graphs.fit(window):
            hidden = self.network.graphs(kv, torch.arange(len(stretches), device=device), window, version)
        else:
            hidden = self.network.module(tokens, columns, window.real, kv.__getitem__, columns)
        return hidden[:, :size], kv

    def _load(self, stretches: Sequence[Stretch]) -> tuple[Tensor, tuple[str, int]]:
        """Rows of keys and values with the pages before each stretch; nothing is copied for the same rows again."""
        befores = [stretch.before for stretch in stretches]
        if self.loaded is None or self.loaded.befores != befores or self.loaded.kv.shape[4] != stretches[0].whole:
            module = self.network.module
            kv = module.embed.weight.new_zeros(module.shape.room(len(stretches), stretches[0].whole))
            for row, stretch in enumerate(stretches):
                if stretch.start:
                    kv[:, :, row, :, : stretch.start] = torch.cat(
                        [page.kv for page in self.beginnings[stretch.before]], dim=3
                    )
            self.loaded = Loaded(befores, kv, next(_VERSIONS))
        return self.loaded.kv, ("exact", self.loaded.version)

    def _forget(self) -> None:
        """Pages go with the last beginning that holds them."""
        for memory in (self.beginnings, self.blank):
            while len(memory) > SPARE * self.most:
                memory.popitem(last=False)


def _alike(stretches: Iterable[Stretch]) -> list[list[int]]:
    """The numbers of stretches of one size, as many together as go through the network at a time."""
    sizes: dict[int, list[int]] = {}
    for number, stretch in enumerate(stretches):
        sizes.setdefault(stretch.stop - stretch.start, []).append(number)
    chunks = ((numbers, max(1, CHUNK // size)) for size, numbers in sizes.items())
    return [numbers[start : start + many] for numbers, many in chunks for start in range(0, len(numbers), many)]
