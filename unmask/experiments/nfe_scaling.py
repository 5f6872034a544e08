"""Does more compute help Order-Token Search more than it helps votes over independent samples?"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings, judge
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper import paper
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.report.gather import Result, result_of_votes
from unmask.report.plots import ROWS, Plot, Point
from unmask.report.statistics import compare, mean_difference
from unmask.report.tables import MISSING, Table

BENCHMARK = "Countdown"
LENGTH = 512  # the paper does not say; its figure for one beam, 16.0, is that of Table 1 at this length
BEAMS = (1, 2, 3, 4, 5, 6)
SAMPLED = {"ar": "AR + vote", "random": "Random + vote", "low-confidence": "Low-confidence + vote"}
Sweeps = dict[str, dict[int, Result]]  # by method, then by beams or samples


def parts(setup: Setup) -> list[Part]:
    """Votes are counted over stored samples: a vote of n takes the first n of them."""
    length, temperature = setup.at(BENCHMARK, LENGTH), f"temperature={setup.temperature}"
    beams = [k for k in BEAMS if k <= setup.most_beams]
    searches = [Method(f"ots-{k}", f"OTS, {k} beams", f"ots(beams={k}, {temperature})") for k in beams]
    temperature = f"temperature={setup.vote_temperature}"
    paths = [
        Method("ar", "AR", f"left-to-right(block=1, {temperature})"),
        Method("random", "Random", f"random({temperature})"),
        Method("low-confidence", "Low-confidence", f"low-confidence({temperature})"),
    ]
    most = max(decoder.make(method.spec).max_forward_passes(length) for method in searches)
    parts = single_parts(setup, [BENCHMARK], LENGTH, lambda _: selected(setup, searches))
    sampled = []
    for path in paths:
        samples = max(1, round(most / decoder.make(path.spec).max_forward_passes(length)))
        sampled += [replace(part, name=f"{part.name}-{path.name}", methods=(path,), samples=samples) for part in parts]
    return parts + sampled


def findings(evidence: Evidence) -> Findings:
    sweeps = _sweeps(evidence)
    published = _published(sweeps)
    body = [
        (
            label,
            str(size),
            f"{result.cost['forward_passes']:.0f}",
            result.accuracy,
            published.get((label, size), MISSING),
        )
        for label, results in sweeps.items()
        for size, result in results.items()
    ]
    (length,) = evidence.groups[BENCHMARK].lengths
    title = f"{evidence.title(BENCHMARK)} · L={length} · accuracy, %"
    table = Table.of("accuracy", title, ("method", "beams or samples", "forward passes", "accuracy", "paper"), body)
    lines = tuple(
        (label, tuple(Point(result.cost["forward_passes"], result.accuracy) for result in results.values()))
        for label, results in sweeps.items()
    )
    title = f"{evidence.setup.model} · {evidence.setup.tasks[BENCHMARK]}, L={length}"
    return Findings([table], _claims(sweeps), [Plot("nfe-scaling", title, ROWS, lines, zero=True)])


def _sweeps(evidence: Evidence) -> Sweeps:
    beams = {k: evidence.results(BENCHMARK, f"ots-{k}") for k in BEAMS}
    sweeps: Sweeps = {"OTS": {k: result for k, results in beams.items() for result in results.values()}}
    for name, label in SAMPLED.items():
        series = evidence.series(BENCHMARK, name)
        records = [record for drawn in series.records.values() for record in drawn] if series else []
        most = max((record.sample for record in records), default=-1) + 1
        votes = {n: [record for record in records if record.sample < n] for n in range(1, most + 1)}
        sweeps[label] = {n: result_of_votes(poll) for n, poll in votes.items()}
    return {label: results for label, results in sweeps.items() if results}


def _claims(sweeps: Sweeps) -> list[Claim]:
    beams = sweeps.get("OTS", {})
    if not beams:
        return []
    least, most = min(beams), max(beams)

    def gain(text: str, before: Result, name: str) -> Claim:
        difference = mean_difference([compare(before.right, beams[most].right)])
        return judge(text, f"K={most} minus {name}", difference)

    claims = [_steady(beams), gain("OTS improves with beams (paper: 16.0 → 29.3)", beams[least], f"K={least}")]
    for label in SAMPLED.values():
        if label in sweeps:
            n = max(sweeps[label])
            claims.append(gain(f"At matched compute OTS is above {label}", sweeps[label][n], f"n={n}"))
    return claims + [_diminishing(label, sweeps[label]) for label in SAMPLED.values() if label in sweeps]


def _diminishing(label: str, votes: dict[int, Result]) -> Claim:
    """The gain from 1 to half of the samples, minus the gain from there to all."""
    text = f"{label} has diminishing returns: the first half of its samples gains more than the second"
    most = max(votes)
    if most < 8:  # a vote of two is its first sample, so that small halves say nothing
        return Claim(text, "not asked", f"{most} samples")
    first, half, last = (votes[n].right for n in (1, most // 2, most))
    bend = {problem: 2 * half[problem] - first[problem] - last[problem] for problem in half}
    difference = mean_difference([compare(dict.fromkeys(bend, 0.0), bend)])
    shown = ", ".join(f"n={n}: {100 * (votes[n].accuracy.value or 0.0):.1f}" for n in (1, most // 2, most))
    return judge(text, shown, difference)


def _steady(beams: dict[int, Result]) -> Claim:
    """By the slope over all K of each problem's results. A significant step down breaks it, and the larger half of the
    beams has to gain something by itself.
    """
    text = "OTS improves steadily over all K"
    shown = ", ".join(f"K={k}: {100 * (result.accuracy.value or 0.0):.1f}" for k, result in beams.items())
    if len(beams) < 3:
        return Claim(text, "not asked", shown)
    middle = sum(beams) / len(beams)
    spread = sum((k - middle) ** 2 for k in beams)
    problems = set.intersection(*(set(result.right) for result in beams.values()))
    slopes = {
        problem: sum((k - middle) * result.right[problem] for k, result in beams.items()) / spread
        for problem in problems
    }
    trend = judge(text, "points per beam", mean_difference([compare(dict.fromkeys(slopes, 0.0), slopes)]))
    steps = [judge("", "", mean_difference([compare(one.right, two.right)])) for one, two in pairwise(beams.values())]
    down = sum(step.outcome == "does not hold" for step in steps)
    half, most = sorted(beams)[len(beams) // 2 - 1], max(beams)
    late = judge("", f"K={most} minus K={half}", mean_difference([compare(beams[half].right, beams[most].right)]))
    outcome = "does not hold" if down else late.outcome if trend.outcome == "holds" else trend.outcome
    figures = [shown, trend.figures, late.figures, f"{down} of {len(steps)} steps significantly down"]
    return Claim(text, outcome, "; ".join(figures))


def _published(sweeps: Sweeps) -> dict[tuple[str, int], str]:
    """The paper gives the ends of its curves."""
    figures = paper("nfe-scaling")
    ends = {("OTS", 1): figures["ots-1"], ("OTS", 6): figures["ots-6"]}
    ends |= {
        (label, max(sweeps[label])): figures[f"{name}-vote"]
        for name, label in SAMPLED.items()
        if label in sweeps and f"{name}-vote" in figures
    }
    return {key: f"{value:.1f}" for key, value in ends.items()}


EXPERIMENT = Experiment("nfe-scaling", "Figure 4", __doc__, parts, findings)
