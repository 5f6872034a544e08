"""K and τ searched as the paper did, but chosen on problems that are not the tested ones.

The paper names no split it chose on. What would have been best on the tested problems is shown, and called that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.errors import UnmaskError
from unmask.experiments.cells import Method, Part
from unmask.experiments.found import Found
from unmask.experiments.setting import Setting
from unmask.experiments.tables import rows_of
from unmask.report.statistics import Estimate
from unmask.report.tables import Table

BEAMS = (3, 5, 8)
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)
JOINT = " · "
FEW = 256  # problems of each kind, unless the setting has its own number
OTHERS, TESTED = "others", "tested"  # which problems: those that are chosen on, and those of the table


def parts(setting: Setting, benchmarks: Sequence[str]) -> list[Part]:
    able = [benchmark for benchmark in setting.chosen(*benchmarks) if benchmark in setting.tuning]
    if not able:
        raise UnmaskError(f"--grid has nothing to choose on: known: {', '.join(setting.tuning)}")
    made = []
    for benchmark in able:
        for which, task in ((OTHERS, setting.tuning[benchmark]), (TESTED, setting.tasks[benchmark])):
            name = _name(benchmark, which)
            methods = tuple(_method(beams, warm) for beams in BEAMS for warm in TEMPERATURES)
            made.append(Part(name.lower(), name, task, methods, setting.table(benchmark), limit=setting.few or FEW))
    return made


def without(found: Found) -> Found:
    """The table itself."""
    return replace(found, parts=[part for part in found.parts if JOINT not in part.benchmark])


def table(found: Found) -> Table:
    """The setting chosen on other problems, what it gives on the tested ones, and the best there in hindsight."""
    body: list[list[str | Estimate | None]] = []
    for part in found.parts:
        benchmark, _, which = part.benchmark.partition(JOINT)
        if which != TESTED or part.name not in found.runs:
            continue
        chosen = _best(found, _name(benchmark, OTHERS), part.methods)
        best = _best(found, _name(benchmark, TESTED), part.methods)
        headline = found.accuracy(benchmark, "ots")
        figures = [found.accuracy(_name(benchmark, which), chosen.name) for which in (OTHERS, TESTED)]
        hindsight = found.accuracy(_name(benchmark, TESTED), best.name)
        body.append([benchmark, headline, chosen.label, *figures, best.label, hindsight])
    head = ("benchmark", "OTS as it is", "chosen", "on other problems", "on the tested", "hindsight", "best on test")
    problems = sorted({part.limit for part in found.parts if JOINT in part.benchmark and part.limit})
    title = f"K and τ chosen on other problems, accuracy, %, n={'–'.join(map(str, problems))} of each kind"
    return rows_of(title, head, body)


def _method(beams: int, warm: float) -> Method:
    return Method(f"ots-{beams}-{warm}", f"K={beams}, τ={warm}", f"ots(beams={beams}, temperature={warm})")


def _best(found: Found, benchmark: str, methods: Sequence[Method]) -> Method:
    """Ties go to the cheaper and cooler."""
    return max(methods, key=lambda method: found.accuracy(benchmark, method.name).value or 0.0)


def _name(benchmark: str, which: str) -> str:
    return f"{benchmark}{JOINT}{which}"
