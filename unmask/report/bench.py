"""A benchmark's results as tables and a plot."""

from __future__ import annotations

import math
from typing import Any

from unmask.report.figures import COLOURS, MARKS, render
from unmask.report.tables import Table
from unmask.report.tables import TableCell as Entry

Found = dict[str, Any]  # what `unmask bench --out` wrote
KINDS = {"plain": "#999999", "exact": COLOURS[0], "approximate": COLOURS[1], "without": COLOURS[5]}


def tables(found: Found) -> list[Table]:
    made = [comparison(found), ratios(found), savings(found), growth(found)]
    return [table for table in made if table.rows]


def comparison(found: Found) -> Table:
    head = (
        "contender",
        "kind",
        "s a problem",
        "tokens/s",
        "rows",
        "positions",
        "step, ms",
        "scoring",
        "memory",
        "of peak",
        "n",
    )
    notes = [f"{trial['name']} failed: {trial['error']}" for trial in found["trials"] if trial["error"]]
    notes += [
        f"{name}: the plain loop's tokens in {one['same']} of {one['problems']} problems"
        for name, one in found["same_tokens"].items()
    ]
    rows = tuple(_row(trial) for trial in found["trials"] if trial.get("seconds"))
    return Table("timing", title(found), head, rows, tuple(notes))


def title(found: Found) -> str:
    sizes, machine = found["plan"]["sizes"], found["machine"]
    prompt = f"prompt {sizes['prompt']}" if sizes["prompt"] else "Countdown"
    parts = [found["model"], machine["device"], machine["dtype"], prompt, f"L={sizes['length']}"]
    return " · ".join([*parts, f"block {sizes['block']}", f"K={sizes['beams']}", f"τ={sizes['temperature']:g}"])


def _row(trial: dict[str, Any]) -> tuple[Entry, ...]:
    seconds, split, problems = trial["seconds"], trial["split"], trial["sizes"]["problems"]
    low, high = seconds["low"] / problems, seconds["high"] / problems
    each = f"{trial['seconds_a_problem']:.3g}"
    cells = (
        trial["name"],
        trial["kind"],
        f"{each} ({low:.3g}–{high:.3g})" if seconds["n"] > 1 else each,
        f"{trial['tokens_a_second']:.1f}",
        f"{trial['rows'] / problems:,.0f}",
        f"{trial['positions'] / problems:,.0f}",
        f"{split['step_ms']:.1f}" if split else "–",
        f"{100 * split['scoring_share']:.0f} %" if split and split["scoring_share"] else "–",
        f"{trial['memory'] / 2**30:.2f} GiB" if trial["memory"] else "–",
        f"{100 * trial['peak_share']:.0f} %",
        str(seconds["n"]),
    )
    return tuple(map(Entry, cells))


def ratios(found: Found) -> Table:
    rows = tuple(
        tuple(map(Entry, (name, f"{one['median']:.2f}", f"{one['low']:.2f}–{one['high']:.2f}", str(one["n"]))))
        for name, one in found["ratios"].items()
    )
    return Table("timing", "Ratios of seconds a problem", ("ratio", "median", "range", "n"), rows)


def savings(found: Found) -> Table:
    rows = tuple(
        tuple(map(Entry, (one["saving"], f"{one['factor']['median']:.2f}×", f"{100 * (one['share'] or 0):.0f} %")))
        for one in found["savings"]
    )
    notes = (
        "Switched off one after another, in this order: the factors multiply to the whole, shares are of logarithms. "
        "K draws from one forward are no saving here, since the plain loop has them too.",
    )
    return Table("timing", "What each exact saving is worth", ("saving", "factor", "share"), rows, notes)


def growth(found: Found) -> Table:
    rows = tuple(
        tuple(map(Entry, (f"{one['contender']}, {one['what']}", one["axis"], _exponent(one), str(one["n"]))))
        for one in found["growth"]
    )
    head = ("seconds of", "grow with", "to the power of", "n")
    return Table("timing", "Growth", head, rows, ("Least squares on logarithms, ± standard error.",))


def _exponent(one: dict[str, Any]) -> str:
    return f"{one['exponent']:.2f}" + ("" if one["error"] is None else f" ± {one['error']:.2f}")


def draw(found: Found, kind: str) -> bytes:
    """Bars of the comparison, and a panel a sweep. The same bytes every time."""
    swept = sorted({one["axis"] for one in found["growth"]})
    compared = [trial for trial in found["trials"] if trial.get("seconds") and not trial["axis"]]
    tall = 0.8 + 0.3 * len(compared)

    def paint(figure: Any) -> None:
        rows = figure.add_gridspec(2 if swept else 1, 1, height_ratios=[tall, 2.6] if swept else None)
        bars = figure.add_subplot(rows[0])
        _bars(bars, compared)
        bars.set_title(title(found), fontsize=8, loc="left")
        below = rows[1].subgridspec(1, len(swept)) if swept else ()
        for place, axis in enumerate(swept):
            lines = [one for one in found["growth"] if one["axis"] == axis and one["what"] == "seconds"]
            _lines(figure.add_subplot(below[place]), axis, lines)

    return render(paint, (7.2, tall + (2.6 if swept else 0)), kind, layout="constrained")


def _bars(panel: Any, compared: list[dict[str, Any]]) -> None:
    places = range(len(compared))
    each = [trial["seconds_a_problem"] for trial in compared]
    ends = [
        [
            abs(trial["seconds"][end] / trial["sizes"]["problems"] - value)
            for trial, value in zip(compared, each, strict=True)
        ]
        for end in ("low", "high")
    ]
    panel.barh(places, each, xerr=ends, color=[KINDS[trial["kind"]] for trial in compared], capsize=2)
    panel.set_yticks(places, [trial["name"] for trial in compared])
    panel.invert_yaxis()
    panel.set_xlabel("seconds a problem (median, range)")


def _lines(panel: Any, axis: str, lines: list[dict[str, Any]]) -> None:
    for place, one in enumerate(lines):
        xs, ys = zip(*one["points"], strict=True)
        panel.plot(xs, ys, MARKS[place], color=COLOURS[place], label=f"{one['contender']}: power {_exponent(one)}")
    points = [point for one in lines for point in one["points"]]
    seconds = [y for _, y in points]
    panel.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds")
    panel.set_xticks(sorted({x for x, _ in points}))
    span = range(math.floor(math.log2(min(seconds))), math.ceil(math.log2(max(seconds))) + 1)
    panel.set_yticks([2.0**power for power in span])
    panel.xaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_major_formatter("{x:.3g}")
    panel.minorticks_off()
    panel.legend()
