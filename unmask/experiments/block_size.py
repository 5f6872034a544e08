"""How much does the block size matter?"""

from __future__ import annotations

from dataclasses import replace

from unmask.experiments.experiment import ALPHA, Claim, Experiment, Findings, all_hold, chance, judge, points
from unmask.experiments.methods import Method, Part, selected, single_parts
from unmask.experiments.paper import paper
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.report.gather import Result, mean_by_problem
from unmask.report.plots import Plot, Point
from unmask.report.statistics import compare, exceeds, mean_difference
from unmask.report.tables import Table

BENCHMARK = "MATH500"
LENGTH = 128  # of the paper


def parts(setup: Setup) -> list[Part]:
    """Powers of two, and the whole answer; block 1 writes one token per step, the others two."""
    return single_parts(setup, [BENCHMARK], LENGTH, lambda length: selected(setup, _methods(setup, length)))


def _methods(setup: Setup, length: int) -> list[Method]:
    sizes = [*(2**power for power in range(length.bit_length()) if 2**power < length), length]
    search = f"beams={setup.beams}, temperature={setup.temperature}"
    return [Method(f"block-{size}", str(size), f"ots({search}, block={size})") for size in sizes]


def findings(evidence: Evidence) -> Findings:
    (length,) = evidence.groups[BENCHMARK].lengths
    results = {int(series.label): series.results[length] for series in evidence.groups[BENCHMARK].series}
    body = [
        (str(size), result.accuracy, f"{result.cost['forward_passes']:.0f}", str(len(result.right)))
        for size, result in results.items()
    ]
    title = f"{evidence.title(BENCHMARK)} · L={length} · accuracy, %"
    table = Table.of("accuracy", title, ("block", "accuracy", "forward passes", "n"), body)
    points = tuple(Point(float(size), result.accuracy) for size, result in results.items())
    title = f"{evidence.setup.model} · {evidence.setup.tasks[BENCHMARK]}, L={length}"
    plot = Plot("block-size", title, "block", (("Order-Token Search", points),), zero=True)
    figures = paper("block-size")
    ends, plateau = f"{figures['lowest']} to {figures['highest']}", f"{figures['plateau']} ± {figures['within']}"
    text = f"The paper, L=128: {ends}, {plateau} for 2–64."
    return Findings([table], _claims(results, figures["within"]), [plot], text=text)


def _claims(results: dict[int, Result], within: float) -> list[Claim]:
    middle = {size: result for size, result in results.items() if 1 < size < max(results)}
    if len(middle) < 2:
        return []
    plateau = mean_by_problem([result.right for result in middle.values()])
    ends = [
        judge("", f"the blocks between minus block {size}", mean_difference([compare(results[size].right, plateau)]))
        for size in (1, max(results))
        if size in results
    ]
    text = "A block of 1 and one block for the whole answer are below the blocks between"
    return [_flat(middle, within), all_hold(text, ends)]


def _flat(middle: dict[int, Result], within: float) -> Claim:
    """An equivalence: the largest difference is tested against the width of the paper's band, from both sides."""
    heights = {size: 100 * (result.accuracy.value or 0.0) for size, result in middle.items()}
    low, high = min(heights, key=heights.__getitem__), max(heights, key=heights.__getitem__)
    difference = mean_difference([compare(middle[low].right, middle[high].right)])
    text = f"Blocks between 2 and half the answer stay within ± {within} points"
    figures = f"from {heights[low]:.1f} (block {low}) to {heights[high]:.1f} (block {high})"
    if difference is None:
        return Claim(text, "not decided", figures)
    pairs = len(middle) * (len(middle) - 1) / 2  # the steepest of all pairs was chosen
    band = 2 * within / 100
    steep, flat = pairs * exceeds(difference, band), exceeds(replace(difference, value=-difference.value), -band)
    outcome = "holds" if flat <= ALPHA else "does not hold" if steep <= ALPHA else "not decided"
    p = chance(min(1.0, steep, flat))
    figures += f"; difference {points(difference)}, tested against {2 * within:g} points ({p}, one-sided, of all pairs)"
    return Claim(text, outcome, figures)


EXPERIMENT = Experiment("block-size", "Figure S1", __doc__, parts, findings)
