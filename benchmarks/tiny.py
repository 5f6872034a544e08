"""Decoders side by side on one model: accuracy per task, on the same problems.

    python benchmarks/tiny.py --model tiny --split test --problems 1000 --out results.jsonl

Writes one JSON line per task and decoder; `right` has one character per problem, in the task's order.
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path

import torch

import unmask.decoders  # noqa: F401
from unmask.core import decoder
from unmask.models.load import load
from unmask.tasks import task
from unmask.training.make import tally

TASKS = "countdown@64 countdown(level=4)@64 sudoku@64 mini-gsm@64 mini-math@96 mini-code@96"
DECODERS = "low-confidence;ots"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--tasks", default=TASKS, help="specs, each with @length")
    parser.add_argument("--decoders", default=DECODERS, help="specs, separated by semicolons")
    parser.add_argument("--split", default="test")
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="highest", help="of float32 products: highest, or high for TF32")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    torch.set_float32_matmul_precision(args.precision)
    model = load(args.model, args.device, torch.float32)
    lines = []
    for spec in args.tasks.split():
        name, length = spec.split("@")
        family = task.make(name) if name.endswith("d1") else task.make(name, split=args.split)
        problems = list(islice(family.problems(), args.problems))
        for text in args.decoders.split(";"):
            chosen = decoder.make(text).resolved(int(length))
            began = time.perf_counter()
            counted = tally(model, family, problems, chosen, int(length), args.seed, args.batch)
            line = {
                "task": task.spec(family),
                "decoder": decoder.spec(chosen),
                "length": int(length),
                "seed": args.seed,
                "problems": len(problems),
                "accuracy": round(100 * counted.accuracy, 2),
                "forward_passes": counted.forward_passes,
                "seconds": round(time.perf_counter() - began, 1),
                "device": args.device,
                "precision": args.precision,
                "right": "".join("01"[right] for right in counted.right),
            }
            print(name, length, text, line["accuracy"], line["forward_passes"], line["seconds"], flush=True)
            lines.append(json.dumps(line) + "\n")
            if args.out:
                args.out.write_text("".join(lines))


if __name__ == "__main__":
    main()
