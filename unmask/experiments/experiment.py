"""An experiment: a question, the cells that answer it, and the claims and tables that follow from their records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from unmask.experiments.methods import Part
from unmask.experiments.results import Results
from unmask.experiments.setup import Setup
from unmask.report.plots import Plot, draw, one_scale
from unmask.report.statistics import Difference, exceeds, mcnemar
from unmask.report.tables import Table, signed

if TYPE_CHECKING:
    from unmask.experiments.run import Runner

Outcome = Literal["holds", "does not hold", "not decided", "not asked"]
SIGNS: dict[Outcome, str] = {"holds": "✓", "does not hold": "✗", "not decided": "?", "not asked": "–"}
ALPHA = 0.05  # two-sided


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


def judge(text: str, names: str, difference: Difference | None, missing: str = "no records of both") -> Claim:
    """Judge the claim that a difference is above 0."""
    if difference is None:
        return Claim(text, "not asked", missing)
    decided = difference.p <= ALPHA and difference.value != 0
    outcome = "not decided" if not decided else "holds" if difference.value > 0 else "does not hold"
    return Claim(text, outcome, ": ".join(filter(None, (names, describe(difference)))))


def at_most_below(text: str, names: str, difference: Difference, margin: float) -> Claim:
    """Judge the claim that a difference is above minus the margin, by one-sided tests.

    It holds if the difference is significantly above that bound, and does not hold if it is significantly below it.
    """
    higher, lower = exceeds(difference, -margin), exceeds(replace(difference, value=-difference.value), margin)
    outcome = "holds" if higher <= ALPHA else "does not hold" if lower <= ALPHA else "not decided"
    return Claim(text, outcome, f"{names}: {points(difference)} ({chance(min(higher, lower))}, one-sided)")


def by_sign(text: str, within: int, beyond: int, figures: str) -> Claim:
    """Judge the claim that most problems are within a bound, by the exact sign test."""
    p = mcnemar(within, beyond)
    outcome = "not decided" if p > ALPHA else "holds" if within > beyond else "does not hold"
    return Claim(text, outcome, f"{figures}; {within} of {within + beyond} problems within it ({chance(p)})")


def above(results: Results, text: str, after: str, before: str, benchmarks: Sequence[str] | None = None) -> Claim:
    """Judge the claim that one method is better than a second one on the mean over benchmarks."""
    names = f"{results.label(after)} minus {results.label(before)}"
    return judge(text, names, results.difference(after, before, benchmarks))


def all_hold(text: str, claims: Iterable[Claim]) -> Claim:
    """Judge the claim that all of these hold, leaving out those without records."""
    known = [claim for claim in claims if claim.outcome != "not asked"]
    if not known:
        return Claim(text, "not asked", "no records")
    outcomes = {claim.outcome for claim in known}
    order: tuple[Outcome, ...] = ("does not hold", "not decided", "holds")
    figures = "; ".join(": ".join(filter(None, (claim.text, claim.figures))) for claim in known)
    return Claim(text, next(outcome for outcome in order if outcome in outcomes), figures)


def describe(difference: Difference) -> str:
    return f"{points(difference)} ({chance(difference.p)})"


def points(difference: Difference) -> str:
    return signed(difference.value) + ("" if difference.error is None else f" ± {100 * difference.error:.1f}")


def chance(p: float) -> str:
    """Format a p-value; digits below a millionth would be noise."""
    if p < 1e-6:
        return "p < 1e-06"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.0e}"


def above_by_seed(
    results: Results, text: str, after: str, before: str, benchmarks: Sequence[str] | None = None
) -> Claim:
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
