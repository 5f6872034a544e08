"""Whether a claim that holds over problems also points the same way under every seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from unmask.experiments.evidence import Evidence
from unmask.experiments.experiment import Claim, above
from unmask.report.gather import mean_by_problem, result_of
from unmask.report.tables import signed


def above_by_seed(
    evidence: Evidence, text: str, after: str, before: str, benchmarks: Sequence[str] | None = None
) -> Claim:
    """As `above`, but it holds only if no seed says otherwise; the difference under each seed stands in its figures."""
    claim = above(evidence, text, after, before, benchmarks)
    chosen = evidence.benchmarks if benchmarks is None else benchmarks
    values = [
        value for seed in seeds(evidence, after) if (value := _lead(evidence, after, before, chosen, seed)) is not None
    ]
    if len(values) < 2 or claim.outcome == "not asked":
        return claim
    outcome = "not decided" if claim.outcome == "holds" and min(values) <= 0 else claim.outcome
    return replace(claim, outcome=outcome, figures=f"{claim.figures}; by seed {', '.join(map(signed, values))}")


def seeds(evidence: Evidence, method: str) -> list[int]:
    series = (evidence.series(benchmark, method) for benchmark in evidence.benchmarks)
    return sorted({record.seed for each in series if each for drawn in each.records.values() for record in drawn})


def _lead(evidence: Evidence, after: str, before: str, benchmarks: Sequence[str], seed: int) -> float | None:
    """The mean over benchmarks of the difference on the problems that both have; None if a benchmark has none."""
    leads = []
    for benchmark in benchmarks:
        ours, theirs = (_right(evidence, benchmark, method, seed) for method in (after, before))
        common = ours.keys() & theirs.keys()
        if not common:
            return None
        leads.append(fmean(ours[problem] - theirs[problem] for problem in common))
    return fmean(leads) if leads else None


def _right(evidence: Evidence, benchmark: str, method: str, seed: int) -> dict[str, float]:
    """By problem, over all lengths, under a seed; a method that was not run under it has all its seeds together."""
    series, parts = evidence.series(benchmark, method), []
    for records in series.records.values() if series else ():
        chosen = [record for record in records if record.seed == seed]
        parts.append(result_of(chosen or records).right)
    return mean_by_problem(parts)
