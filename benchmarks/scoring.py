"""Compare scorers: how often a right answer scores above a wrong one, and what scoring a text costs.

python benchmarks/scoring.py duel path "elbo(n=128)" "interleaved(combs=2)" --tasks "countdown(level=4)" --limit 100

Each problem is answered several times at a temperature above 0. Its distinct texts are scored, and the figure of a
scorer is the share of pairs of a right and a wrong text that it ranks correctly: the mean over problems that have both.
"""

import argparse
import json
from itertools import islice

import torch

import unmask
from unmask.models import Model
from unmask.report.quality import rank
from unmask.report.statistics import estimate
from unmask.tasks import Problem, Task, task

SCORERS = ["duel", "duel(order=left-to-right)", "path", "elbo(n=32)", "elbo(n=128)", "leave-out", "block"]
SCORERS += ["interleaved(combs=2)", "sum(first=interleaved(combs=2), second=interleaved(combs=3))", "random-masks(n=4)"]
TASKS = "countdown(level=4);sudoku(level=12);mini-gsm(level=5);mini-math(level=1);mini-code(level=2)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scorers", nargs="*", default=SCORERS)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--tasks", default=TASKS, help="task specs, separated by semicolons")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--limit", type=int, default=100, help="problems per task")
    parser.add_argument("--samples", type=int, default=8, help="texts per problem, before equal ones are merged")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    model = unmask.load(args.model, args.device, torch.float32)
    for name in args.tasks.split(";"):
        source = task.make(name, split=args.split)
        answers = sampled(model, source, list(islice(source.problems(), args.limit)), args)
        for scorer in args.scorers:
            line = {"task": task.spec(source), "seed": args.seed, "samples": args.samples, "length": args.length}
            print(json.dumps(line | measure(model, answers, scorer, args)), flush=True)


def sampled(
    model: Model, source: Task, problems: list[Problem], args: argparse.Namespace
) -> list[tuple[list[int], list[list[int]], list[bool]]]:
    """Return the ids of prompts, the ids of their distinct texts and the grades, for problems with both grades."""
    spec = f"vote(n={args.samples}, inner=low-confidence(temperature={args.temperature}))"
    prompts = [list(source.messages(problem)) for problem in problems]
    outputs = unmask.generate(
        model, prompts, decoder=spec, length=args.length, seed=args.seed, batch=args.batch, key=source.key
    )
    answers = []
    for problem, output in zip(problems, outputs, strict=True):
        texts = {row.ids: source.grade(problem, row.text).right for row in output.hypotheses}
        if len(set(texts.values())) == 2:
            start = len(output.hypotheses[0].ids) - args.length
            answers.append(
                (list(output.hypotheses[0].ids[:start]), [list(ids[start:]) for ids in texts], list(texts.values()))
            )
    return answers


def measure(
    model: Model, answers: list[tuple[list[int], list[list[int]], list[bool]]], scorer: str, args: argparse.Namespace
) -> dict[str, object]:
    prompts = [prompt for prompt, texts, _ in answers for _ in texts]
    texts = [text for _, some, _ in answers for text in some]
    scores = iter(unmask.score(model, prompts, texts, scorer=scorer, seed=args.seed, batch=args.batch))
    shares, best, rows = [], [], []
    for _, some, right in answers:
        scored = [next(scores) for _ in some]
        won, pairs = rank(right, [each.logp for each in scored])
        shares.append(won / pairs)
        best.append(right[max(range(len(scored)), key=lambda number: scored[number].logp)])
        rows += [each.forward_passes for each in scored]
    auc = estimate(shares)
    return {
        "scorer": scorer,
        "auc": round(auc.value or 0.0, 4),
        "error": round(auc.error or 0.0, 4),
        "best_right": round(100 * sum(best) / len(best), 1),  # percent of problems whose best text is right
        "problems": len(answers),
        "texts": len(texts),
        "forward_passes": round(sum(rows) / len(rows), 1),  # per text
    }


if __name__ == "__main__":
    main()
