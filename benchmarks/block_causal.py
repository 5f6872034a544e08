"""What does an exact search cost on block-causal models, beside the plain single path of the same shape?

    PYTHONPATH=. python benchmarks/block_causal.py --out block_causal.json     # on a GPU
    PYTHONPATH=. python benchmarks/block_causal.py --size tiny --device cpu --length 64 --repeat 1     # a rehearsal

With random weights of Qwen3-8B's shape (`dream-reasoner`) and of LLaDA2-mini's (`llada2`): the published loop, and a
path and Order-Token Search with the exact cache, in turn. Draws at temperature 1 keep the beams apart.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import Any

from unmask.bench.cases import Plan, Sizes

from unmask.bench.run import BenchmarkRun
from unmask.bench.subject import Subject
from unmask.models.devices import format_bytes

SHAPES = ("dream-reasoner", "llada2")
CONTENDERS = ("plain-path", "path-exact", "ots-exact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="full")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=70.0, help="start no run of a shape after this many seconds")
    parser.add_argument("--compiled", action="store_true", help="also with compiled layers, which takes a minute more")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began, results = time.monotonic(), {}
    for family in SHAPES:
        results[family] = measure(f"{family}-{given.size}", given, began)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1))
    for family, result in results.items():
        show(family, result)


def measure(shape: str, given: argparse.Namespace, began: float) -> dict[str, Any]:
    contenders = (*CONTENDERS, "ots-exact-compiled") if given.compiled else CONTENDERS
    sizes = Sizes(prompt=160, length=given.length, temperature=1.0)
    subject = Subject.of_shape(shape, given.device, None)

    def line(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {shape}: {text}", flush=True)

    result = BenchmarkRun(Plan(sizes, contenders, repeat=given.repeat, limit=given.limit), subject, line).run()
    del subject
    gc.collect()
    return result


def show(family: str, result: dict[str, Any]) -> None:
    machine = result["machine"]
    print(f"\n{family} ({result['parameters']:,} parameters, {format_bytes(machine['memory'])}) on {machine['device']}")
    for trial in result["trials"]:
        if trial["error"]:
            print(f"  {trial['name']:<20} failed: {trial['error']}")
            continue
        words = f"{trial['seconds_a_problem']:.3f} s, {trial['tokens_a_second']:.1f} tokens/s, {trial['forward_passes']} rows"
        memory = format_bytes(trial["memory"]) if trial["memory"] else "–"
        print(f"  {trial['name']:<20} {words}, {trial['positions']:,} positions, {memory} beside the weights")
    for name, ratio in result["ratios"].items():
        print(f"  {name}: {ratio['median']:.2f}")


if __name__ == "__main__":
    main()
