"""The rows of the paper's tables as decoders, and the parts of an experiment, each a rectangle of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.core import decoder
from unmask.decoders import Random
from unmask.errors import UnmaskError, nearest
from unmask.experiments.setup import Setup
from unmask.report.gather import grouped

TEN = (  # the rows of Table 1, in its order
    *("low-confidence", "low-confidence-vote", "random", "random-vote", "ar", "ar-vote", "ar-beam"),
    *("ots-all-blocks", "ots-future-masked", "ots"),
)
AVERAGED, DETERMINISTIC = ("random", "ar"), ("low-confidence",)
APART = (*AVERAGED, *DETERMINISTIC, "ar-beam")  # rows with seeds or problems of their own
ABLATIONS = ("ots-all-blocks", "ots-future-masked")


@dataclass(frozen=True)
class Method:
    """A row of the paper's tables."""

    name: str  # in kebab case, as users type it
    label: str  # as tables show it
    spec: str  # the decoder


@dataclass(frozen=True)
class Part:
    """A rectangle of cells, which is one run in its own folder."""

    name: str
    benchmark: str  # the paper's name of it
    task: str  # the task that is run for it
    methods: tuple[Method, ...]
    lengths: tuple[int, ...]
    limit: int | None  # number of problems; None: all
    seeds: tuple[int, ...] = (0,)
    samples: int = 1
    cache: str = "none"
    early_end: bool = False

    @classmethod
    def of(
        cls, setup: Setup, benchmark: str, kind: str, methods: Iterable[Method], lengths: Iterable[int], **more: Any
    ) -> Part:
        """Return a part with the setup's task for a benchmark; `kind` distinguishes several parts of a benchmark."""
        name = "-".join(filter(None, (benchmark.lower(), kind)))
        return cls(name, benchmark, setup.tasks[benchmark], tuple(methods), tuple(lengths), **more)

    @property
    def approximate(self) -> str:
        """Describe the approximation; the text is empty if the part is exact."""
        return " + ".join([f"cache {self.cache}"] * (self.cache != "none") + ["early end"] * self.early_end)


def ten(setup: Setup) -> list[Method]:
    """Return the methods of Table 1. Low-confidence and random take the likeliest token; AR and votes draw."""
    search = f"beams={setup.beams}, temperature={setup.temperature}"
    drawn, n = f"temperature={setup.vote_temperature}", setup.votes
    methods = {
        "low-confidence": ("Low-confidence", "low-confidence"),
        "low-confidence-vote": ("Low-confidence + vote", f"vote(n={n}, inner=low-confidence({drawn}))"),
        "random": ("Random", "random"),
        "random-vote": ("Random + vote", f"vote(n={n}, inner=random({drawn}))"),
        "ar": ("AR", f"left-to-right(block=1, {drawn})"),
        "ar-vote": ("AR + vote", f"vote(n={setup.ar_votes}, inner=left-to-right(block=1, {drawn}))"),
        "ar-beam": ("AR + beam search", f"ots({search}, block=1)"),
        "ots-all-blocks": ("OTS, all blocks", f"ots({search}, likelihood=all-blocks)"),
        "ots-future-masked": ("OTS, future masked", f"ots({search}, likelihood=future-masked)"),
        "ots": ("Order-Token Search", f"ots({search})"),
    }
    return [Method(name, label, spec) for name, (label, spec) in methods.items()]


def pick(setup: Setup, *names: str) -> list[Method]:
    by_name = {method.name: method for method in ten(setup)}
    return [by_name[name] for name in names]


def table_parts(
    setup: Setup, benchmarks: Sequence[str], methods: Sequence[Method], lengths: tuple[int, ...] = ()
) -> list[Part]:
    """Return the parts of a table. Random and AR are averaged over seeds; AR with beam search gets few problems."""
    parts = []
    kinds = grouped(selected(setup, methods), lambda method: method.name if method.name in APART else "")
    for benchmark in setup.chosen(*benchmarks):
        for kind, members in kinds.items():
            limit = setup.few if kind == "ar-beam" and setup.few is not None else setup.limit
            seeds = setup.seeds if kind in AVERAGED else (0,) if kind in DETERMINISTIC else setup.search_seeds
            at = lengths or setup.table(benchmark)
            parts.append(Part.of(setup, benchmark, kind, members, at, limit=limit, seeds=seeds))
    return parts


def single_parts(
    setup: Setup,
    benchmarks: Iterable[str],
    published: int,
    methods: Callable[[int], Iterable[Method]],
    samples: int = 1,
) -> list[Part]:
    """Return a part per benchmark at one length, the paper's unless the setup has its own, with few problems.

    With several seeds, methods that draw nothing are in a part of their own, which runs once.
    """
    parts, kind = [], "drawn" if samples > 1 else ""
    seeds = (0,) if samples > 1 else setup.search_seeds
    for benchmark in setup.chosen(*benchmarks):
        length = setup.at(benchmark, published)
        several = grouped(methods(length), lambda method: "fixed" if len(seeds) > 1 and not draws(method) else kind)
        for name, members in several.items():
            under = (0,) if name == "fixed" else seeds
            parts.append(
                Part.of(setup, benchmark, name, members, [length], limit=setup.few, samples=samples, seeds=under)
            )
    return parts


def draws(method: Method) -> bool:
    """Return whether the answers of a method depend on the seed."""
    chosen = decoder.make(method.spec)
    inner = getattr(chosen, "inner", chosen)
    return getattr(inner, "temperature", 0.0) > 0 or isinstance(inner, Random)


def selected(setup: Setup, methods: Iterable[Method]) -> list[Method]:
    """Return the methods of an experiment that the user chose."""
    known = {method.name: method for method in methods}
    kept = [method for name, method in known.items() if not setup.methods or name in setup.methods]
    if not kept:
        wrong = setup.methods[0]
        raise UnmaskError(f"unknown method {wrong!r}: {nearest(wrong, known)}")
    return kept
