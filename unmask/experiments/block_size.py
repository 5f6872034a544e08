"""How much does the block size matter?"""

from unmask.experiments.experiment import ALPHA, Claim, Experiment, Findings, all_hold, decide, judge, paired, sides
from unmask.experiments.results import Results
from unmask.experiments.setup import Method, Part, Setup, single_parts
from unmask.experiments.tables import chance, paper, points
from unmask.report.gather import Result, mean_by_problem
from unmask.report.plots import Plot, Point
from unmask.report.tables import Table

BENCHMARK = "MATH500"
LENGTH = 128  # of the paper


def parts(setup: Setup) -> list[Part]:
    """Return blocks of all powers of two and of the whole answer; block 1 writes one token per step, the others two."""
    return single_parts(setup, [BENCHMARK], LENGTH, lambda length: _methods(setup, length))


def _methods(setup: Setup, length: int) -> list[Method]:
    sizes = [*(2**power for power in range(length.bit_length()) if 2**power < length), length]
    search = f"beams={setup.beams}, temperature={setup.temperature}"
    return [Method(f"block-{size}", str(size), f"ots({search}, block={size})") for size in sizes]


def findings(results: Results) -> Findings:
    (length,) = results.groups[BENCHMARK].lengths
    by_size = {int(series.label): series.results[length] for series in results.groups[BENCHMARK].series}
    body = [
        (str(size), result.accuracy, f"{result.cost['forward_passes']:.0f}", str(len(result.right)))
        for size, result in by_size.items()
    ]
    title = f"{results.title(BENCHMARK)} · L={length} · accuracy, %"
    table = Table.of("accuracy", title, ("block", "accuracy", "forward passes", "n"), body)
    line = "Order-Token Search", tuple(Point(float(size), result.accuracy) for size, result in by_size.items())
    plot = Plot("block-size", f"{results.plot_title(BENCHMARK)}, L={length}", "block", (line,), zero=True)
    figures = paper("block-size")
    text = "The paper, L=128: {lowest} to {highest}, {plateau} ± {within} for 2–64.".format(**figures)
    return Findings([table], _claims(by_size, figures["within"]), [plot], text=text)


def _claims(by_size: dict[int, Result], within: float) -> list[Claim]:
    middle = {size: result for size, result in by_size.items() if 1 < size < max(by_size)}
    if len(middle) < 2:
        return []
    plateau = mean_by_problem([result.right for result in middle.values()])
    ends = [
        judge("", f"the blocks between minus block {size}", paired(by_size[size].right, plateau))
        for size in (1, max(by_size))
        if size in by_size
    ]
    text = "A block of 1 and one block for the whole answer are below the blocks between"
    return [_flat(middle, within), all_hold(text, ends)]


def _flat(middle: dict[int, Result], within: float) -> Claim:
    """Test the largest difference against the width of the paper's band, from both sides."""
    heights = {size: 100 * (result.accuracy.value or 0.0) for size, result in middle.items()}
    low, high = min(heights, key=heights.__getitem__), max(heights, key=heights.__getitem__)
    difference = paired(middle[low].right, middle[high].right)
    text = f"Blocks between 2 and half the answer stay within ± {within} points"
    figures = f"from {heights[low]:.1f} (block {low}) to {heights[high]:.1f} (block {high})"
    if difference is None:
        return Claim(text, "not decided", figures)
    pairs = len(middle) * (len(middle) - 1) / 2  # the steepest of all pairs was chosen
    steep, flat = sides(difference, 2 * within / 100)
    p = chance(min(1.0, pairs * steep, flat))
    figures += f"; difference {points(difference)}, tested against {2 * within:g} points ({p}, one-sided, of all pairs)"
    return Claim(text, decide(flat <= ALPHA, pairs * steep <= ALPHA), figures)


EXPERIMENT = Experiment("block-size", "Figure S1", __doc__, parts, findings)
