"""Figures of a benchmark as plain values, from what its runs left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from unmask.models.transformer import Shape
from unmask.runs.bench.contenders import CONTENDERS, LADDER, Ran
from unmask.runs.bench.growth import power, ratio, spread
from unmask.runs.bench.plan import Trial

SAVINGS = (
    "problems together",
    "identical rows once",
    "head only where asked",
    "the rest: draws only where asked, less rows padded to multiples of 16",
)
# Seconds a problem of the first over those of the second.
RATIOS = (
    ("plain-path", "path"),
    ("plain-ots", "ots"),
    ("plain-ots", "ots-compiled"),
    ("plain-path", "path-cached"),
    ("plain-ots", "ots-cached"),
    ("ots-cached", "plain-path"),
    ("ots-cached-threshold", "plain-path"),
    ("ots-cached-compiled", "plain-path"),
    ("ots-cached-threshold-compiled", "plain-path"),
    ("ots-cached-refreshed", "plain-path"),
    ("ots-cached-refreshed-compiled", "plain-path"),
)


@dataclass
class Outcome:
    """A trial and its runs so far."""

    trial: Trial
    prompts: list[list[int]]
    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(
        default_factory=list
    )  # differs on a CPU: with threads, and with other work on the machine
    spans: list[dict[str, float]] = field(default_factory=list)
    memory: int = 0  # most bytes beyond the weights and what others hold
    ran: Ran | None = None  # the last
    error: str = ""

    def add(self, ran: Ran, seconds: float, wall: float, memory: int) -> None:
        self.ran = ran
        self.seconds.append(seconds)
        self.wall.append(wall)
        self.spans.append(ran.spans or {})
        self.memory = max(self.memory, memory)

    @property
    def each(self) -> list[float]:
        """Seconds a problem."""
        return [seconds / self.trial.sizes.problems for seconds in self.seconds]


def results(outcomes: Sequence[Outcome], shape: Shape, peak: float) -> dict[str, Any]:
    done = [outcome for outcome in outcomes if outcome.seconds]
    compared = {outcome.trial.name: outcome for outcome in done}
    return {
        "trials": [_trial(outcome, shape, peak) for outcome in outcomes if outcome.seconds or outcome.error],
        "same_tokens": _same(compared),
        "ratios": _ratios(compared),
        "savings": _savings(compared),
        "growth": _growth(done),
    }


def _trial(outcome: Outcome, shape: Shape, peak: float) -> dict[str, Any]:
    trial, contender = outcome.trial, CONTENDERS[outcome.trial.contender]
    said = {
        "name": trial.name,
        "contender": trial.contender,
        "about": contender.about,
        "kind": contender.kind,
        "sizes": vars(trial.sizes) | {"steps": trial.sizes.schedule.steps},
        "axis": trial.axis,
        "error": outcome.error or None,
    }
    if not outcome.seconds or outcome.ran is None:
        return said
    ran, whole = outcome.ran, spread(outcome.seconds)
    flops = ran.work.flops(shape)
    return said | {
        "seconds": whole | {"all": outcome.seconds},
        "wall": spread(outcome.wall),
        "seconds_a_problem": whole["median"] / trial.sizes.problems,
        "tokens_a_second": trial.sizes.problems * trial.sizes.length / whole["median"],
        "calls": ran.work.calls,
        "rows": ran.work.rows,
        "positions": int(ran.work.positions),
        "logits": ran.work.asked,
        "flops": flops,
        "peak_share": flops / whole["median"] / peak,
        "memory": outcome.memory or None,
        "split": _split(outcome),
    }


def _split(outcome: Outcome) -> dict[str, Any] | None:
    """Denoising and scoring: medians of their seconds, of the share of scoring, and of one step's milliseconds."""
    if outcome.ran is None or not outcome.ran.spans:
        return None
    denoising = [spans["denoising"] for spans in outcome.spans]
    scoring = [spans.get("scoring", 0.0) for spans in outcome.spans]
    return {
        "denoising": spread(denoising),
        "scoring": spread(scoring),
        "scoring_share": spread([b / (a + b) for a, b in zip(denoising, scoring, strict=True)])["median"],
        "steps": outcome.ran.steps,
        "step_ms": 1e3 * spread(denoising)["median"] / outcome.ran.steps,
    }


def _same(compared: dict[str, Outcome]) -> dict[str, Any]:
    """Problems whose best row is the plain loop's, token for token."""
    found = {}
    for name, outcome in compared.items():
        contender = outcome.trial.contender
        other = compared.get("plain-path" if contender.startswith("path") else "plain-ots")
        if CONTENDERS[contender].kind == "plain" or outcome.trial.axis or other is None:
            continue
        if outcome.ran and other.ran:
            pairs = zip(outcome.ran.tokens, other.ran.tokens, strict=True)
            found[name] = {"same": sum(one == two for one, two in pairs), "problems": len(other.ran.tokens)}
    return found


def _ratios(compared: dict[str, Outcome]) -> dict[str, Any]:
    batches = [
        (outcome.trial.contender, name) for name, outcome in compared.items() if outcome.trial.axis == "problems"
    ]
    pairs = [(a, b) for a, b in (*RATIOS, *batches) if a in compared and b in compared]
    return {f"{a} / {b}": ratio(compared[a].each, compared[b].each) for a, b in pairs}


def _savings(compared: dict[str, Outcome]) -> list[dict[str, Any]]:
    """A ladder from ours down to the plain loop, a saving less on each rung; the factors multiply to the whole."""
    if not all(rung in compared for rung in LADDER):
        return []
    rungs = [compared[rung].each for rung in LADDER]
    factors = [ratio(below, above) for above, below in pairwise(rungs)]
    total = math.fsum(math.log(factor["median"]) for factor in factors)
    return [
        {"saving": saving, "factor": factor, "share": math.log(factor["median"]) / total if total else None}
        for saving, factor in zip(SAVINGS, factors, strict=True)
    ]


def _growth(done: Sequence[Outcome]) -> list[dict[str, Any]]:
    found = []
    swept = {(o.trial.axis, o.trial.contender) for o in done if o.trial.axis}
    for axis, contender in sorted(swept, key=str):
        mine = [o for o in done if o.trial.contender == contender and o.trial.axis in (axis, None)]
        for what in ("seconds", "denoising", "scoring"):
            points = sorted((getattr(o.trial.sizes, axis), value) for o in mine for value in _values(o, what))
            fit = power([(x, y) for x, y in points if y > 0])
            if fit:
                found.append({"axis": axis, "contender": contender, "what": what, **fit, "points": points})
    return found


def _values(outcome: Outcome, what: str) -> list[float]:
    return outcome.seconds if what == "seconds" else [spans.get(what, 0.0) for spans in outcome.spans]
