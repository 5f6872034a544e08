"""What an experiment runs with, model by model: the one place that holds tasks, lengths, temperatures and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unmask.errors import UnmaskError, nearest
from unmask.tasks import Metric

BENCHMARKS = ("GSM8K", "MATH500", "Countdown", "HumanEval", "MBPP", "Sudoku")
PROBLEMS = {"GSM8K": 1319, "MATH500": 500, "Countdown": 256, "HumanEval": 164, "MBPP": 500, "Sudoku": 256}


@dataclass(frozen=True)
class Setting:
    model: str  # a name, folder or hub id
    tasks: Mapping[str, str]  # by the paper's benchmark, the task that stands for it
    axis: tuple[int, ...]  # lengths, where the length is what is varied
    tabled: tuple[int, ...] | None  # lengths of tables; None: each benchmark's own one
    own: Mapping[str, int]  # by benchmark, the one length it is asked at; the paper's where it is missing
    temperature: float  # τ of the search
    vote_temperature: float  # τ of the samples that vote
    passes: tuple[str, ...]  # benchmarks of pass@k
    benchmarks: tuple[str, ...] = BENCHMARKS  # that are asked at all
    methods: tuple[str, ...] = ()  # rows that are asked at all; every one without it
    beams: int = 4  # K
    most_beams: int = 8  # where an experiment has a K of its own
    votes: int = 5  # samples that cost about what a search does
    ar_votes: int = 3  # of left to right, each of which costs twice as much
    seeds: tuple[int, ...] = (0, 1, 2)  # of random order, whose figures are means over them
    samples: int = 256  # draws of pass@k
    limit: int | None = None  # problems a benchmark; all of them without it
    few: int | None = None  # problems where every one is drawn many times, or searched at every position
    repeats: int = 5  # of a timing
    metric: Metric = "ours"
    grid: bool = False  # also search K and τ, chosen on other problems than the tested ones
    tuning: Mapping[str, str] = field(default_factory=dict)  # by benchmark, the task they are chosen on
    prompt: int = 160  # positions before the answer, for estimates of time alone
    sizes: Mapping[str, int] = field(default_factory=lambda: PROBLEMS)  # problems there are, by benchmark

    def table(self, benchmark: str) -> tuple[int, ...]:
        return self.tabled or (self.own[benchmark],)

    def at(self, benchmark: str, published: int) -> int:
        """The length of an experiment that the paper made at one."""
        return self.own.get(benchmark, published)

    def chosen(self, *benchmarks: str) -> list[str]:
        """Those that are asked, one for each task: two benchmarks may share the task that stands for them."""
        by_task: dict[str, str] = {}
        for one in benchmarks:
            if one in self.benchmarks and one in self.tasks:
                by_task.setdefault(self.tasks[one], one)
        return list(by_task.values())


# τ of `tiny` is chosen on validation problems (docs/tiny.md); its lengths are those its answers fit into.
TINY = Setting(
    model="tiny",
    tasks={
        "GSM8K": "mini-gsm",
        "MATH500": "mini-math",
        "Countdown": "countdown",
        "HumanEval": "mini-code",
        "MBPP": "mini-code",
        "Sudoku": "sudoku",
    },
    axis=(32, 64, 96, 128),
    tabled=None,
    own=dict.fromkeys(BENCHMARKS, 64),
    temperature=1.0,
    vote_temperature=0.7,
    passes=("Countdown",),
    samples=64,
    limit=1000,
    few=256,
    prompt=60,
    sizes={},
    tuning={
        "GSM8K": "mini-gsm(split=validation)",
        "MATH500": "mini-math(split=validation)",
        "Countdown": "countdown(split=validation)",
        "HumanEval": "mini-code(split=validation)",
    },
)

PUBLISHED = Setting(
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
    metric="d1",
    tuning={"GSM8K": "gsm8k(split=train)"},  # the others have no problems but the tested ones
)


def setting_for(
    model: str,
    *,
    quick: bool = False,
    limit: int | None = None,
    lengths: Sequence[int] = (),
    benchmarks: Sequence[str] = (),
    samples: int | None = None,
    methods: Sequence[str] = (),
    grid: bool = False,
) -> Setting:
    """The embedded model has its own; every other model gets the paper's."""
    made = replace(TINY, grid=grid) if model == TINY.model else replace(PUBLISHED, model=model, grid=grid)
    if quick:
        made = _small(made)
    if limit is not None:
        made = replace(made, limit=limit, few=limit)
    if lengths:
        own = dict.fromkeys(BENCHMARKS, lengths[0])
        made = replace(made, axis=tuple(lengths), tabled=tuple(lengths), own=own)
    if samples is not None:
        made = replace(made, samples=samples)
    for wanted in benchmarks:
        if wanted not in BENCHMARKS:
            raise UnmaskError(f"the paper has no benchmark {wanted!r}: {nearest(wanted, BENCHMARKS)}")
    return replace(made, benchmarks=tuple(benchmarks) or made.benchmarks, methods=tuple(methods))


def _small(made: Setting) -> Setting:
    """Enough to see that everything works, too little to say anything."""
    own = dict.fromkeys(BENCHMARKS, 32) | {"Sudoku": 48}
    small = replace(made, axis=(32,), tabled=None, own=own, limit=4, few=4, samples=16, repeats=2, seeds=(0,))
    return replace(small, passes=("Countdown",), most_beams=4)
