"""`python -m tools.performance [DATA] [PAGE] [PLOTS]`: docs/performance.md and its plots, from stored benchmarks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from unmask.bench import report as display
from unmask.bench.contenders import CONTENDERS
from unmask.bench.report import Results
from unmask.errors import UnmaskError
from unmask.report.formats import table_markdown

DATA, PAGE = Path("docs/data/bench"), Path("docs/performance.md")
HEAD = """<!-- Written by `make performance` from docs/data/bench: change the data or tools/performance.py instead. -->
# Performance

Results of `unmask bench`. Each section is one run, in which the published loops written plainly (`unmask/plain.py`) and
the decoders of this package take turns on the same weights, prompts and device, so that changes in the machine's speed
affect all of them. Figures are medians. Ranges in brackets span the n measured rounds, which follow a warm-up. Ratios
divide times of the same round.

- *exact* contenders write the same tokens as the plain loop in float32; *approximate* ones may differ; *without* means
  that savings which are normally always on are switched off.
- *rows* and *positions* are those that the network computed, per problem. *ms/step* is the time of one denoising step
  of the whole batch, and *scoring* is the share of time spent scoring candidates.
- On a CPU, seconds are processor time summed over all threads, which other processes do not affect.
- *memory* is the peak beyond the weights; *of peak* is the rate of floating-point operations relative to a large matrix
  product measured in the same run.
- The weights of a *shape* are random. They cost as much as trained weights and say nothing about quality.

To measure another machine and add its results to this page:

```sh
unmask bench --problems 4 --repeat 1
unmask bench --shape llada-8b --sweep beams --sweep problems=1,16 --limit 260 --out docs/data/bench/gpu.json
make performance
```
"""


def page(stored: dict[str, Results]) -> str:
    return "\n".join([HEAD, *(section(stem, results) for stem, results in sorted(stored.items()))])


def section(stem: str, results: Results) -> str:
    compared = display.comparison(results)
    parts = [
        *_introduction(results),
        f"```sh\n{command(results)}\n```",
        f"![seconds per problem by contender, and growth](data/bench/{stem}.svg)",
        table_markdown(compared)[0],
        "\n".join(f"- {note}" for note in compared.notes),
        _contenders(results),
    ]
    for table in (display.ratios(results), display.savings(results), display.growth(results)):
        if table.rows:
            parts += [f"### {table.title}", *table_markdown(table)]
    return "\n\n".join(part for part in [*parts, *_agreement(results), _replay(results)] if part) + "\n"


def _introduction(results: Results) -> list[str]:
    machine, peak, problems = results["machine"], results["peak"], results["plan"]["sizes"]["problems"]
    cores = "" if machine["kind"] == "cuda" else f", {machine['threads']} of {machine['cores']} cores"
    text = (
        f"{machine['device']}{cores}, torch {machine['torch']}, {machine['dtype']}. A product of {peak['side']}² "
        f"matrices runs at {peak['flops'] / 1e12:.3g} TFLOP/s. Seed {results['plan']['seed']}. {results['note']}"
    )
    return [f"## {results['model']} on {machine['device']}, {problems} problem{'s' * (problems > 1)}", text.strip()]


def command(results: Results) -> str:
    """The command that measures this again."""
    plan, sizes = results["plan"], results["plan"]["sizes"]
    words = [f"unmask bench {'--shape' if results['random'] else '--model'} {results['model']}"]
    words.append(f"--device {results['machine']['kind']} --dtype {results['machine']['dtype']}")
    names = ("problems", "prompt", "length", "block", "steps", "beams")
    words += [f"--{name} {sizes[name]}" for name in names if sizes[name]]
    words.append(f"--temperature {sizes['temperature']:g} --repeat {plan['repeat']} --seed {plan['seed']}")
    words += [f"--sweep {axis}={','.join(map(str, values))}" for axis, values in plan["sweeps"].items()]
    words += [f"--only {name}" for name in plan["contenders"]]
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


def _replay(results: Results) -> str:
    replay = results["replay"]
    if not replay:
        return ""
    steps, writes = (
        ", ".join(f"{number} ({count})" for number, count in replay[counts].items())
        for counts in ("steps_a_block", "writes_a_step")
    )
    return (
        f"Random weights never reach the threshold, so threshold writing is replayed. `{replay['model']}` took "
        f"{replay['mean_steps']:.2f} steps per block that holds text, on {replay['problems']} validation problems "
        f"({', '.join(replay['tasks'])}; L={replay['length']}, seed {replay['seed']}), one problem at a time, and the "
        f"shape takes as many. A less confident model takes more. Steps per block, with the number of blocks: {steps}. "
        f"Positions written per step, over all blocks, with the number of steps: {writes}."
    )


def read(folder: Path) -> dict[str, Results]:
    stored: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        if results.get("format") != "unmask-bench":
            raise UnmaskError(f"{path.name} was not written by `unmask bench --out`: move it elsewhere")
        stored[path.stem] = results
    return stored


def main(data: Path = DATA, out: Path = PAGE, plots: Path | None = None) -> None:
    """Plots are written beside the data by default."""
    stored = read(data)
    for stem, results in stored.items():
        ((plots or data) / f"{stem}.svg").write_bytes(display.draw(results, "svg"))
    out.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
