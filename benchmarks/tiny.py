"""Decoders side by side on one model: accuracy by family, and who beats whom on the same problems.

    python benchmarks/tiny.py --model tiny --split test --problems 1000 --out results.jsonl

One JSON line a task and decoder; `right` holds a character a problem, in the task's order.
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
from unmask.training.evaluate import tally

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
    asked = parser.parse_args()
    torch.set_float32_matmul_precision(asked.precision)
    model = load(asked.model, asked.device, torch.float32)
    lines = []
    for spec in asked.tasks.split():
        name, length = spec.split("@")
        made = task.make(name) if name.endswith("d1") else task.make(name, split=asked.split)
        problems = list(islice(made.problems(), asked.problems))
        for text in asked.decoders.split(";"):
            chosen = decoder.make(text).resolved(int(length))
            began = time.perf_counter()
            counted = tally(model, made, problems, chosen, int(length), asked.seed, asked.batch)
            line = {
                "task": task.spec(made),
                "decoder": decoder.spec(chosen),
                "length": int(length),
                "seed": asked.seed,
                "problems": len(problems),
                "accuracy": round(100 * counted.accuracy, 2),
                "rows": counted.rows,
                "seconds": round(time.perf_counter() - began, 1),
                "device": asked.device,
                "precision": asked.precision,
                "right": "".join("01"[right] for right in counted.right),
            }
            print(name, length, text, line["accuracy"], line["rows"], line["seconds"], flush=True)
            lines.append(json.dumps(line) + "\n")
            if asked.out:
                asked.out.write_text("".join(lines))


main()
