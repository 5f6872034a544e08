"""Compare decoders on the five generated tasks: accuracy and cost per problem, as JSON lines.

python benchmarks/search.py "adaptive(sure=0.98)" "ots(likelihood=interleaved(combs=2))" --limit 500 --device cuda
"""

import argparse
import json
import math
import time
from itertools import islice

import torch

import unmask.decoders  # noqa: F401  registers
from unmask.core import Decoder, decoder
from unmask.models import Model
from unmask.models.load import load
from unmask.runs.generation import Generation, Output
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.tasks import Problem, Task, task

FAMILIES = "countdown(level=4);sudoku(level=12);mini-gsm(level=5);mini-math(level=1);mini-code(level=2)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("decoders", nargs="+", help="specs such as 'adaptive(sure=0.98)'")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--families", default=FAMILIES, help="task specs, separated by semicolons")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--task-seed", type=int, default=0, help="which problems of the split")
    parser.add_argument("--limit", type=int, default=500, help="problems per family")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="highest", help="of float32 products: highest, or high for TF32")
    parser.add_argument("--batch", type=int, default=500)
    args = parser.parse_args()
    torch.set_float32_matmul_precision(args.precision)
    decoders = [decoder.make(spec).resolved(args.length) for spec in args.decoders]
    model = load(args.model, args.device, torch.float32)
    for name in args.families.split(";"):
        family = task.make(name, split=args.split, seed=args.task_seed)
        problems = list(islice(family.problems(), args.limit))
        for chosen in decoders:
            line = {"task": task.spec(family), "decoder": decoder.spec(chosen), "length": args.length}
            line |= {"seed": args.seed, "device": args.device, "precision": args.precision, "batch": args.batch}
            print(json.dumps(line | measure(model, family, problems, chosen, args)), flush=True)


def measure(
    model: Model, family: Task, problems: list[Problem], chosen: Decoder, args: argparse.Namespace
) -> dict[str, float]:
    generation = Generation(model, Decoding(chosen, args.length, args.seed), key=family.key)
    began = time.perf_counter()
    outputs: list[Output] = []
    for start in range(0, len(problems), args.batch):
        part = problems[start : start + args.batch]
        outputs += generation.outputs([read_prompt(model, family.messages(problem)) for problem in part])
    seconds = time.perf_counter() - began
    right, any_right = [], []
    for problem, output in zip(problems, outputs, strict=True):
        grades = {text: family.grade(problem, text).right for text in {each.text for each in output.hypotheses}}
        right.append(grades[output.text])
        any_right.append(any(grades.values()))
    accuracy = sum(right) / len(right)
    costs = {
        name: round(sum(getattr(output.cost, name) for output in outputs) / len(outputs), 2)
        for name in ("forward_passes", "computed", "positions")
    }
    return {
        "problems": len(problems),
        "accuracy": round(100 * accuracy, 2),
        "error": round(100 * math.sqrt(accuracy * (1 - accuracy) / len(right)), 2),
        "any_right": round(100 * sum(any_right) / len(right), 2),
        **costs,
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    main()
