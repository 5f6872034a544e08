"""Load test of an engine: whether every request is answered as by `unmask generate`, how fast, and the memory used.

    python benchmarks/serve.py --model tiny --decoder low-confidence --clients 64 --seconds 60
    python benchmarks/serve.py --model tiny --decoder search --device cuda --streams 8 --leavers 8 --seconds 180

Three stages on the same problems, each problem with its own seed: `generate`, one after the other; one client of an
engine; many clients, each of which sends a request as soon as its last one is answered. Of the many, some read streams
and some cancel their requests halfway. A JSON line is printed per stage; lost or unequal answers end with exit code 1.
On a GPU scores, and so some texts, may depend on the batch size: there `equal text` and `unequal` are only counted.
`cpu` is seconds of CPU time per answer, which other processes affect less than the rate.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections import Counter

import unmask
from unmask.models.devices import proc_bytes
from unmask.runs.settings import Placement
from unmask.serve.limits import RequestLimits
from unmask.tasks import task


class Forwards:
    """Counts forward passes of an engine, and their rows and requests."""

    def __init__(self) -> None:
        self.count = self.rows = self.requests = 0

    def __call__(self, rows: int, requests: int) -> None:
        self.count, self.rows, self.requests = self.count + 1, self.rows + rows, self.requests + requests


def likeness(output: unmask.Output, alone: unmask.Output) -> str:
    """Return whether two answers are equal to the last bit of their scores, equal in their texts, or unequal."""
    if (output.text, output.hypotheses) == (alone.text, alone.hypotheses):
        return "equal"
    return "equal text" if output.text == alone.text else "unequal"


class Clients:
    """Clients that send the requests of a fixed list repeatedly, and count the outcomes."""

    def __init__(self, engine: unmask.AsyncEngine, prompts: list, expected: list, length: int):
        self.engine, self.prompts, self.expected, self.length = engine, prompts, expected, length
        self.numbers, self.outcomes, self.seconds = itertools.count(), Counter(), []

    async def run(self, kind: str, until: float) -> None:
        while time.perf_counter() < until:
            number = next(self.numbers) % len(self.prompts)
            began = time.perf_counter()
            try:
                output = await self._ask(kind, number)
            except Exception as error:
                self.outcomes[f"lost: {error}"] += 1
                continue
            if output is None:
                self.outcomes["given up"] += 1
                continue
            self.seconds.append(time.perf_counter() - began)
            alone = self.expected[number]
            self.outcomes[likeness(output, alone)] += 1

    async def _ask(self, kind: str, number: int) -> unmask.Output | None:
        if kind == "answers":
            return await self.engine.generate(self.prompts[number], length=self.length, seed=number)
        if kind == "leavers":
            answer = asyncio.create_task(self.engine.generate(self.prompts[number], length=self.length, seed=number))
            await asyncio.wait([answer], timeout=0.5 * self.expected[number].cost.seconds)
            answer.cancel()
            return None
        async for update in self.engine.stream(self.prompts[number], length=self.length, seed=number):
            if update.answer is not None:
                return update.answer.output
        raise RuntimeError("the stream ended without an answer")


def tell(stage: str, clock: tuple[float, float], each: list[float], **more) -> dict:
    seconds, cpu = time.perf_counter() - clock[0], time.process_time() - clock[1]
    line = {"stage": stage, "seconds": seconds, "answers": len(each), "pace": len(each) / seconds}
    line |= {"p50": statistics.median(each), "max": max(each), "cpu": cpu / len(each), **more}
    print(json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in line.items()}))
    sys.stdout.flush()
    return line


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


async def served(model: unmask.Model, args, prompts: list, expected: list, kinds: list[str], seconds: float) -> dict:
    forwards, memory = Forwards(), []

    async def watch() -> None:
        while True:
            memory.append(round((proc_bytes("self/status", "VmRSS") or 0) / 2**20))
            await asyncio.sleep(seconds / 6)

    limits = RequestLimits(running=args.running)
    async with unmask.AsyncEngine(model, limits, decoding={"decoder": args.decoder}) as engine:
        engine.on_forward.append(forwards)
        clients, start = Clients(engine, prompts, expected, args.length), clock()
        watcher = asyncio.create_task(watch())
        await asyncio.gather(*(clients.run(kind, start[0] + seconds) for kind in kinds))
        watcher.cancel()
        shared = {
            "rows/forward": forwards.rows / forwards.count,
            "requests/forward": forwards.requests / forwards.count,
        }
        outcomes = dict(clients.outcomes)
        return tell(f"{len(kinds)} clients", start, clients.seconds, memory_mb=memory, **shared, outcomes=outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--task", default="countdown")
    parser.add_argument("--decoder", default="low-confidence")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--problems", type=int, default=16)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--streams", type=int, default=0, help="how many of the clients read streams")
    parser.add_argument("--leavers", type=int, default=0, help="how many of the clients give their requests up")
    parser.add_argument("--running", type=int, default=64, help="requests decoded at the same time")
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    kinds = ["streams"] * args.streams + ["leavers"] * args.leavers
    if len(kinds) >= args.clients:
        parser.error(f"{args.clients} clients leave none that waits for answers: give more than {len(kinds)}")
    kinds += ["answers"] * (args.clients - len(kinds))
    model, family = Placement(device=args.device).load(args.model), task.make(args.task)
    prompts = [family.messages(problem) for problem in itertools.islice(family.problems(), args.problems)]
    unmask.generate(model, prompts[0], decoder=args.decoder, length=args.length)  # a warm-up
    start, expected, each = clock(), [], []
    for seed, prompt in enumerate(prompts):
        expected.append(unmask.generate(model, prompt, decoder=args.decoder, length=args.length, seed=seed))
        each.append(expected[-1].cost.seconds)
    alone = tell("generate", start, each)
    single = asyncio.run(served(model, args, prompts, expected, ["answers"], alone["seconds"]))
    many = asyncio.run(served(model, args, prompts, expected, kinds, args.seconds))
    gains = {"gain": many["pace"] / alone["pace"], "gain in CPU time": alone["cpu"] / many["cpu"]}
    print(json.dumps({**gains, "p50 of one client": single["p50"] / alone["p50"]}))
    outcomes = Counter(single["outcomes"]) + Counter(many["outcomes"])
    wrong = {
        name
        for name in outcomes
        if name.startswith("lost") or (args.device == "cpu" and name in ("equal text", "unequal"))
    }
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
