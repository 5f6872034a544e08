"""The results of a benchmark: medians and ratios as plain values, tables and a plot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unmask.bench.contenders import CONTENDERS
from unmask.report.plots import COLOURS, MARKS, render
from unmask.report.tables import Table

if TYPE_CHECKING:
    from unmask.bench.run import Case

Results = dict[str, Any]  # what `unmask bench --out` writes
KIND_COLOURS = {"plain": "#999999", "exact": COLOURS[0], "approximate": COLOURS[1]}
HEAD = "contender, kind, s/problem, tokens/s, forward passes, positions, memory, n"
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


def analyze(cases: Sequence[Case]) -> Results:
    """Return the trials, the agreement of tokens with the plain loop, and the ratios of seconds."""
    by_name = {case.name: case for case in cases if case.runs}
    return {
        "trials": [_trial(case) for case in cases if case.runs or case.error],
        "same_tokens": _same_tokens(by_name),
        "ratios": _ratios(by_name),
    }


def _trial(case: Case) -> dict[str, Any]:
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
    return trial | {
        "seconds": seconds | {"all": case.seconds},
        "seconds_per_problem": seconds["median"] / sizes.problems,
        "tokens_per_second": sizes.problems * sizes.length / seconds["median"],
        "calls": run.calls,
        "forward_passes": run.forward_passes,
        "positions": run.positions,
        "memory": max(run.memory for run in case.runs) or None,
    }


def _same_tokens(by_name: dict[str, Case]) -> dict[str, Any]:
    """Count the problems whose best answer equals that of the plain loop."""
    counts = {}
    for name, case in by_name.items():
        plain = by_name.get("plain-path" if name.startswith("path") else "plain-ots")
        if plain is not None and case.axis is None and CONTENDERS[name].kind != "plain":
            pairs = list(zip(case.runs[-1].tokens, plain.runs[-1].tokens, strict=True))
            counts[name] = {"same": sum(tokens == expected for tokens, expected in pairs), "problems": len(pairs)}
    return counts


def _ratios(by_name: dict[str, Case]) -> dict[str, Any]:
    """Divide the seconds per problem of one contender by those of a second."""
    batches = [(case.contender, name) for name, case in by_name.items() if case.axis == "problems"]
    each = {name: [seconds / case.sizes.problems for seconds in case.seconds] for name, case in by_name.items()}
    return {f"{a} / {b}": ratio(each[a], each[b]) for a, b in (*RATIOS, *batches) if a in each and b in each}


def spread(values: Sequence[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "n": len(values)}


def ratio(above: Sequence[float], below: Sequence[float]) -> dict[str, Any]:
    """Divide round by round, so that changes in the machine's speed cancel out; surplus rounds are ignored."""
    return spread([a / b for a, b in zip(above, below, strict=False)])


def tables(results: Results) -> list[Table]:
    return [table for table in (comparison(results), ratios(results)) if table.rows]


def comparison(results: Results) -> Table:
    failed = [f"{trial['name']} failed: {trial['error']}" for trial in results["trials"] if trial["error"]]
    same = [
        f"{name}: the same tokens as the plain loop in {count['same']} of {count['problems']} problems"
        for name, count in results["same_tokens"].items()
    ]
    rows = [_row(trial) for trial in results["trials"] if trial.get("seconds")]
    return Table.of("timing", title(results), HEAD.split(", "), rows, [*failed, *same])


def title(results: Results) -> str:
    sizes, machine = results["plan"]["sizes"], results["machine"]
    prompt = f"prompt {sizes['prompt']}" if sizes["prompt"] else "Countdown"
    parts = [results["model"], machine["device"], machine["dtype"], prompt, f"L={sizes['length']}"]
    return " · ".join([*parts, f"block {sizes['block']}", f"K={sizes['beams']}", f"τ={sizes['temperature']:g}"])


def _row(trial: dict[str, Any]) -> tuple[str, ...]:
    seconds, problems = trial["seconds"], trial["sizes"]["problems"]
    each = f"{trial['seconds_per_problem']:.3g}"
    limits = f" ({seconds['low'] / problems:.3g}–{seconds['high'] / problems:.3g})"
    return (
        trial["name"],
        trial["kind"],
        each + limits if seconds["n"] > 1 else each,
        f"{trial['tokens_per_second']:.1f}",
        f"{trial['forward_passes'] / problems:,.0f}",
        f"{trial['positions'] / problems:,.0f}",
        f"{trial['memory'] / 2**30:.2f} GiB" if trial["memory"] else "–",
        str(seconds["n"]),
    )


def ratios(results: Results) -> Table:
    rows = [
        (name, f"{ratio['median']:.2f}", f"{ratio['low']:.2f}–{ratio['high']:.2f}", str(ratio["n"]))
        for name, ratio in results["ratios"].items()
    ]
    return Table.of("timing", "Ratios of seconds per problem", ("ratio", "median", "range", "n"), rows)


def draw(results: Results, kind: str) -> bytes:
    """Draw bars for the comparison, and a panel for each sweep."""
    measured = [trial for trial in results["trials"] if trial.get("seconds")]
    axes = sorted({trial["axis"] for trial in measured if trial["axis"]})
    compared = [trial for trial in measured if not trial["axis"]]
    heights = [0.8 + 0.3 * len(compared), *([2.6] if axes else [])]

    def paint(figure: Any) -> None:
        rows = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        bars = figure.add_subplot(rows[0])
        _bars(bars, compared)
        bars.set_title(title(results), fontsize=8, loc="left")
        panels = rows[1].subgridspec(1, len(axes)) if axes else ()
        for panel, axis in zip(panels, axes, strict=True):
            _lines(figure.add_subplot(panel), axis, [trial for trial in measured if trial["axis"] in (axis, None)])

    return render(paint, (7.2, sum(heights)), kind, layout="constrained")


def _bars(panel: Any, compared: list[dict[str, Any]]) -> None:
    places = range(len(compared))
    medians = [trial["seconds_per_problem"] for trial in compared]
    ranges = [
        [abs(trial["seconds"][end] / trial["sizes"]["problems"] - trial["seconds_per_problem"]) for trial in compared]
        for end in ("low", "high")
    ]
    panel.barh(places, medians, xerr=ranges, color=[KIND_COLOURS[trial["kind"]] for trial in compared], capsize=2)
    panel.set_yticks(places, [trial["name"] for trial in compared])
    panel.invert_yaxis()
    panel.set_xlabel("seconds per problem (median, range)")


def _lines(panel: Any, axis: str, trials: list[dict[str, Any]]) -> None:
    """Draw seconds against the swept size, for each contender of the sweep and the comparison."""
    names = dict.fromkeys(trial["contender"] for trial in trials if trial["axis"])
    points = [(trial["contender"], trial["sizes"][axis], trial["seconds"]["median"]) for trial in trials]
    shown = [point for point in points if point[0] in names]
    for name, mark, colour in zip(names, MARKS, COLOURS, strict=False):
        line = sorted((x, seconds) for contender, x, seconds in shown if contender == name)
        panel.plot(*zip(*line, strict=True), marker=mark, color=colour, label=name)
    panel.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds")
    panel.set_xticks(sorted({x for _, x, _ in shown}))
    seconds = [y for _, _, y in shown]
    powers = range(math.floor(math.log2(min(seconds))), math.ceil(math.log2(max(seconds))) + 1)
    panel.set_yticks([2.0**power for power in powers])
    panel.xaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_major_formatter("{x:.3g}")
    panel.minorticks_off()
    panel.legend()
