"""Does more compute help Order-Token Search more than it helps votes over independent samples?"""

from __future__ import annotations

from dataclasses import replace

from unmask.core import decoder
from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found
from unmask.experiments.methods import alone, asked
from unmask.experiments.paper import paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import rows_of
from unmask.experiments.verdicts import figure, outcome
from unmask.report.plots import Plot, Point
from unmask.report.results import Result, result_of_votes
from unmask.report.statistics import Estimate, compare, joint

BENCHMARK, SOURCE = "Countdown", "Figure 4"
LENGTH = 128  # the paper does not say
BEAMS = (1, 2, 3, 4, 5, 6)
SAMPLED = {"ar": "AR + vote", "random": "Random + vote"}


def parts(setting: Setting) -> list[Part]:
    """Votes are counted over stored samples: the vote of n is that over the first n of them."""
    if not setting.chosen(BENCHMARK):
        return []
    length = setting.at(BENCHMARK, LENGTH)
    warm = f"temperature={setting.temperature}"
    beams = [Method(f"ots-{k}", f"OTS, {k} beams", f"ots(beams={k}, {warm})") for k in BEAMS if k <= setting.most_beams]
    warm = f"temperature={setting.vote_temperature}"
    paths = [
        Method("ar", "AR", f"left-to-right(block=1, {warm})"),
        Method("random", "Random", f"random({warm})"),
    ]
    most = max(decoder.make(method.spec).rows(length) for method in beams)
    made = [alone(setting, BENCHMARK, asked(setting, beams), length)]
    for path in paths:
        samples = max(1, round(most / decoder.make(path.spec).rows(length)))
        part = alone(setting, BENCHMARK, [path], length, samples)
        made.append(replace(part, name=f"{BENCHMARK.lower()}-{path.name}"))
    return made


def findings(found: Found) -> Findings:
    lines = _lines(found)
    theirs = _published(lines)
    body: list[list[str | Estimate | None]] = [
        [label, str(bought), f"{one.cost['rows']:.0f}", one.accuracy, theirs.get((label, bought), "–")]
        for label, points in lines.items()
        for bought, one in points.items()
    ]
    title = f"{BENCHMARK} · {found.setting.tasks[BENCHMARK]} · L={found.lengths(BENCHMARK)[0]} · accuracy, %"
    table = rows_of(title, ["method", "beams or samples", "rows", "accuracy", "paper"], body, [3])
    plot = Plot(
        "nfe-scaling",
        f"{found.setting.model} · {found.setting.tasks[BENCHMARK]}, L={found.lengths(BENCHMARK)[0]}",
        "rows (NFE ÷ L)",
        tuple(
            (label, tuple(Point(one.cost["rows"], one.accuracy) for one in points.values()))
            for label, points in lines.items()
        ),
        zero=True,
    )
    return Findings([table], _verdicts(lines), [plot])


def _lines(found: Found) -> dict[str, dict[int, Result]]:
    """By method, then by beams or samples."""
    (length,) = found.lengths(BENCHMARK)
    beams = {k: found.result(BENCHMARK, f"ots-{k}", length) for k in BEAMS}
    lines = {"OTS": {k: one for k, one in beams.items() if one is not None}}
    for name, label in SAMPLED.items():
        records = found.records(BENCHMARK, name, length)
        most = max((record.sample for record in records), default=-1) + 1
        votes = {n: [record for record in records if record.sample < n] for n in range(1, most + 1)}
        lines[label] = {n: result_of_votes(some) for n, some in votes.items()}
    return {label: points for label, points in lines.items() if points}


def _verdicts(lines: dict[str, dict[int, Result]]) -> list[Verdict]:
    beams = lines.get("OTS", {})
    if not beams:
        return []
    least, most = min(beams), max(beams)
    made = [
        _than("OTS improves with beams (paper: 16.0 → 29.3)", beams[most], beams[least], f"K={most} less K={least}")
    ]
    for label in SAMPLED.values():
        if label in lines:
            n = max(lines[label])
            claim = f"At matched compute OTS is above {label}"
            made.append(_than(claim, beams[most], lines[label][n], f"K={most} less n={n}"))
    return made


def _than(claim: str, after: Result, before: Result, names: str) -> Verdict:
    pair = compare(before.right, after.right)
    result = joint([pair] if pair else [])
    return Verdict(claim, SOURCE, outcome(result), f"{names}: {figure(result)}" if result else "no problem in both")


def _published(lines: dict[str, dict[int, Result]]) -> dict[tuple[str, int], str]:
    """The paper tells the ends of its curves."""
    said = paper("nfe-scaling")
    told = {("OTS", 1): said["ots-1"], ("OTS", 6): said["ots-6"]}
    told |= {(label, max(lines[label])): said[f"{name}-vote"] for name, label in SAMPLED.items() if label in lines}
    return {key: f"{value:.1f}" for key, value in told.items()}


EXPERIMENT = Experiment("nfe-scaling", SOURCE, __doc__ or "", parts, findings)
