"""Decode fixed prompts with every decoder and print texts, scores and costs, to compare two versions of this package.

    PYTHONPATH=. python tools/compare_decoding.py > new.jsonl           # likewise in a checkout of an older version
    python tools/compare_decoding.py --compare old.jsonl new.jsonl

The file runs unchanged in older versions: where a name or a setting has changed, both spellings are tried.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

COUNTDOWN = ("Numbers: [87, 28, 35]\nTarget: 94", "Numbers: [3, 25, 7, 50]\nTarget: 82")
MODELS: dict[str, list[Any]] = {
    "tiny": [[{"role": "user", "content": text}] for text in COUNTDOWN],
    **{name: ["abc", "ba"] for name in ("toy-chain", "toy-joint", "toy-transformer")},
}
DECODERS = """
adaptive | adaptive(rule=factor, block=4) | adaptive(rule=entropy, budget=0.5) | adaptive(sure=0.7, temperature=0.6)
threshold | threshold(sure=0.6, block=4) | low-confidence | low-confidence(block=4, steps=4, temperature=0.8)
random(temperature=0.5) | left-to-right | margin(block=4) | entropy(temperature=0.3) | repair | repair(rounds=1)
dream | dream(alg=entropy, temperature=0.4, top-p=0.9) | dream(alg=origin, steps=4) | dream(alg-temp=0.5, top-k=3)
order-token-search(beams=2) | order-token-search(beams=3, block=4, samples=2) | order-token-search(sure=0.8)
order-token-search(interval=2, likelihood=all-blocks) | order-token-search(beams=2, likelihood=leave-out(group=2))
order-token-search(likelihood=path, temperature=1.0) | order-token-search(likelihood=future-masked)
order-search(beams=2) | order-search(score=path) | token-search(beams=2, block=4) | search | search(budget=20, block=4)
search(sure=1.0, width=2, likelihood=block) | vote(n=3) | vote(n=3, weighted=true) | vote(n=2, inner=order-token-search)
best-of(n=3) | best-of(n=2, inner=adaptive(temperature=0.7))
"""
OLDER = ("weighted=true", "choice=weighted")  # a setting, and its spelling in older versions
OPTIONS: list[dict[str, Any]] = [{"guidance": 1.5}, {"suppress": True}, {"early_end": True}, {"stop": "e"}]
OPTIONS += [{"cache": kind} for kind in ("prefix", "dual", "dual(refresh=2)")]
SCORERS = ("duel", "elbo(n=16)", "path", "block", "interleaved(combs=2)", "leave-out")
FEW = ("low-confidence", "order-token-search(beams=2)", "search")  # decoders that are run with all options


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a model, a decoder and options for each run."""
    decoders = [spec.strip() for line in DECODERS.strip().splitlines() for spec in line.split(" | ")]
    for model in MODELS:
        short = 6 * (model == "toy-joint")  # its table has few positions
        for spec, length, seed in product(decoders, (10 - short, 13 - short), (0, 3)):
            yield model, spec, {"length": length, "seed": seed}
        for spec, more in product(FEW, OPTIONS):
            if "cache" not in more or model in ("tiny", "toy-transformer"):
                yield model, spec, {"length": 12 - short, **more}


def either(thing: Any, *names: str) -> Any:
    """Return the first of these attributes that this version has."""
    return next(getattr(thing, name) for name in names if hasattr(thing, name))


def outcome(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Exception):
        return {"error": type(answer).__name__}
    cost = answer.cost
    return {
        "text": answer.text,
        "score": answer.score,
        "hypotheses": [[each.text, each.score] for each in either(answer, "hypotheses", "rows")],
        "chosen": answer.chosen,
        "finish_reason": answer.finish_reason,
        "forward_passes": either(cost, "forward_passes", "rows"),
        "computed": either(cost, "computed", "distinct"),
        "positions": cost.positions,
    }


def attempt(call: Callable[[str], Any], spellings: Iterable[str]) -> Any:
    """Return the result of the first spelling that this version knows, else the last error."""
    outcome: Any = None
    for spelling in dict.fromkeys(spellings):
        try:
            return call(spelling)
        except Exception as error:
            outcome = error
    return outcome


def run() -> None:
    import unmask

    loaded = {name: unmask.load(name, "cpu") for name in MODELS}

    def decode(function: Any, model: str, prompts: list[Any], spec: str, options: dict[str, Any]) -> None:
        call = partial(function, loaded[model], prompts, errors="return", **options)
        answers = attempt(lambda spelling: call(decoder=spelling), (spec, spec.replace(*OLDER)))
        for number, answer in enumerate([answers] * len(prompts) if isinstance(answers, Exception) else answers):
            show(f"{function.__name__} {model} {spec} {options} {number}", outcome(answer))

    for model, spec, options in cases():
        decode(unmask.generate, model, MODELS[model], spec, options)
    for model, spec in product(MODELS, FEW):
        decode(unmask.fill, model, ["ab<mask:3>c<mask:2>"], spec, {"length": 3})
    for model, scorer in product(MODELS, SCORERS):
        call: Any = partial(unmask.score, loaded[model], MODELS[model][0], ["ab", "cab"], length=6)
        scores = attempt(lambda keyword, call=call, scorer=scorer: call(**{keyword: scorer}), ("scorer", "way"))
        facts = outcome(scores) if isinstance(scores, Exception) else {"scores": [[s.logp, s.error] for s in scores]}
        show(f"score {model} {scorer}", facts)


def show(case: str, facts: dict[str, Any]) -> None:
    print(json.dumps({"case": case, **facts}, ensure_ascii=False), flush=True)


def compare(before: Path, after: Path) -> int:
    """Print every difference and return the number of cases that differ."""
    texts = [path.read_text(encoding="utf-8").splitlines() for path in (before, after)]
    old, new = ({line["case"]: line for line in map(json.loads, lines)} for lines in texts)
    differ = [case for case in dict.fromkeys([*old, *new]) if old.get(case) != new.get(case)]
    for case in differ:
        one, two = old.get(case, {}), new.get(case, {})
        keys = [key for key in dict.fromkeys([*one, *two]) if one.get(key) != two.get(key)]
        print(case, *(f"  {key}: {one.get(key)!r} -> {two.get(key)!r}" for key in keys), sep="\n")
    failed = sum("error" in line for line in new.values())
    print(f"{len(differ)} of {len(new)} cases differ; {failed} end with an error")
    return len(differ)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="print what differs")
    given = parser.parse_args()
    sys.exit(bool(compare(*given.compare)) if given.compare else run())
