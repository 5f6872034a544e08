"""An experiment: a question, the cells that answer it, and the claims and tables that follow from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from unmask.experiments.results import Names, Results
from unmask.experiments.setup import Part, Setup
from unmask.experiments.tables import chance, points
from unmask.report.plots import Plot, draw, one_scale
from unmask.report.statistics import Difference, Estimate, compare, exceeds, mean_difference
from unmask.report.tables import Table, signed

if TYPE_CHECKING:
    from unmask.experiments.run import Runner

Outcome = Literal["holds", "does not hold", "not decided", "not asked"]
SIGNS: dict[Outcome, str] = {"holds": "✓", "does not hold": "✗", "not decided": "?", "not asked": "–"}
ALPHA, INTERVAL = 0.05, 1.96  # a two-sided level, and the standard errors on each side that belong to it


@dataclass(frozen=True)
class Findings:
    """The tables, claims and figures that follow from the results of an experiment."""

    tables: list[Table]
    claims: list[Claim] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    pictures: Mapping[str, Callable[[str], bytes]] = field(default_factory=dict)  # by name; drawn as `svg` or `png`
    text: str = ""  # shown as it is

    def images(self, *kinds: str) -> dict[str, bytes]:
        """Return all figures by file name."""
        plots = [plot for plot in self.plots if plot.lines]
        drawn = {f"{plot.name}.{kind}": draw(plot, kind) for plot in one_scale(plots) for kind in kinds}
        return drawn | {f"{name}.{kind}": picture(kind) for name, picture in self.pictures.items() for kind in kinds}


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper, or one of ours."""

    name: str
    source: str  # the paper's table or figure, or "ours"
    doc: str | None  # the question in the first line, then notes
    parts: Callable[[Setup], list[Part]]
    findings: Callable[[Results], Findings]
    measure: Callable[[Runner, Setup], Any] | None = None  # work other than an evaluation; its result is stored as JSON
    records: bool = True  # whether its parts are evaluated

    @property
    def question(self) -> str:
        return (self.doc or "").split("\n")[0]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper or of ours, and what the records say about it."""

    text: str
    outcome: Outcome
    figures: str  # the figures that the outcome rests on

    def json(self, source: str) -> dict[str, Any]:
        return {"claim": self.text, "source": source, "outcome": self.outcome, "said": self.figures}

    def __str__(self) -> str:
        return f"{SIGNS[self.outcome]} {self.outcome}: {self.text} — {self.figures}"


def decide(holds: bool, fails: bool) -> Outcome:
    """Return the outcome of two tests, of which at most one is significant."""
    return "holds" if holds else "does not hold" if fails else "not decided"


def judge(text: str, names: str, difference: Difference | None) -> Claim:
    """Judge the claim that a difference is above 0."""
    if difference is None:
        return Claim(text, "not asked", "no records of both")
    outcome = decide(difference.p <= ALPHA and difference.value > 0, difference.p <= ALPHA and difference.value < 0)
    figures = f"{points(difference)} ({chance(difference.p)})"
    return Claim(text, outcome, f"{names}: {figures}" if names else figures)


def beyond(estimate: Estimate, level: float) -> Outcome:
    """Judge the claim that an estimate is above a level, by its own standard error."""
    if estimate.value is None or estimate.error is None:
        return "not decided"
    lead, interval = estimate.value - level, INTERVAL * estimate.error
    return decide(lead > interval, lead < -interval)


def sides(difference: Difference, bound: float) -> tuple[float, float]:
    """Return the one-sided p of a difference above a bound, and of one below it."""
    return exceeds(difference, bound), exceeds(replace(difference, value=-difference.value), -bound)


def paired(before: Mapping[str, float], after: Mapping[str, float]) -> Difference | None:
    """Return `after` minus `before` on the problems that both have."""
    return mean_difference([compare(before, after)])


def above(results: Results, text: str, after: str, before: str, benchmarks: Names = None) -> Claim:
    """Judge the claim that one method is better than a second one on the mean over benchmarks."""
    names = f"{results.label(after)} minus {results.label(before)}"
    return judge(text, names, results.difference(after, before, benchmarks))


def all_hold(text: str, claims: Iterable[Claim]) -> Claim:
    """Judge the claim that all of these hold, leaving out those without records."""
    known = [claim for claim in claims if claim.outcome != "not asked"]
    if not known:
        return Claim(text, "not asked", "no records")
    outcomes = {claim.outcome for claim in known}
    figures = "; ".join(": ".join(filter(None, (claim.text, claim.figures))) for claim in known)
    return Claim(text, decide(outcomes == {"holds"}, "does not hold" in outcomes), figures)


def above_by_seed(results: Results, text: str, after: str, before: str, benchmarks: Names = None) -> Claim:
    """Judge as `above`, but let the claim hold only if the difference is above 0 under every seed of `after`."""
    claim = above(results, text, after, before, benchmarks)
    series = (results.series(benchmark, after) for benchmark in results.benchmarks)
    seeds = {record.seed for each in series if each for records in each.records.values() for record in records}
    under = [results.by_seed[seed].difference(after, before, benchmarks) for seed in sorted(seeds)]
    values = [difference.value for difference in under if difference]
    if len(values) < 2 or claim.outcome == "not asked":
        return claim
    outcome = "not decided" if claim.outcome == "holds" and min(values) <= 0 else claim.outcome
    return replace(claim, outcome=outcome, figures=f"{claim.figures}; by seed {', '.join(map(signed, values))}")
