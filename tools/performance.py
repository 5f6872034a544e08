"""`python -m tools.performance [DATA] [PAGE] [PLOTS]`: write docs/performance.md and its plots from stored runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from unmask.bench import report
from unmask.bench.contenders import CONTENDERS
from unmask.bench.report import Results
from unmask.errors import UnmaskError
from unmask.report.formats import table_markdown

DATA, PAGE = Path("docs/data/bench"), Path("docs/performance.md")
HEAD = """<!-- Written by `make performance` from docs/data/bench: change the data or tools/performance.py instead. -->
# Performance

Results of `unmask bench`. Each section is one run, in which the published loops written plainly
(`unmask/bench/reference_loops.py`) and the decoders of this package take turns on the same weights, prompts and device,
so that changes in the machine's speed affect all of them. Figures are medians. Ranges in brackets span the n measured
rounds, which follow a warm-up. Ratios divide times of the same round.

- *exact* contenders write the same tokens as the plain loop in float32; *approximate* ones may differ.
- *forward passes* and *positions* are those that the network computed, per problem.
- On a CPU, seconds are processor time summed over all threads, which other processes do not affect.
- *memory* is the peak beyond the weights.
- The weights of a *shape* are random. They cost as much as trained weights and say nothing about quality.

To measure your machine and add its results to this page:

```sh
unmask bench --problems 4 --repeat 1
unmask bench --shape llada-8b --sweep beams --sweep problems=1,16 --limit 260 --out docs/data/bench/gpu.json
make performance
```
"""


def page(stored: dict[str, Results]) -> str:
    return "\n".join([HEAD, *(section(stem, results) for stem, results in sorted(stored.items()))])


def section(stem: str, results: Results) -> str:
    compared = report.comparison(results)
    parts = [
        *_introduction(results),
        f"```sh\n{command(results)}\n```",
        f"![seconds per problem by contender](data/bench/{stem}.svg)",
        table_markdown(compared)[0],
        "\n".join(f"- {note}" for note in compared.notes),
        _contenders(results),
    ]
    ratios = report.ratios(results)
    if ratios.rows:
        parts += [f"### {ratios.title}", *table_markdown(ratios)]
    return "\n\n".join(part for part in [*parts, *_agreement(results)] if part) + "\n"


def _introduction(results: Results) -> list[str]:
    machine, problems = results["machine"], results["plan"]["sizes"]["problems"]
    cores = "" if machine["kind"] == "cuda" else f", {machine['threads']} of {machine['cores']} cores"
    about = f"{machine['device']}{cores}, torch {machine['torch']}, {machine['dtype']}."
    text = f"{about} Seed {results['plan']['seed']}. {results['note']}"
    return [f"## {results['model']} on {machine['device']}, {problems} problem{'s' * (problems > 1)}", text.strip()]


def command(results: Results) -> str:
    """Return the command that repeats the run. Threshold writing needs trained weights."""
    plan, sizes = results["plan"], results["plan"]["sizes"]
    words = [f"unmask bench {'--shape' if results['random'] else '--model'} {results['model']}"]
    words.append(f"--device {results['machine']['kind']} --dtype {results['machine']['dtype']}")
    options = ("problems", "prompt", "length", "block", "steps", "beams")
    words += [f"--{name} {sizes[name]}" for name in options if sizes[name]]
    words.append(f"--temperature {sizes['temperature']:g} --repeat {plan['repeat']} --seed {plan['seed']}")
    words += [f"--sweep {axis}={','.join(map(str, values))}" for axis, values in plan["sweeps"].items()]
    names = [name for name in plan["contenders"] if not (results["random"] and "threshold" in name)]
    words += [f"--only {name}" for name in names]
    return " ".join(words)


def _contenders(results: Results) -> str:
    names = dict.fromkeys(trial["contender"] for trial in results["trials"])
    return "\n".join(f"- `{name}`: {CONTENDERS[name].about}" for name in names)


def _agreement(results: Results) -> list[str]:
    return [
        f"On the same canvases, one for the start of each block, the log p of {name} and of the plain loop differ by "
        f"at most {agreement['largest_log_p_difference']:.2g} over the whole vocabulary, and "
        f"{agreement['equal_draws']:,} of {agreement['draws']:,} draws are equal ({100 * agreement['share']:.1f} %)."
        for name, agreement in results["agreement"].items()
    ]


def read(folder: Path) -> dict[str, Results]:
    stored: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        if results.get("format") != "unmask-bench":
            raise UnmaskError(f"{path.name} was not written by `unmask bench --out`: move it elsewhere")
        stored[path.stem] = results
    return stored


def main(data: Path = DATA, out: Path = PAGE, plots: Path | None = None) -> None:
    """Write the page, and the plots beside the data or into `plots`."""
    stored = read(data)
    for stem, results in stored.items():
        ((plots or data) / f"{stem}.svg").write_bytes(report.draw(results, "svg"))
    out.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
