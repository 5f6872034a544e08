"""What an engine does for many clients, measured beside one request at a time on the same weights and prompts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from unmask.bench.subject import Subject
from unmask.models import Model
from unmask.models.checkpoints.tokenizer import Numbers
from unmask.report.tables import Table
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.serve.engine import AsyncEngine

CLIENTS = (1, 4, 16)
HEAD = ["decoder", "clients", "requests", "requests/s", "tokens/s", "gain", "p50 s", "max s", "batch"]


@dataclass(frozen=True)
class Workload:
    """Every client sends a request as soon as its last one is answered, `each` of them; tokens are masks written."""

    subject: Subject
    prompt: int  # random tokens
    length: int
    each: int = 2
    show: Callable[[str], None] = lambda line: None

    def measure(self, decoders: Sequence[str], clients: Sequence[int] = CLIENTS) -> list[dict[str, Any]]:
        return [row for decoder in decoders for row in self._decoder(decoder, clients)]

    def _decoder(self, decoder: str, clients: Sequence[int]) -> Iterator[dict[str, Any]]:
        decoding = Decoding.from_dict({"decoder": decoder, "length": self.length})
        generation = Generation(self.model, decoding)
        prompts = self.subject.random_ids(1 + self.each * (2 + sum(clients)), self.prompt, seed=0)
        generation.outputs([read_prompt(self.model, prompts.pop())])  # a warm-up
        alone = self._alone(generation, [prompts.pop() for _ in range(self.each)])
        yield self._row(decoder, 0, alone, [], alone)
        for number in clients:
            seconds, sizes = asyncio.run(self._together(decoding, number, prompts))
            yield self._row(decoder, number, seconds, sizes, alone)

    @property
    def model(self) -> Model:
        return Model(self.subject.name, self.subject.denoiser, Numbers(), frozenset(), self.length)

    def _alone(self, generation: Generation, prompts: Sequence[list[int]]) -> list[float]:
        """The seconds of each, and at the end of all."""
        seconds, began = [], time.perf_counter()
        for prompt in prompts:
            start = time.perf_counter()
            generation.outputs([read_prompt(self.model, prompt)])
            seconds.append(time.perf_counter() - start)
        return [*sorted(seconds), time.perf_counter() - began]

    async def _together(
        self, decoding: Decoding, clients: int, prompts: list[list[int]]
    ) -> tuple[list[float], list[int]]:
        sizes, numbers = list[int](), count()
        async with AsyncEngine(self.model, decoding=vars(decoding)) as engine:
            engine.on_forward.append(lambda rows, requests: sizes.append(rows))

            async def client() -> list[float]:
                seconds = []
                for _ in range(self.each):
                    start = time.perf_counter()
                    await engine.generate(prompts[next(numbers) % len(prompts)])
                    seconds.append(time.perf_counter() - start)
                return seconds

            began = time.perf_counter()
            every = await asyncio.gather(*(client() for _ in range(clients)))
            whole = time.perf_counter() - began
        return [*sorted(second for seconds in every for second in seconds), whole], sizes

    def _row(
        self, decoder: str, clients: int, seconds: list[float], sizes: list[int], alone: list[float]
    ) -> dict[str, Any]:
        *each, whole = seconds
        pace, alone_pace = len(each) / whole, (len(alone) - 1) / alone[-1]
        row = {
            "decoder": decoder,
            "clients": clients,  # 0: one request at a time, without an engine
            "requests": len(each),
            "seconds": whole,
            "requests_per_second": pace,
            "tokens_per_second": pace * self.length,
            "gain": pace / alone_pace,
            "p50": each[len(each) // 2],
            "max": each[-1],
            "mean_batch": sum(sizes) / len(sizes) if sizes else None,
            "memory": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
        }
        self.show(f"{decoder}, {clients} clients: {pace:.3g} requests/s, {row['gain']:.2f} × one at a time")
        return row


def table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    cells = [
        (
            row["decoder"],
            str(row["clients"] or "none: generate"),
            str(row["requests"]),
            f"{row['requests_per_second']:.3g}",
            f"{row['tokens_per_second']:.1f}",
            f"{row['gain']:.2f}",
            f"{row['p50']:.3g}",
            f"{row['max']:.3g}",
            f"{row['mean_batch']:.1f}" if row["mean_batch"] else "–",
        )
        for row in rows
    ]
    return Table.of("timing", title, HEAD, cells)
