"""What an experiment is: a question, the cells that answer it, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unmask.experiments.bench import Bench
from unmask.experiments.cells import Part
from unmask.experiments.found import Found
from unmask.experiments.setting import Setting
from unmask.report.plots import Plot
from unmask.report.tables import Table

Outcome = Literal["holds", "does not hold", "not decided", "not asked"]


@dataclass(frozen=True)
class Verdict:
    """What came of one of the paper's claims."""

    claim: str
    source: str  # where the paper makes it
    outcome: Outcome
    said: str  # the figures it rests on


@dataclass(frozen=True)
class Findings:
    tables: list[Table]
    verdicts: list[Verdict] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # drawn already, by file name
    text: str = ""  # shown as it is


@dataclass(frozen=True)
class Experiment:
    name: str
    source: str  # the paper's table or figure
    question: str
    parts: Callable[[Setting], list[Part]]
    findings: Callable[[Found], Findings]
    measure: Callable[[Bench, Setting], Any] | None = (
        None  # work that is no evaluation; what it returns is kept as JSON
    )
