"""The rows of the paper's tables as decoders, and the rectangles of cells they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unmask.errors import UnmaskError, nearest
from unmask.experiments.cells import Method, Part
from unmask.experiments.setting import Setting

ABLATIONS = ("ots-all-blocks", "ots-future-masked")


def ten(setting: Setting) -> list[Method]:
    """Those of Table 1. Single paths take the likeliest token; samples that vote are drawn, or they would all agree."""
    vote, search = setting.vote_temperature, f"beams={setting.beams}, temperature={setting.temperature}"
    drawn, few = f"temperature={vote}", setting.ar_votes
    return [
        Method("low-confidence", "Low-confidence", "low-confidence"),
        Method(
            "low-confidence-vote", "Low-confidence + vote", f"vote(n={setting.votes}, inner=low-confidence({drawn}))"
        ),
        Method("random", "Random", "random"),
        Method("random-vote", "Random + vote", f"vote(n={setting.votes}, inner=random({drawn}))"),
        Method("ar", "AR", "left-to-right(block=1)"),
        Method("ar-vote", "AR + vote", f"vote(n={few}, inner=left-to-right(block=1, {drawn}))"),
        Method("ar-beam", "AR + beam search", f"ots({search}, block=1)"),
        Method("ots-all-blocks", "OTS, all blocks", f"ots({search}, likelihood=all-blocks)"),
        Method("ots-future-masked", "OTS, future masked", f"ots({search}, likelihood=future-masked)"),
        Method("ots", "Order-Token Search", f"ots({search})"),
    ]


def pick(setting: Setting, *names: str) -> list[Method]:
    by_name = {method.name: method for method in ten(setting)}
    return [by_name[name] for name in names]


def tabled(
    setting: Setting, benchmarks: Sequence[str], methods: Sequence[Method], lengths: tuple[int, ...] = ()
) -> list[Part]:
    """Random order is averaged over seeds; a search at every position is asked of fewer problems where that is set."""
    parts = []
    for benchmark in setting.chosen(*benchmarks):
        for kind, some in _kinds(asked(setting, methods)).items():
            parts.append(
                Part(
                    name="-".join([benchmark.lower(), *([kind] if kind else [])]),
                    benchmark=benchmark,
                    task=setting.tasks[benchmark],
                    methods=tuple(some),
                    lengths=lengths or setting.table(benchmark),
                    limit=setting.few if kind == "ar-beam" and setting.few is not None else setting.limit,
                    seeds=setting.seeds if kind == "random" else (0,),
                )
            )
    return parts


def alone(setting: Setting, benchmark: str, methods: Iterable[Method], length: int, samples: int = 1) -> Part:
    """One benchmark at one length, asked of the smaller number of problems."""
    return Part(
        name=benchmark.lower() + ("-drawn" if samples > 1 else ""),
        benchmark=benchmark,
        task=setting.tasks[benchmark],
        methods=tuple(methods),
        lengths=(length,),
        limit=setting.few,
        samples=samples,
    )


def asked(setting: Setting, methods: Iterable[Method]) -> list[Method]:
    """Those of an experiment that the user wants."""
    found = list(methods)
    if not setting.methods:
        return found
    kept = [method for method in found if method.name in setting.methods]
    if not kept:
        wrong = setting.methods[0]
        raise UnmaskError(f"no method here is called {wrong!r}: {nearest(wrong, [one.name for one in found])}")
    return kept


def _kinds(methods: Iterable[Method]) -> dict[str, list[Method]]:
    kinds: dict[str, list[Method]] = {}
    for method in methods:
        kinds.setdefault(method.name if method.name in ("random", "ar-beam") else "", []).append(method)
    return kinds
