"""The results of a benchmark as plain values: medians, ratios, savings and growth. The results of a benchmark as tables and as a plot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from unmask.bench.cases import Case
from unmask.bench.contenders import CONTENDERS
from unmask.models.network.transformer import Shape
from unmask.report.plots import COLOURS, MARKS, render
from unmask.report.tables import Table

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
        "forward_passes": run.rows,
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


Results = dict[str, Any]  # what `unmask bench --out` writes
KIND_COLOURS = {"plain": "#999999", "exact": COLOURS[0], "approximate": COLOURS[1], "without": COLOURS[5]}
COLUMNS = "contender, kind, s/problem, tokens/s, rows, positions, ms/step, scoring, memory, of peak, n"


def tables(results: Results) -> list[Table]:
    every = [comparison(results), ratios(results), savings(results), growth(results)]
    return [table for table in every if table.rows]


def _table(title: str, head: str, rows: Iterable[tuple[str, ...]], *notes: str) -> Table:
    return Table.of("timing", title, head.split(", "), rows, notes)


def comparison(results: Results) -> Table:
    failed = [f"{trial['name']} failed: {trial['error']}" for trial in results["trials"] if trial["error"]]
    same = [
        f"{name}: the same tokens as the plain loop in {count['same']} of {count['problems']} problems"
        for name, count in results["same_tokens"].items()
    ]
    rows = [_row(trial) for trial in results["trials"] if trial.get("seconds")]
    return _table(title(results), COLUMNS, rows, *failed, *same)


def title(results: Results) -> str:
    sizes, machine = results["plan"]["sizes"], results["machine"]
    prompt = f"prompt {sizes['prompt']}" if sizes["prompt"] else "Countdown"
    parts = [results["model"], machine["device"], machine["dtype"], prompt, f"L={sizes['length']}"]
    return " · ".join([*parts, f"block {sizes['block']}", f"K={sizes['beams']}", f"τ={sizes['temperature']:g}"])


def _row(trial: dict[str, Any]) -> tuple[str, ...]:
    seconds, split, problems = trial["seconds"], trial["split"], trial["sizes"]["problems"]
    each = f"{trial['seconds_a_problem']:.3g}"
    limits = f" ({seconds['low'] / problems:.3g}–{seconds['high'] / problems:.3g})"
    return (
        trial["name"],
        trial["kind"],
        each + limits if seconds["n"] > 1 else each,
        f"{trial['tokens_a_second']:.1f}",
        f"{trial['forward_passes'] / problems:,.0f}",
        f"{trial['positions'] / problems:,.0f}",
        f"{split['step_ms']:.1f}" if split else "–",
        f"{100 * split['scoring_share']:.0f} %" if split and split["scoring_share"] else "–",
        f"{trial['memory'] / 2**30:.2f} GiB" if trial["memory"] else "–",
        f"{100 * trial['peak_share']:.0f} %",
        str(seconds["n"]),
    )


def ratios(results: Results) -> Table:
    rows = [
        (name, f"{ratio['median']:.2f}", f"{ratio['low']:.2f}–{ratio['high']:.2f}", str(ratio["n"]))
        for name, ratio in results["ratios"].items()
    ]
    return _table("Ratios of seconds per problem", "ratio, median, range, n", rows)


def savings(results: Results) -> Table:
    rows = [
        (name, f"{saving['factor']['median']:.2f}×", f"{100 * (saving['share'] or 0):.0f} %")
        for name, saving in zip(list(SAVINGS.values())[1:], results["savings"], strict=False)
    ]
    return _table(
        "What each exact saving contributes",
        "saving, factor, share",
        rows,
        "Savings are switched off one after another, in this order: the factors multiply to the whole, and shares are "
        "of logarithms. K draws from one forward do not count as a saving, since the plain loop has them too.",
    )


def growth(results: Results) -> Table:
    rows = [
        (f"{fit['contender']}, {fit['what']}", fit["axis"], _exponent(fit), str(fit["n"])) for fit in results["growth"]
    ]
    note = "The exponent b of time = a·size^b, by least squares on logarithms, ± standard error."
    return _table("Growth", "time, size, exponent, n", rows, note)


def _exponent(fit: dict[str, Any]) -> str:
    return f"{fit['exponent']:.2f}" + ("" if fit["error"] is None else f" ± {fit['error']:.2f}")


def draw(results: Results, kind: str) -> bytes:
    """Bars for the comparison, and a panel for each sweep."""
    axes = sorted({fit["axis"] for fit in results["growth"]})
    compared = [trial for trial in results["trials"] if trial.get("seconds") and not trial["axis"]]
    heights = [0.8 + 0.3 * len(compared), *([2.6] if axes else [])]

    def paint(figure: Any) -> None:
        rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        bars = figure.add_subplot(rows[0])
        _bars(bars, compared)
        bars.set_title(title(results), fontsize=8, loc="left")
        panels = rows[1].subgridspec(1, len(axes)) if axes else ()
        for panel, axis in zip(panels, axes, strict=True):
            fits = [fit for fit in results["growth"] if fit["axis"] == axis and fit["what"] == "seconds"]
            _lines(figure.add_subplot(panel), axis, fits)

    return render(paint, (7.2, sum(heights)), kind, layout="constrained")


def _bars(panel: Any, compared: list[dict[str, Any]]) -> None:
    places = range(len(compared))
    medians = [trial["seconds_a_problem"] for trial in compared]
    ranges = [
        [abs(trial["seconds"][end] / trial["sizes"]["problems"] - trial["seconds_a_problem"]) for trial in compared]
        for end in ("low", "high")
    ]
    panel.barh(places, medians, xerr=ranges, color=[KIND_COLOURS[trial["kind"]] for trial in compared], capsize=2)
    panel.set_yticks(places, [trial["name"] for trial in compared])
    panel.invert_yaxis()
    panel.set_xlabel("seconds per problem (median, range)")


def _lines(panel: Any, axis: str, fits: list[dict[str, Any]]) -> None:
    for fit, mark, colour in zip(fits, MARKS, COLOURS, strict=False):
        panel.plot(
            *zip(*fit["points"], strict=True), mark, color=colour, label=f"{fit['contender']}: power {_exponent(fit)}"
        )
    xs, seconds = zip(*(point for fit in fits for point in fit["points"]), strict=True)
    panel.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds")
    panel.set_xticks(sorted(set(xs)))
    powers = range(math.floor(math.log2(min(seconds))), math.ceil(math.log2(max(seconds))) + 1)
    panel.set_yticks([2.0**power for power in powers])
    panel.xaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_major_formatter("{x:.3g}")
    panel.minorticks_off()
    panel.legend()
