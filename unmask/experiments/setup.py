"""What experiments run: the setup for a model, the rows of the paper's tables as decoders, and rectangles of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unmask.core import decoder
from unmask.decoders import Random
from unmask.errors import check_at_least, check_known
from unmask.models.load import check_name
from unmask.report.gather import grouped
from unmask.tasks import Metric

PROBLEMS = {"GSM8K": 1319, "MATH500": 500, "Countdown": 256, "HumanEval": 164, "MBPP": 500, "Sudoku": 256}
BENCHMARKS = tuple(PROBLEMS)
QUICK, QUICK_BENCHMARKS = 1, ("Countdown", "MATH500", "Sudoku")  # problems per cell of a quick run, and of what


# by name, the label and the decoder of the rows of Table 1; low-confidence and random take the likeliest token
METHODS = {
    "low-confidence": ("Low-confidence", "low-confidence"),
    "low-confidence-vote": ("Low-confidence + vote", "vote(n={votes}, inner=low-confidence({drawn}))"),
    "random": ("Random", "random"),
    "random-vote": ("Random + vote", "vote(n={votes}, inner=random({drawn}))"),
    "ar": ("AR", "left-to-right(block=1, {drawn})"),
    "ar-vote": ("AR + vote", "vote(n={ar_votes}, inner=left-to-right(block=1, {drawn}))"),
    "ar-beam": ("AR + beam search", "ots({search}, block=1)"),
    "ots-all-blocks": ("OTS, all blocks", "ots({search}, likelihood=all-blocks)"),
    "ots-future-masked": ("OTS, future masked", "ots({search}, likelihood=future-masked)"),
    "ots": ("Order-Token Search", "ots({search})"),
}
TEN = tuple(METHODS)
AVERAGED, DETERMINISTIC = ("random", "ar"), ("low-confidence",)
APART = (*AVERAGED, *DETERMINISTIC, "ar-beam")  # rows with seeds or problems of their own
ABLATIONS = ("ots-all-blocks", "ots-future-masked")


@dataclass(frozen=True)
class Setup:
    """Everything that experiments vary by model or by a user's option."""

    model: str  # a name, a folder or a hub id
    tasks: Mapping[str, str]  # by the paper's benchmark, the task that is run for it
    axis: tuple[int, ...]  # lengths, where the length is varied
    tabled: tuple[int, ...] | None  # lengths of tables; None: each benchmark's own length
    own: Mapping[str, int]  # by benchmark, its own length if it is not the paper's
    temperature: float  # τ of the search
    vote_temperature: float  # τ of the samples of a vote
    passes: tuple[str, ...]  # benchmarks for pass@k
    benchmarks: tuple[str, ...] = BENCHMARKS  # benchmarks that are run
    methods: tuple[str, ...] = ()  # rows of tables that are run; empty: all
    beams: int = 4  # K
    fixed_beams: int = 5  # K where the paper has 5: Tables 2 and S2
    most_beams: int = 16  # where an experiment varies K
    votes: int = 5  # samples that cost about as much as a search
    ar_votes: int = 3  # left-to-right samples, which cost twice as much
    seeds: tuple[int, ...] = (0, 1, 2)  # over which random order and AR are averaged
    search_seeds: tuple[int, ...] = (0,)  # of the other methods that draw
    samples: int = 256  # draws for pass@k
    limit: int | None = None  # problems per benchmark; None: all
    few: int | None = None  # problems where each takes many draws or a search per position
    repeats: int = 32  # problems that are timed, and the most seeds of the case study
    widest: int | None = None  # number of benchmarks where many methods are compared; None: all
    metric: Metric = "ours"
    grid: bool = False  # also choose K and τ, on other problems than the tested ones
    tuning: Mapping[str, str] = field(default_factory=dict)  # by benchmark, the task on which they are chosen
    prompt: int = 160  # positions before the answer, for estimates of time
    sizes: Mapping[str, int] = field(default_factory=lambda: PROBLEMS)  # by benchmark, the number of its problems

    def table(self, benchmark: str) -> tuple[int, ...]:
        return self.tabled or (self.own[benchmark],)

    def at(self, benchmark: str, published: int) -> int:
        """Return the length of an experiment that the paper ran at the published length."""
        return self.own.get(benchmark, published)

    def chosen_for_many(self, *benchmarks: str) -> list[str]:
        """Return the benchmarks on which many methods are compared."""
        return self.chosen(*benchmarks)[: self.widest]

    def chosen(self, *benchmarks: str) -> list[str]:
        """Return the benchmarks that are run, one per task, since two benchmarks may share a task."""
        by_task: dict[str, str] = {}
        for benchmark in benchmarks:
            if benchmark in self.benchmarks and benchmark in self.tasks:
                by_task.setdefault(self.tasks[benchmark], benchmark)
        return list(by_task.values())


GENERATED = {"GSM8K": "mini-gsm", "MATH500": "mini-math", "Countdown": "countdown", "HumanEval": "mini-code"}

# τ of `tiny` was chosen on validation problems (docs/models.md); its answers fit into these lengths.
TINY = Setup(
    model="tiny",
    tasks=GENERATED | {"MBPP": "mini-code", "Sudoku": "sudoku"},
    axis=(32, 64, 96, 128),
    tabled=None,
    own=dict.fromkeys(BENCHMARKS, 64),
    temperature=1.0,
    vote_temperature=0.7,
    passes=("GSM8K", "MATH500", "HumanEval", "Countdown"),  # the paper's three, and one of ours
    samples=64,
    limit=1000,
    few=256,
    prompt=60,
    sizes={},
    tuning={benchmark: f"{task}(split=validation)" for benchmark, task in GENERATED.items()},
)

PUBLISHED = Setup(
    model="GSAI-ML/LLaDA-8B-Instruct",
    tasks={
        "GSM8K": "gsm8k",
        "MATH500": "math500",
        "Countdown": "countdown-d1",
        "HumanEval": "humaneval",
        "MBPP": "mbpp",
        "Sudoku": "sudoku-d1(subset=d1)",
    },
    axis=(64, 128, 256, 512),
    tabled=(64, 128, 256, 512),
    own={},
    temperature=0.4,
    vote_temperature=0.4,
    passes=("GSM8K", "MATH500", "HumanEval", "MBPP"),
    beams=5,
    votes=7,
    repeats=PROBLEMS["Countdown"],
    metric="d1",
    tuning={
        "GSM8K": "gsm8k(split=train)",
        "MATH500": "mini-math(split=train)",
        "Countdown": "countdown-d1(split=train)",
        "HumanEval": "mbpp(subset=train)",
    },
)


def setup_for(
    model: str,
    *,
    quick: bool = False,
    limit: int | None = None,
    lengths: Sequence[int] | None = None,
    benchmarks: Sequence[str] | None = None,
    samples: int | None = None,
    methods: Sequence[str] | None = None,
    grid: bool = False,
    beams: int | None = None,
    temperature: float | None = None,
    seeds: int | None = None,
) -> Setup:
    """Return the setup of the embedded model, or the paper's for every other model, with the user's options."""
    check_name(model)
    if lengths:
        check_at_least(1, length=min(lengths))
    for wanted in benchmarks or ():
        check_known(BENCHMARKS, benchmark=wanted)
    setup = TINY if model == TINY.model else replace(PUBLISHED, model=model)
    changes: dict[str, Any] = {"grid": grid, "methods": tuple(methods or ())}
    if beams is not None:
        changes |= {"beams": beams, "fixed_beams": beams, **_matched(beams)}
    if temperature is not None:
        changes |= {"temperature": temperature, "vote_temperature": temperature}
    if seeds is not None:
        changes |= {"seeds": tuple(range(seeds)), "search_seeds": tuple(range(seeds))}
    if quick:
        changes |= _small(48 if setup.own else 32)
    if limit is not None:
        changes |= {"limit": limit, "few": limit}
    if lengths:
        own = dict.fromkeys(BENCHMARKS, lengths[0])
        changes |= {"axis": tuple(lengths), "tabled": tuple(lengths), "own": own}
    if samples is not None:
        changes["samples"] = samples
    if benchmarks:
        changes |= {"benchmarks": tuple(benchmarks), "widest": None}
    return replace(setup, **changes)


def _matched(beams: int) -> dict[str, int]:
    """Return the votes that cost about as much as a search, S·K + B·K² for S = 16·B steps; paths of AR cost twice."""
    paths = beams + beams**2 / 16
    return {"votes": max(1, int(paths + 0.5)), "ar_votes": max(1, int(paths / 2 + 0.5))}


def _small(length: int) -> dict[str, Any]:
    """Return changes to a setup that is just large enough to see that everything works."""
    lengths = {"axis": (length,), "tabled": None, "own": dict.fromkeys(BENCHMARKS, length)}
    counts = {"limit": QUICK, "few": QUICK, "samples": 8, "repeats": 2, "seeds": (0,), "most_beams": 4, "widest": 1}
    return {**lengths, **counts, "passes": ("Countdown",), "benchmarks": QUICK_BENCHMARKS}


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
    check: str = ""  # check of finished texts; empty: none

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


def pick(setup: Setup, *names: str) -> list[Method]:
    """Return some of the methods of Table 1."""
    search, drawn = f"beams={setup.beams}, temperature={setup.temperature}", f"temperature={setup.vote_temperature}"
    values = {"search": search, "drawn": drawn, "votes": setup.votes, "ar_votes": setup.ar_votes}
    return [Method(name, METHODS[name][0], METHODS[name][1].format(**values)) for name in names]


def table_parts(setup: Setup, benchmarks: Sequence[str], methods: Sequence[Method]) -> list[Part]:
    """Return the parts of a table. Random and AR are averaged over seeds; AR with beam search gets few problems."""
    parts = []
    kinds = grouped(selected(setup, methods), lambda method: method.name if method.name in APART else "")
    for benchmark in setup.chosen(*benchmarks):
        for kind, members in kinds.items():
            limit = setup.few if kind == "ar-beam" and setup.few is not None else setup.limit
            seeds = setup.seeds if kind in AVERAGED else (0,) if kind in DETERMINISTIC else setup.search_seeds
            parts.append(Part.of(setup, benchmark, kind, members, setup.table(benchmark), limit=limit, seeds=seeds))
    return parts


def single_parts(
    setup: Setup, benchmarks: Iterable[str], published: int, methods: Callable[[int], Iterable[Method]], **more: Any
) -> list[Part]:
    """Return a part per benchmark at one length, the paper's unless the setup has its own, with few problems.

    With several seeds, methods that draw nothing are in a part of their own, which runs once. `more` replaces fields.
    """
    parts, several = [], len(setup.search_seeds) > 1 and "seeds" not in more
    for benchmark in setup.chosen(*benchmarks):
        length = setup.at(benchmark, published)
        kinds = grouped(selected(setup, methods(length)), lambda each: "fixed" if several and not draws(each) else "")
        for kind, members in kinds.items():
            fields = {"limit": setup.few, "seeds": (0,) if kind else setup.search_seeds, **more}
            parts.append(Part.of(setup, benchmark, kind, members, [length], **fields))
    return parts


def draws(method: Method) -> bool:
    """Return whether the answers of a method depend on the seed."""
    chosen = decoder.make(method.spec)
    while hasattr(chosen, "inner"):
        chosen = chosen.inner  # type: ignore[attr-defined]
    return getattr(chosen, "temperature", 0.0) > 0 or isinstance(chosen, Random)


def selected(setup: Setup, methods: Iterable[Method]) -> list[Method]:
    """Return the methods of an experiment that the user chose."""
    known = {method.name: method for method in methods}
    kept = [method for name, method in known.items() if not setup.methods or name in setup.methods]
    if not kept:
        check_known(known, method=setup.methods[0])
    return kept
