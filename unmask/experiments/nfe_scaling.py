"""Does more compute help Order-Token Search more than it helps votes over independent samples?"""

from dataclasses import replace
from itertools import pairwise
from statistics import linear_regression

from unmask.core import decoder
from unmask.experiments.experiment import Claim, Experiment, Findings, judge, paired
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import paper
from unmask.report.gather import Result, result_of_votes
from unmask.report.plots import FORWARD_PASSES, Plot, Point
from unmask.report.tables import MISSING, Table

BENCHMARK = "Countdown"
LENGTH = 512  # the paper does not say; its figure for one beam, 16.0, is that of Table 1 at this length
BEAMS = (1, 2, 3, 4, 5, 6)
PATHS = {  # by name, the label and the spec of the samples of a vote
    "ar": ("AR", "left-to-right(block=1, temperature={})"),
    "random": ("Random", "random(temperature={})"),
    "low-confidence": ("Low-confidence", "low-confidence(temperature={})"),
}
Sweeps = dict[str, dict[int, Result]]  # by method, then by beams or samples


def parts(setup: Setup) -> list[Part]:
    """Return a part of searches and a part of samples for each vote; a vote of n takes the first n samples."""
    length, temperature = setup.at(BENCHMARK, LENGTH), f"temperature={setup.temperature}"
    beams = [k for k in BEAMS if k <= setup.most_beams]
    searches = [Method(f"ots-{k}", f"OTS, {k} beams", f"ots(beams={k}, {temperature})") for k in beams]
    most = max(decoder.make(method.spec).max_forward_passes(length) for method in searches)
    parts = single_parts(setup, [BENCHMARK], LENGTH, lambda _: searches)
    sampled = []
    for name, (label, spec) in PATHS.items():
        path = Method(name, label, spec.format(setup.vote_temperature))
        samples = max(1, round(most / decoder.make(path.spec).max_forward_passes(length)))
        sampled += [replace(part, name=f"{part.name}-{name}", methods=(path,), samples=samples) for part in parts]
    return parts + sampled


def findings(results: Results) -> Findings:
    sweeps = _sweeps(results)
    published, body = _published(sweeps), []
    for label, swept in sweeps.items():
        for size, result in swept.items():
            cost = f"{result.cost['forward_passes']:.0f}"
            body.append((label, str(size), cost, result.accuracy, published.get((label, size), MISSING)))
    (length,) = results.groups[BENCHMARK].lengths
    title = f"{results.title(BENCHMARK)} · L={length} · accuracy, %"
    table = Table.of("accuracy", title, ("method", "beams or samples", "forward passes", "accuracy", "paper"), body)
    lines = tuple(
        (label, tuple(Point(result.cost["forward_passes"], result.accuracy) for result in swept.values()))
        for label, swept in sweeps.items()
    )
    title = f"{results.plot_title(BENCHMARK)}, L={length}"
    return Findings([table], _claims(sweeps), [Plot("nfe-scaling", title, FORWARD_PASSES, lines, zero=True)])


def _sweeps(results: Results) -> Sweeps:
    beams = {k: results.by_length(BENCHMARK, f"ots-{k}") for k in BEAMS}
    sweeps: Sweeps = {"OTS": {k: result for k, swept in beams.items() for result in swept.values()}}
    for name, (label, _) in PATHS.items():
        series = results.series(BENCHMARK, name)
        records = [record for drawn in series.records.values() for record in drawn] if series else []
        most = max((record.sample for record in records), default=-1) + 1
        votes = {n: [record for record in records if record.sample < n] for n in range(1, most + 1)}
        sweeps[f"{label} + vote"] = {n: result_of_votes(poll) for n, poll in votes.items()}
    return {label: swept for label, swept in sweeps.items() if swept}


def _claims(sweeps: Sweeps) -> list[Claim]:
    if "OTS" not in sweeps:
        return []
    beams = sweeps["OTS"]
    least, most = min(beams), max(beams)
    votes = {label: swept for label, swept in sweeps.items() if label != "OTS"}

    def gain(text: str, before: Result, name: str) -> Claim:
        return judge(text, f"K={most} minus {name}", paired(before.right, beams[most].right))

    return [
        _steady(beams),
        gain("OTS improves with beams (paper: 16.0 → 29.3)", beams[least], f"K={least}"),
        *(
            gain(f"At matched compute OTS is above {label}", swept[max(swept)], f"n={max(swept)}")
            for label, swept in votes.items()
        ),
        *(_diminishing(label, swept) for label, swept in votes.items()),
    ]


def _diminishing(label: str, votes: dict[int, Result]) -> Claim:
    """Judge the gain from 1 to half of the samples, minus the gain from there to all."""
    text = f"{label} has diminishing returns: the first half of its samples gains more than the second"
    most = max(votes)
    if most < 8:  # a vote of two is its first sample, so small halves show nothing
        return Claim(text, "not asked", f"{most} samples")
    three = {n: votes[n] for n in (1, most // 2, most)}
    first, half, last = (result.right for result in three.values())
    bend = {problem: 2 * half[problem] - first[problem] - last[problem] for problem in half}
    return judge(text, _accuracies("n", three), paired(dict.fromkeys(bend, 0.0), bend))


def _steady(beams: dict[int, Result]) -> Claim:
    """Judge by the slope over all K of each problem's results.

    The claim does not hold if a step is significantly down, and holds only if the larger half of the beams gains too.
    """
    text, shown = "OTS improves steadily over all K", _accuracies("K", beams)
    if len(beams) < 3:
        return Claim(text, "not asked", shown)
    slopes = _slopes(beams)
    trend = judge(text, "points per beam", paired(dict.fromkeys(slopes, 0.0), slopes))
    steps = [judge("", "", paired(one.right, two.right)) for one, two in pairwise(beams.values())]
    down = sum(step.outcome == "does not hold" for step in steps)
    half, most = sorted(beams)[len(beams) // 2 - 1], max(beams)
    late = judge("", f"K={most} minus K={half}", paired(beams[half].right, beams[most].right))
    outcome = "does not hold" if down else late.outcome if trend.outcome == "holds" else trend.outcome
    figures = [shown, trend.figures, late.figures, f"{down} of {len(steps)} steps significantly down"]
    return Claim(text, outcome, "; ".join(figures))


def _accuracies(name: str, swept: dict[int, Result]) -> str:
    return ", ".join(f"{name}={n}: {100 * (result.accuracy.value or 0.0):.1f}" for n, result in swept.items())


def _slopes(beams: dict[int, Result]) -> dict[str, float]:
    """Return the slope of each problem's share right over K, by least squares."""
    problems = set.intersection(*(set(result.right) for result in beams.values()))
    shares = {problem: [result.right[problem] for result in beams.values()] for problem in problems}
    return {problem: linear_regression(list(beams), right).slope for problem, right in shares.items()}


def _published(sweeps: Sweeps) -> dict[tuple[str, int], str]:
    """Return the figures that the paper states: the ends of its curves."""
    figures = paper("nfe-scaling")
    ends = {("OTS", k): figures[f"ots-{k}"] for k in (1, 6)}
    for name, (label, _) in PATHS.items():
        if (swept := sweeps.get(f"{label} + vote")) and f"{name}-vote" in figures:
            ends[f"{label} + vote", max(swept)] = figures[f"{name}-vote"]
    return {key: f"{value:.1f}" for key, value in ends.items()}


EXPERIMENT = Experiment("nfe-scaling", "Figure 4", __doc__, parts, findings)
