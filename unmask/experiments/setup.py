"""The setup of experiments for a model: tasks, lengths, temperatures and numbers of problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unmask.errors import UnmaskError, check_at_least, nearest
from unmask.models.load import check_name
from unmask.tasks import Metric

PROBLEMS = {"GSM8K": 1319, "MATH500": 500, "Countdown": 256, "HumanEval": 164, "MBPP": 500, "Sudoku": 256}
BENCHMARKS = tuple(PROBLEMS)
QUICK, QUICK_BENCHMARKS = 1, ("Countdown", "MATH500", "Sudoku")  # problems per cell of a quick run, and of what


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
    setup = replace(TINY, grid=grid) if model == TINY.model else replace(PUBLISHED, model=model, grid=grid)
    if beams is not None:
        setup = replace(setup, beams=beams, fixed_beams=beams, **_matched(beams))
    if temperature is not None:
        setup = replace(setup, temperature=temperature, vote_temperature=temperature)
    if seeds is not None:
        setup = replace(setup, seeds=tuple(range(seeds)), search_seeds=tuple(range(seeds)))
    if quick:
        setup = _small(setup)
    if limit is not None:
        setup = replace(setup, limit=limit, few=limit)
    if lengths:
        own = dict.fromkeys(BENCHMARKS, lengths[0])
        setup = replace(setup, axis=tuple(lengths), tabled=tuple(lengths), own=own)
    if samples is not None:
        setup = replace(setup, samples=samples)
    for wanted in benchmarks or ():
        if wanted not in BENCHMARKS:
            raise UnmaskError(f"unknown benchmark {wanted!r}: {nearest(wanted, BENCHMARKS)}")
    if benchmarks:
        setup = replace(setup, benchmarks=tuple(benchmarks), widest=None)
    return replace(setup, methods=tuple(methods or ()))


def _matched(beams: int) -> dict[str, int]:
    """Return the votes that cost about as much as a search, S·K + B·K² for S = 16·B steps; paths of AR cost twice."""
    paths = beams + beams**2 / 16
    return {"votes": max(1, int(paths + 0.5)), "ar_votes": max(1, int(paths / 2 + 0.5))}


def _small(setup: Setup) -> Setup:
    """Return a setup that is large enough to see that everything works, at a length where `tiny` can answer."""
    length = 48 if setup.own else 32
    own, few = dict.fromkeys(BENCHMARKS, length), QUICK
    small = replace(setup, axis=(length,), tabled=None, own=own, limit=few, few=few, samples=8, repeats=2, seeds=(0,))
    return replace(small, passes=("Countdown",), most_beams=4, benchmarks=QUICK_BENCHMARKS, widest=1)
