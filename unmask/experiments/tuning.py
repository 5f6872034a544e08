"""K and τ chosen as in the paper, but on problems that are not the tested ones.

The paper does not say on which split it chose. The best setting on the tested problems is shown as hindsight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.errors import UnmaskError
from unmask.experiments.methods import Method, Part
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.report.tables import Table

BEAMS = (3, 5, 8)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)
SEPARATOR = " · "
FEW = 256  # problems of each kind, unless the setup has its own number
OTHERS, TESTED = "others", "tested"  # problems on which to choose, and those of the table


def parts(setup: Setup, benchmarks: Sequence[str]) -> list[Part]:
    tunable = [benchmark for benchmark in setup.chosen(*benchmarks) if benchmark in setup.tuning]
    if not tunable:
        raise UnmaskError(f"--grid has no problems to choose on: those of {', '.join(setup.tuning)} are known")
    methods = tuple(_method(beams, temperature) for beams in BEAMS for temperature in TEMPERATURES)
    limit = setup.few or FEW
    tasks = {
        _name(benchmark, which): (task, setup.table(benchmark))
        for benchmark in tunable
        for which, task in ((OTHERS, setup.tuning[benchmark]), (TESTED, setup.tasks[benchmark]))
    }
    return [Part(name.lower(), name, task, methods, lengths, limit) for name, (task, lengths) in tasks.items()]


def without(evidence: Evidence) -> Evidence:
    """The table itself."""
    return replace(evidence, parts=[part for part in evidence.parts if SEPARATOR not in part.benchmark])


def table(evidence: Evidence) -> Table:
    """The setting chosen on other problems, its accuracy on the tested ones, and the best there in hindsight."""
    body = []
    for part in evidence.parts:
        benchmark, _, which = part.benchmark.partition(SEPARATOR)
        if which != TESTED or part.name not in evidence.runs:
            continue
        others = _name(benchmark, OTHERS)
        chosen, best = (_best(evidence, name, part.methods) for name in (others, part.benchmark))
        figures = [evidence.accuracy(name, chosen.name) for name in (others, part.benchmark)]
        hindsight = evidence.accuracy(part.benchmark, best.name)
        body.append((benchmark, evidence.accuracy(benchmark, "ots"), chosen.label, *figures, best.label, hindsight))
    head = ("benchmark", "OTS as it is", "chosen", "on other problems", "on the tested", "hindsight", "best on test")
    problems = sorted({part.limit for part in evidence.parts if SEPARATOR in part.benchmark and part.limit})
    title = f"K and τ chosen on other problems, accuracy, %, n={'–'.join(map(str, problems))} of each kind"
    return Table.of("accuracy", title, head, body, rank=False)


def _method(beams: int, temperature: float) -> Method:
    spec = f"ots(beams={beams}, temperature={temperature})"
    return Method(f"ots-{beams}-{temperature}", f"K={beams}, τ={temperature}", spec)


def _best(evidence: Evidence, benchmark: str, methods: Sequence[Method]) -> Method:
    """Ties go to fewer beams, then to the lower temperature."""
    return max(methods, key=lambda method: evidence.accuracy(benchmark, method.name).value or 0.0)


def _name(benchmark: str, which: str) -> str:
    return f"{benchmark}{SEPARATOR}{which}"
