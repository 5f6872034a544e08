"""The page on performance and its plots, from stored benchmarks: `python -m unmask.report.performance`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.report import bench
from unmask.report.bench import Found
from unmask.report.formats import table_markdown
from unmask.report.tables import Table
from unmask.report.tables import TableCell as Entry

DATA, PAGE = Path("docs/data/bench"), Path("docs/performance.md")
HEAD = """<!-- Written by `make performance` from docs/data/bench: change what is there instead. -->
# Performance

What `unmask bench` measured. Every section is one run: the published loops written plainly (`unmask/plain.py`) and ours
take turns on the same weights, prompts and device, so that a drifting clock is shared. Figures are medians; ranges in
brackets go from the lowest to the highest of n rounds, after one to warm up. Ratios divide what ran in the same round.

- *exact* contenders write the plain loop's tokens in float32; *approximate* ones need not. *without* leaves out savings
  that are otherwise always on.
- *rows* and *positions* are those the network really computed, for one problem. *step* is the time of a denoising step
  of all problems decoded together, *scoring* the share of all time that goes into scoring candidates.
- On a CPU seconds are the processor's own, over all threads, which other work on the machine leaves alone.
- *memory* is the most a contender takes beyond the weights; *of peak* compares its products with one large matrix
  product measured in the same run.
- Weights of a *shape* are random numbers: they cost what trained ones cost and say nothing about quality.

To measure on another machine, and to have its results on this page:

```sh
unmask bench --problems 4 --repeat 1
unmask bench --shape llada-8b --sweep beams --sweep problems=1,16 --limit 260 --out docs/data/bench/gpu.json
make performance
```
"""


@dataclass(frozen=True)
class Target:
    """What was set out to be reached, and what came out."""

    text: str
    bound: str  # as said: ≥ 1.3×
    value: float
    met: bool


def page(stored: dict[str, Found]) -> str:
    parts = [HEAD]
    for stem, found in sorted(stored.items()):
        parts.append(section(stem, found))
    return "\n".join(parts)


def section(stem: str, found: Found) -> str:
    machine, peak = found["machine"], found["peak"]
    cores = "" if machine["kind"] == "cuda" else f", {machine['threads']} of {machine['cores']} cores"
    said = (
        f"{machine['device']}{cores}, torch {machine['torch']}, {machine['dtype']}; "
        f"one product of {peak['side']}² matrices runs at {peak['flops'] / 1e12:.3g} TFLOP/s. "
        f"Seed {found['plan']['seed']}. {found['note']}"
    ).strip()
    problems = found["plan"]["sizes"]["problems"]
    title = f"## {found['model']} on {machine['device']}, {problems} problem{'s' * (problems > 1)}"
    parts = [title, said, f"```sh\n{command(found)}\n```"]
    parts.append(f"![seconds a problem by contender, and growth](data/bench/{stem}.svg)")
    compared = bench.comparison(found)
    parts += [table_markdown(compared)[0], *_list(compared.notes), _who(found)]
    for table in (_targets(found), bench.ratios(found), bench.savings(found), bench.growth(found)):
        if table.rows:
            parts += [f"### {table.title}", *table_markdown(table)]
    return "\n\n".join([part for part in [*parts, *_agreement(found), *_replay(found)] if part]) + "\n"


def command(found: Found) -> str:
    """What to type to have it measured again."""
    plan, sizes = found["plan"], found["plan"]["sizes"]
    words = [f"unmask bench {'--shape' if found['random'] else '--model'} {found['model']}"]
    words.append(f"--device {found['machine']['kind']} --dtype {found['machine']['dtype']}")
    words += [
        f"--{name} {sizes[name]}" for name in ("problems", "prompt", "length", "block", "steps", "beams") if sizes[name]
    ]
    words.append(f"--temperature {sizes['temperature']:g} --repeat {plan['repeat']} --seed {plan['seed']}")
    words += [f"--sweep {axis}={','.join(map(str, values))}" for axis, values in plan["sweeps"].items()]
    words += [f"--only {name}" for name in plan["contenders"]]
    return " ".join(words)


def _who(found: Found) -> str:
    about = {trial["contender"]: trial["about"] for trial in found["trials"]}
    return "\n".join(f"- `{name}`: {text}" for name, text in about.items())


def _list(lines: Iterable[str]) -> list[str]:
    made = "\n".join(f"- {line}" for line in lines)
    return [made] if made else []


def targets(found: Found) -> list[Target]:
    """Those that this run speaks of."""
    cuda = found["machine"]["kind"] == "cuda"
    ratios = {name: one["median"] for name, one in found["ratios"].items()}
    exact = [trial for trial in found["trials"] if trial.get("split") and trial["contender"].startswith("ots")]
    made: list[Target] = []
    least = {"plain-ots / ots": 1.3, "plain-ots / ots-compiled": 1.3} if cuda else {"plain-ots / ots": 2.0}
    bounds = {"ots": 1.1, "ots-cached": 1.6} if cuda else {}
    together = {f"{name}{kind}": bound for name, bound in bounds.items() for kind in ("", "-compiled")}
    least |= {f"{name} / {name}@problems=16": bound for name, bound in together.items()}
    bounds = {"ots-cached": 1.0, "ots-cached-threshold": 0.6}
    names = [(f"{name}{kind} / plain-path", bound) for name, bound in bounds.items() for kind in ("", "-compiled")]
    most = dict(names) if cuda else {}
    made += [_least(name, ratios[name], bound, "×") for name, bound in least.items() if name in ratios]
    made += [_most(name, ratios[name], bound, "×") for name, bound in most.items() if name in ratios]
    for trial in exact:
        if cuda and trial["kind"] == "exact" and not trial["axis"] and trial["memory"]:
            made.append(_most(f"a denoising step of {trial['name']}", trial["split"]["step_ms"], 43.0, " ms"))
            made.append(_most(f"memory of {trial['name']} beyond the weights", trial["memory"] / 2**30, 4.0, " GiB"))
    for one in found["growth"]:
        if one["axis"] == "beams" and one["what"] == "denoising":
            made.append(
                _most(f"denoising of {one['contender']} grows with K to the power of", one["exponent"], 1.15, "")
            )
    shares = [100 * trial["split"]["scoring_share"] for trial in exact if trial["kind"] != "without"]
    if shares:
        made.append(_most("scoring's share of all time, at its largest", max(shares), 40.0, " %"))
    return made


def _least(text: str, value: float, bound: float, unit: str) -> Target:
    return Target(text, f"≥ {bound:g}{unit}", value, value >= bound)


def _most(text: str, value: float, bound: float, unit: str) -> Target:
    return Target(text, f"≤ {bound:g}{unit}", value, value <= bound)


def _targets(found: Found) -> Table:
    rows = tuple(
        tuple(map(Entry, (one.text, one.bound, f"{one.value:.2f}", "reached" if one.met else "missed")))
        for one in targets(found)
    )
    return Table("timing", "What was aimed at, and what came out", ("", "target", "measured", ""), rows)


def _agreement(found: Found) -> list[str]:
    return [
        f"On the same canvases, a block's start each, {name} and the plain loop differ by at most "
        f"{one['largest_log_p_difference']:.2g} in log p over the whole vocabulary, and "
        f"{one['equal_draws']:,} of {one['draws']:,} draws are equal ({100 * one['share']:.1f} %)."
        for name, one in found["agreement"].items()
    ]


def _replay(found: Found) -> list[str]:
    one = found["replay"]
    if not one:
        return []
    steps, writes = (
        ", ".join(f"{number} ({count})" for number, count in one[what].items())
        for what in ("steps_a_block", "writes_a_step")
    )
    return [
        f"Random weights are never sure, so threshold writing is replayed: `{one['model']}` took "
        f"{one['mean_steps']:.2f} steps a block that holds text, on {one['problems']} validation problems "
        f"({', '.join(one['tasks'])}; L={one['length']}, seed {one['seed']}), one problem at a time, and the shape "
        "takes as many. A model that is less sure takes more. "
        f"Steps of those blocks, and how many took them: {steps}. "
        f"Positions that a step wrote, over all blocks, and how often: {writes}."
    ]


def read(folder: Path) -> dict[str, Found]:
    stored: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("format") != "unmask-bench":
            raise UnmaskError(f"{path.name} was not written by `unmask bench --out`: move it elsewhere")
        stored[path.stem] = found
    return stored


def main(data: Path = DATA, out: Path = PAGE, plots: Path | None = None) -> None:
    """Plots go beside the results they show."""
    stored = read(data)
    for stem, found in stored.items():
        ((plots or data) / f"{stem}.svg").write_bytes(bench.draw(found, "svg"))
    out.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
