"""The load generator of `unmask bench --serve`: many clients of an engine, compared with one request at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
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
    """Clients that each send `each` requests, one as soon as the last is answered. Tokens are filled masks."""

    subject: Subject
    prompt: int  # random tokens per prompt
    length: int  # masks per answer
    each: int = 2  # requests per client
    show: Callable[[str], None] = lambda line: None

    def measure(self, decoders: Sequence[str], clients: Sequence[int] = CLIENTS) -> list[dict[str, Any]]:
        """Measure each decoder without an engine, and with an engine for these numbers of clients."""
        return [row for decoder in decoders for row in self._measure(decoder, clients)]

    def _measure(self, decoder: str, clients: Sequence[int]) -> Iterator[dict[str, Any]]:
        decoding = Decoding.from_dict({"decoder": decoder, "length": self.length})
        generation = Generation(self.model, decoding)
        prompts = self.subject.random_ids(1 + self.each * (2 + sum(clients)), self.prompt, seed=0)
        generation.outputs([read_prompt(self.model, prompts.pop())])  # a warm-up
        times = [time.perf_counter()]
        for _ in range(self.each):
            generation.outputs([read_prompt(self.model, prompts.pop())])
            times.append(time.perf_counter())
        single = self._row(decoder, 0, [end - start for start, end in pairwise(times)], times[-1] - times[0])
        yield single
        for number in clients:
            measured = asyncio.run(self._with_clients(decoding, number, prompts))
            yield self._row(decoder, number, *measured, pace=single["requests_per_second"])

    @property
    def model(self) -> Model:
        return Model(self.subject.name, self.subject.network, Numbers(), frozenset(), self.length)

    async def _with_clients(
        self, decoding: Decoding, clients: int, prompts: list[list[int]]
    ) -> tuple[list[float], float, list[int]]:
        """Return the seconds of each request and of all together, and the sequences of each call of the network."""
        sizes, seconds, numbers = list[int](), list[float](), count()

        async def client() -> None:
            for _ in range(self.each):
                start = time.perf_counter()
                await engine.generate(prompts[next(numbers) % len(prompts)])
                seconds.append(time.perf_counter() - start)

        async with AsyncEngine(self.model, decoding=vars(decoding)) as engine:
            engine.on_forward.append(lambda rows, requests: sizes.append(rows))
            began = time.perf_counter()
            await asyncio.gather(*(client() for _ in range(clients)))
            return seconds, time.perf_counter() - began, sizes

    def _row(
        self,
        decoder: str,
        clients: int,
        seconds: list[float],
        whole: float,
        sizes: Sequence[int] = (),
        pace: float | None = None,
    ) -> dict[str, Any]:
        per_second = len(seconds) / whole
        row = {
            "decoder": decoder,
            "clients": clients,  # 0: one request at a time, without an engine
            "requests": len(seconds),
            "seconds": whole,
            "requests_per_second": per_second,
            "tokens_per_second": per_second * self.length,
            "gain": per_second / (pace or per_second),  # over one request at a time
            "p50": sorted(seconds)[len(seconds) // 2],
            "max": max(seconds),
            "mean_batch": sum(sizes) / len(sizes) if sizes else None,
            "memory": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
        }
        self.show(f"{decoder}, {clients} clients: {per_second:.3g} requests/s, {row['gain']:.2f} × one at a time")
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
