"""The results of a benchmark as plain values: medians, ratios, savings and growth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from unmask.bench.cases import Case
from unmask.bench.contenders import CONTENDERS
from unmask.models.transformer import Shape

# What each contender lacks that the one before it has; the first lacks nothing.
SAVINGS = {
    "ots": "",
    "ots-alone": "all problems in one batch",
    "ots-unmerged": "identical rows computed once",
    "ots-whole-head": "logits only where needed",
    "plain-ots": "the rest: draws only where needed, minus the cost of padding rows to multiples of 16",
}
RATIOS = (
    ("plain-path", "path"),
    ("plain-ots", "ots"),
    ("plain-ots", "ots-compiled"),
    ("plain-path", "path-cached"),
    ("plain-ots", "ots-cached"),
    ("plain-path", "path-exact"),
    ("plain-ots", "ots-exact"),
    *((name, "plain-path") for name in CONTENDERS if name.startswith(("ots-exact", "ots-cached"))),
)


def analyze(cases: Sequence[Case], shape: Shape, peak: float) -> dict[str, Any]:
    measured = [case for case in cases if case.runs]
    by_name = {case.name: case for case in measured}
    return {
        "trials": [_trial(case, shape, peak) for case in cases if case.runs or case.error],
        "same_tokens": _same_tokens(by_name),
        "ratios": _ratios(by_name),
        "savings": _savings(by_name),
        "growth": _growth(measured),
    }


def _trial(case: Case, shape: Shape, peak: float) -> dict[str, Any]:
    contender, sizes = CONTENDERS[case.contender], case.sizes
    trial = {
        "name": case.name,
        "contender": case.contender,
        "about": contender.about,
        "kind": contender.kind,
        "sizes": vars(sizes) | {"steps": sizes.schedule.steps},
        "axis": case.axis,
        "error": case.error or None,
    }
    if not case.runs:
        return trial
    run, seconds = case.runs[-1], spread(case.seconds)
    flops = run.flops(shape)
    return trial | {
        "seconds": seconds | {"all": case.seconds},
        "wall": spread([run.wall for run in case.runs]),
        "seconds_a_problem": seconds["median"] / sizes.problems,
        "tokens_a_second": sizes.problems * sizes.length / seconds["median"],
        "calls": run.calls,
        "rows": run.rows,
        "positions": int(run.positions),
        "logits": run.logits,
        "flops": flops,
        "peak_share": flops / seconds["median"] / peak,
        "memory": max(run.memory for run in case.runs) or None,
        "split": _split(case),
    }


def _split(case: Case) -> dict[str, Any] | None:
    steps = case.runs[-1].steps
    if not steps:
        return None
    denoising, scoring = _values(case, "denoising"), _values(case, "scoring")
    shares = [b / (a + b) for a, b in zip(denoising, scoring, strict=True)]
    return {
        "denoising": spread(denoising),
        "scoring": spread(scoring),
        "scoring_share": statistics.median(shares),
        "steps": steps,
        "step_ms": 1e3 * statistics.median(denoising) / steps,
    }


def _same_tokens(by_name: dict[str, Case]) -> dict[str, Any]:
    """In how many problems the best row equals that of the plain loop."""
    counts = {}
    for name, case in by_name.items():
        plain = by_name.get("plain-path" if name.startswith("path") else "plain-ots")
        if plain is not None and case.axis is None and CONTENDERS[name].kind != "plain":
            pairs = list(zip(case.runs[-1].tokens, plain.runs[-1].tokens, strict=True))
            counts[name] = {"same": sum(tokens == expected for tokens, expected in pairs), "problems": len(pairs)}
    return counts


def _ratios(by_name: dict[str, Case]) -> dict[str, Any]:
    """Seconds per problem of the first contender over those of the second."""
    batches = [(case.contender, name) for name, case in by_name.items() if case.axis == "problems"]
    pairs = [(a, b) for a, b in (*RATIOS, *batches) if a in by_name and b in by_name]
    return {f"{a} / {b}": ratio(by_name[a].seconds_per_problem, by_name[b].seconds_per_problem) for a, b in pairs}


def _savings(by_name: dict[str, Case]) -> list[dict[str, Any]]:
    """The factors multiply to the ratio of the plain loop and ots."""
    if not all(name in by_name for name in SAVINGS):
        return []
    seconds = [by_name[name].seconds_per_problem for name in SAVINGS]
    factors = [ratio(without, with_saving) for with_saving, without in pairwise(seconds)]
    logs = [math.log(factor["median"]) for factor in factors]
    return [
        {"saving": saving, "factor": factor, "share": log / math.fsum(logs) if math.fsum(logs) else None}
        for saving, factor, log in zip(list(SAVINGS.values())[1:], factors, logs, strict=True)
    ]


def _growth(cases: Sequence[Case]) -> list[dict[str, Any]]:
    fits = []
    for axis, contender in sorted({(case.axis, case.contender) for case in cases if case.axis}):
        swept = [case for case in cases if case.contender == contender and case.axis in (axis, None)]
        for what in ("seconds", "denoising", "scoring"):
            points = sorted((getattr(case.sizes, axis), value) for case in swept for value in _values(case, what))
            fit = power([(x, y) for x, y in points if y > 0])
            if fit:
                fits.append({"axis": axis, "contender": contender, "what": what, **fit, "points": points})
    return fits


def _values(case: Case, what: str) -> list[float]:
    return case.seconds if what == "seconds" else [run.spans.get(what, 0.0) for run in case.runs]


def spread(values: Sequence[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "n": len(values)}


def ratio(above: Sequence[float], below: Sequence[float]) -> dict[str, Any]:
    """Divided round by round, so that changes in the machine's speed cancel out."""
    if len(above) == len(below):
        return spread([a / b for a, b in zip(above, below, strict=True)])
    return {
        "median": statistics.median(above) / statistics.median(below),
        "low": min(above) / max(below),
        "high": max(above) / min(below),
        "n": min(len(above), len(below)),
    }


def power(points: Sequence[tuple[int | float, float]]) -> dict[str, Any] | None:
    """The exponent b of y = a·x^b by least squares on logarithms, with its standard error. Needs two different x."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    if len(set(xs)) < 2:
        return None
    fit = statistics.linear_regression(xs, ys)
    free, error = len(xs) - 2, None
    if free > 0:
        residual = sum((y - fit.slope * x - fit.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
        middle = statistics.fmean(xs)
        error = math.sqrt(residual / free / sum((x - middle) ** 2 for x in xs))
    return {"exponent": fit.slope, "error": error, "n": len(xs)}
