"""An experiment: a question, the cells that answer it, and what their records show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unmask.experiments.claims import Claim
from unmask.experiments.evidence import Evidence
from unmask.experiments.methods import Part
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.report.plots import Plot, draw
from unmask.report.tables import Table


@dataclass(frozen=True)
class Findings:
    tables: list[Table]
    claims: list[Claim] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    pictures: Mapping[str, Callable[[str], bytes]] = field(default_factory=dict)  # by name; drawn as `svg` or `png`
    text: str = ""  # shown as it is

    def images(self, *kinds: str) -> dict[str, bytes]:
        """By file name."""
        drawn = {f"{plot.name}.{kind}": draw(plot, kind) for plot in self.plots if plot.lines for kind in kinds}
        return drawn | {f"{name}.{kind}": picture(kind) for name, picture in self.pictures.items() for kind in kinds}


@dataclass(frozen=True)
class Experiment:
    name: str
    source: str  # the paper's table or figure
    doc: str | None  # the question, and notes after it
    parts: Callable[[Setup], list[Part]]
    findings: Callable[[Evidence], Findings]
    measure: Callable[[Runner, Setup], Any] | None = None  # work other than an evaluation; its result is kept as JSON

    @property
    def question(self) -> str:
        return (self.doc or "").split("\n")[0]
