"""How long does a search take compared with a single path and with a vote of the same cost?

Problems are decoded one at a time, and all methods take turns on each, so that other load slows all of them alike. The
paper's vote drew one sample after the other; we also time it as one batch, which is how it would be used.
"""

from collections.abc import Callable
from functools import partial
from math import floor, log10
from statistics import fmean
from typing import Any

from unmask.core import decoder
from unmask.experiments.experiment import ALPHA, Claim, Experiment, Findings, decide
from unmask.experiments.results import Results
from unmask.experiments.run import Runner, describe_machine, seconds_of
from unmask.experiments.setup import Method, Part, Setup
from unmask.experiments.tables import chance, paper
from unmask.models import Model
from unmask.report.plots import Plot, Point
from unmask.report.statistics import estimate, mcnemar
from unmask.report.tables import MISSING, Table
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import EncodedPrompt

BENCHMARK = "Countdown"
BEAMS, VOTES = 4, 5
PATH, APART, TOGETHER, SEARCH = "path", "vote-apart", "vote-together", "ots"
CLAIMS = {  # by claim, the largest share of whose time the search may take
    "OTS takes at most 3 times as long as one path (paper: 2 to 3)": (3.0, PATH),
    "OTS takes at most 0.6 of a vote of 5 drawn one after the other": (0.6, APART),
    "OTS takes no longer than a vote of 5 drawn as one batch (ours)": (1.0, TOGETHER),
}
Times = dict[int, list[float]]  # by length, the seconds of each problem
Seconds = dict[str, Times]  # by method


def parts(setup: Setup) -> list[Part]:
    vote = f"vote(n={VOTES}, inner=low-confidence(temperature={setup.vote_temperature}))"
    search = f"ots(beams={BEAMS}, temperature={setup.temperature})"
    methods = [
        Method(PATH, "One path", "low-confidence"),
        Method(APART, f"Vote of {VOTES}, one after the other", vote),
        Method(TOGETHER, f"Vote of {VOTES}, as one batch", vote),
        Method(SEARCH, f"Order-Token Search, {BEAMS} beams", search),
    ]
    chosen = setup.chosen(BENCHMARK)
    return [Part.of(setup, benchmark, "", methods, setup.axis, limit=setup.repeats) for benchmark in chosen]


def measure(runner: Runner, setup: Setup) -> dict[str, Any]:
    """Return the seconds per problem of each method, by length; the first problem also serves as a warm-up."""
    (part,) = parts(setup)
    model = runner.placement.load(setup.model)
    prompts = runner.encoded_prompts(model, part, setup.repeats)
    seconds: dict[str, dict[str, list[float]]] = {method.name: {} for method in part.methods}
    for length in part.lengths:
        turns = {method.name: _turn(model, method, length) for method in part.methods}
        for number, prompt in enumerate([prompts[0], *prompts]):
            for name, turn in turns.items():
                spent = seconds_of(partial(turn, prompt))
                if number:
                    seconds[name].setdefault(str(length), []).append(spent)
    return {"seconds": seconds, **describe_machine(model, runner.placement)}


def _turn(model: Model, method: Method, length: int) -> Callable[[EncodedPrompt], object]:
    """Return a function that decodes one prompt and reads the texts, so that a GPU has finished by then."""
    chosen: Any = decoder.make(method.spec)
    paths = [chosen.inner] * VOTES if method.name == APART else [chosen]
    many = [Generation(model, Decoding(path.resolved(length), length, seed)) for seed, path in enumerate(paths)]
    return lambda prompt: [generation.outputs([prompt]) for generation in many]


def findings(results: Results) -> Findings:
    measured = results.measured["seconds"].items()
    seconds = {name: {int(length): times for length, times in each.items()} for name, each in measured}
    lines = tuple(
        (results.label(name), tuple(Point(float(length), estimate(times)) for length, times in by_length.items()))
        for name, by_length in seconds.items()
    )
    title = f"{results.setup.model} · {results.measured['machine']['name']}"
    axis = "seconds per problem  (mean ± standard error)"
    plot = Plot("wall-time", title, "length of the answer", lines, y=axis, zero=True, shares=False)
    claims = [_at_most(text, bound, seconds[SEARCH], seconds[before]) for text, (bound, before) in CLAIMS.items()]
    return Findings([_table(results, seconds)], claims, [plot])


def _table(results: Results, seconds: Seconds) -> Table:
    published, here = paper("wall-time"), results.measured["machine"]
    head = ("method", *(f"L={at}" for at in seconds[PATH]), *(f"paper: {at}" for at in published["lengths"]))
    body = []
    for name, by_length in seconds.items():
        beside = [f"{value:.2f}" for value in published[name]] if name in published else [MISSING] * 4
        body.append((results.label(name), *map(_spread, by_length.values()), *beside))
    count = len(next(iter(seconds[PATH].values())))
    note = f"Means over {count} problems, one at a time, methods in turn, ± standard error; {here['name']}, "
    note += f"torch {here['torch']}; threads: {here['threads']}."
    return Table.of("timing", f"{results.title(BENCHMARK)} · seconds per problem", head, body, [note])


def _spread(times: list[float]) -> str:
    error = estimate(times).error or 0.0
    digits = max(2, -floor(log10(error))) if error else 2
    return f"{fmean(times):.{digits}f} ± {error:.{digits}f}"


def _at_most(text: str, bound: float, search: Times, other: Times) -> Claim:
    """Judge by the sign test over the problems of all lengths, unless the means of two lengths disagree."""
    ratios = {at: fmean(times) / fmean(other[at]) for at, times in search.items()}
    pairs = [pair for at, times in search.items() for pair in zip(times, other[at], strict=True)]
    within = sum(mine <= bound * theirs for mine, theirs in pairs)
    p = mcnemar(within, len(pairs) - within)
    figures = ", ".join(f"{ratio:.2f}× at L={length}" for length, ratio in ratios.items())
    figures += f"; {within} of {len(pairs)} problems within it ({chance(p)})"
    if len({ratio <= bound for ratio in ratios.values()}) > 1:
        return Claim(text, "not decided", f"{figures}; lengths disagree")
    most = 2 * within > len(pairs)
    return Claim(text, decide(p <= ALPHA and most, p <= ALPHA and not most), figures)


EXPERIMENT = Experiment("wall-time", "Table S1", __doc__, parts, findings, measure, records=False)
