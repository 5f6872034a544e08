"""CUDA graphs of a cached step, which is hundreds of small kernels: for a few rows, launching them dominates.

A graph is captured for each shape (rows, window, width), rows rounded up to a power of two. All graphs read keys and
values from one buffer, which is loaded at the start of a block and written to in place by the steps that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.core.shapes import Bool, Columns, Float, Int, PerRow, Tokens
from unmask.models.network.experts import groups
from unmask.models.network.transformer import Transformer, lines, select

MOST = 16  # graphs kept; then the oldest is dropped
LARGEST = 2**12  # positions per step, beyond which launching no longer dominates
WARM = 3  # runs before a capture, in which libraries allocate their workspaces

# Makes a run repeatable: returns its result, always in the same place, and a function that computes it again.
Capture = Callable[[Callable[[], Tensor]], tuple[Tensor, Callable[[], None]]]


class Window(NamedTuple):
    """The part of each row that a step computes."""

    tokens: Tokens
    places: Int[Tensor, "row pos"]  # rotary positions
    columns: Columns  # columns of the tokens in the row
    real: Bool[Tensor, "row whole"] | None  # columns of the row that are attended to; None: all

    def rows(self, index: Int[Tensor, " new"]) -> Window:
        real = None if self.real is None else self.real[index]
        return Window(self.tokens[index], self.places[index], self.columns[index], real)


class Key(NamedTuple):
    """The shape that a graph is captured for."""

    rows: int
    window: int
    width: int
    masked: bool


class Graph(NamedTuple):
    """Inputs, keys and values and result at fixed addresses, and the function that computes the result."""

    window: Window
    kv: Float[Tensor, "layer 2 row head whole dim"]
    hidden: Float[Tensor, "row pos width"]
    replay: Callable[[], None]


class Graphs:
    """The captured graphs of a module."""

    def __init__(self, module: Transformer, capture: Capture | None = None):
        """`capture` replaces CUDA's own in tests without a GPU."""
        self.module, self.capture = module, capture
        self.made: dict[Key, Graph] = {}
        self.room: Tensor | None = None  # keys and values of the graph that runs, flat
        self.loaded: tuple[Key, Hashable] | None = None

    def fit(self, window: Window) -> bool:
        """Return whether a window's step is better replayed than launched."""
        if self.module.shape.experts is not None and not groups(self.module.embed.weight.dtype):
            return False
        return (self.capture is not None or window.tokens.is_cuda) and window.tokens.numel() <= LARGEST

    @torch.inference_mode()
    def __call__(self, kv: Tensor, rows: PerRow, window: Window, version: Hashable) -> Float[Tensor, "row pos width"]:
        """Return hidden states of windows on `rows` of the keys and values; the next call overwrites them.

        Keys and values are loaded once per `version`, which identifies them and the rows.
        """
        count, size = window.tokens.shape
        key = Key(1 << (count - 1).bit_length(), size, kv.shape[4], window.real is not None)
        graph = self._graph(key)
        there = torch.arange(key.rows, device=kv.device).clamp(max=count - 1)  # the last row is repeated
        if self.loaded != (key, version):
            self._load(graph.kv, kv, rows[there])
            self.loaded = (key, version)
        for held, given in zip(graph.window, window.rows(there), strict=True):
            if held is not None and given is not None:
                held.copy_(given)
        graph.replay()
        return graph.hidden[:count]

    def _load(self, target: Tensor, kv: Tensor, rows: PerRow) -> None:
        """Copy rows layer by layer: a copy of all layers at once would need as much memory again."""
        line = lines(kv, rows)
        for layer, source in zip(target, kv, strict=True):
            select(source, line, out=layer)

    def _graph(self, key: Key) -> Graph:
        if key not in self.made:
            kv = self._taken(key)
            if len(self.made) >= MOST:
                del self.made[next(iter(self.made))]
            self.made[key] = self._captured(key, kv)
        return self.made[key]

    def _taken(self, key: Key) -> Tensor:
        """Return keys and values of a shape at the front of the buffer. A larger buffer invalidates all graphs."""
        shape = self.module.shape.room(key.rows, key.width)
        if self.room is None or self.room.numel() < shape.numel():
            self.clear()
            self.room = self.module.embed.weight.new_zeros(shape.numel())
        self.loaded = None
        return self.room[: shape.numel()].view(shape)

    def clear(self) -> None:
        """Free the memory; graphs are captured again where they are needed."""
        if self.room is not None and self.room.is_cuda:
            torch.cuda.synchronize(self.room.device)  # a graph may still be running
        self.made.clear()
        self.room = self.loaded = None

    def _captured(self, key: Key, kv: Tensor) -> Graph:
        tokens = torch.zeros(key.rows, key.window, dtype=torch.long, device=kv.device)
        real = torch.ones(key.rows, key.width, dtype=torch.bool, device=kv.device) if key.masked else None
        window = Window(tokens, tokens.clone(), tokens.clone(), real)

        def run() -> Tensor:
            return self.module(window.tokens, window.places, window.real, kv.__getitem__, window.columns)

        with torch.cuda.device_of(kv):
            return Graph(window, kv, *(self.capture or captured)(run))


def captured(run: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """Capture a run as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hidden = run()
    return hidden, graph.replay
