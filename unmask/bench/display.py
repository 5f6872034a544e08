"""The results of a benchmark as tables and as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from unmask.bench.analysis import SAVINGS
from unmask.report.figures import COLOURS, MARKS, render
from unmask.report.tables import Table

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
        f"{trial['rows'] / problems:,.0f}",
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
