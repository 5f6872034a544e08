"""Is the right answer among the final beams, and at which search was it lost?"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from unmask.report.gather import grouped
from unmask.report.statistics import Estimate, estimate
from unmask.report.tables import Table
from unmask.runs.candidates import Candidate


def survival_table(candidates: Iterable[Candidate], title: str) -> Table:
    """By search, the share of problems with a right candidate, with a right one kept, and that lose their last here.

    A candidate is right if its completion is. What is kept at the last search are the final beams; the answer is the
    best of them.
    """
    body = []
    for block, drawn in sorted(grouped(candidates, attrgetter("block")).items()):
        problems = [_of_problem(each) for each in grouped(drawn, attrgetter("problem")).values()]
        drew, kept, lost, chosen = (_share(flags) for flags in zip(*problems, strict=True))
        body.append((str(block + 1), drew, kept, lost, chosen, str(len(problems))))
    head = ("block", "among the candidates", "among the kept", "lost here", "the best is right", "n")
    return Table.of("accuracy", title, head, body, rank=False)


def _of_problem(candidates: list[Candidate]) -> tuple[bool, bool, bool, bool]:
    last = max(candidate.step for candidate in candidates)
    final = [candidate for candidate in candidates if candidate.step == last]  # of several searches in a block
    kept = [candidate for candidate in final if candidate.kept]
    drew, held = any(each.right for each in final), any(each.right for each in kept)
    best = max(kept, key=lambda each: each.scores["block"] if each.scores["block"] is not None else float("-inf"))
    return drew, held, drew and not held, best.right


def _share(flags: Iterable[bool]) -> Estimate:
    return estimate([float(flag) for flag in flags])
