"""How much does the size of a block matter?"""

from __future__ import annotations

from unmask.experiments.cells import Method, Part
from unmask.experiments.experiment import Experiment, Findings, Verdict
from unmask.experiments.found import Found, mean_of
from unmask.experiments.methods import alone, asked
from unmask.experiments.paper import paper
from unmask.experiments.setting import Setting
from unmask.experiments.tables import rows_of
from unmask.experiments.verdicts import all_of, figure, outcome
from unmask.report.plots import Plot, Point
from unmask.report.results import Result
from unmask.report.statistics import Estimate, compare, joint

BENCHMARK, SOURCE = "MATH500", "Figure S1"
LENGTH = 128  # of the paper


def parts(setting: Setting) -> list[Part]:
    """Powers of two, and the whole answer; block 1 writes one token a step, the others two."""
    if not setting.chosen(BENCHMARK):
        return []
    length = setting.at(BENCHMARK, LENGTH)
    search = f"beams={setting.beams}, temperature={setting.temperature}"
    methods = [Method(f"block-{size}", str(size), f"ots({search}, block={size})") for size in sizes(length)]
    return [alone(setting, BENCHMARK, asked(setting, methods), length)]


def sizes(length: int) -> list[int]:
    return [*(2**power for power in range(length.bit_length()) if 2**power < length), length]


def findings(found: Found) -> Findings:
    results = _results(found)
    said = paper("block-size")
    body: list[list[str | Estimate | None]] = [
        [str(size), one.accuracy, f"{one.cost['rows']:.0f}", str(len(one.right))] for size, one in results.items()
    ]
    length = found.lengths(BENCHMARK)[0]
    title = f"{BENCHMARK} · {found.setting.tasks[BENCHMARK]} · L={length} · accuracy, %"
    table = rows_of(title, ["block", "accuracy", "rows", "n"], body, [1])
    points = tuple(Point(float(size), one.accuracy) for size, one in results.items())
    label = f"{found.setting.model} · {found.setting.tasks[BENCHMARK]}, L={length}"
    plot = Plot("block-size", label, "block", (("Order-Token Search", points),), zero=True)
    theirs = f"The paper, L=128: {said['lowest']} to {said['highest']}, {said['plateau']} ± {said['within']} for 2–64."
    return Findings([table], _verdicts(results, said["within"]), [plot], text=theirs)


def _results(found: Found) -> dict[int, Result]:
    (length,) = found.lengths(BENCHMARK)
    made = {size: found.result(BENCHMARK, f"block-{size}", length) for size in sizes(length)}
    return {size: one for size, one in made.items() if one is not None}


def _verdicts(results: dict[int, Result], within: float) -> list[Verdict]:
    middle = [size for size in results if 1 < size < max(results)]
    if len(middle) < 2:
        return []
    plateau = mean_of([results[size].right for size in middle])
    ends = []
    for size in (1, max(results)):
        pair = compare(results[size].right, plateau) if size in results else None
        result = joint([pair] if pair else [])
        said = f"the blocks between less block {size}: {figure(result)}" if result else f"no records of block {size}"
        ends.append(Verdict("", SOURCE, outcome(result), said))
    return [
        _flat(results, middle, within),
        all_of("A block of 1 and one block for the whole answer are below the blocks between", SOURCE, ends),
    ]


def _flat(results: dict[int, Result], middle: list[int], within: float) -> Verdict:
    """Two blocks that surely differ by more than the paper's band would speak against it."""
    heights = {size: 100 * (results[size].accuracy.value or 0.0) for size in middle}
    low, high = min(heights, key=heights.__getitem__), max(heights, key=heights.__getitem__)
    pair = compare(results[low].right, results[high].right)
    result = joint([pair] if pair else [])
    flat = heights[high] - heights[low] <= 2 * within and result is not None and result.error is not None
    said = f"from {heights[low]:.1f} (block {low}) to {heights[high]:.1f} (block {high})"
    said += f"; difference {figure(result)}" if result else ""
    sure = outcome(result) == "holds"
    claim = f"Blocks between 2 and half the answer stay within ± {within} points"
    return Verdict(claim, SOURCE, "holds" if flat else "does not hold" if sure else "not decided", said)


EXPERIMENT = Experiment("block-size", SOURCE, __doc__ or "", parts, findings)
