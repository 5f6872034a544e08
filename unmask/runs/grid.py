"""What a run does: every model × task × decoder × length × seed × sample, with every default written out. Short labels for long specs: a record writes out every default, a label only what differs from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import islice, product
from pathlib import Path
from typing import Any

import unmask.decoders
import unmask.tasks  # noqa: F401  importing registers
from unmask.core import decoder
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError
from unmask.models import defaults, model
from unmask.models.load import registered
from unmask.registry import Call, parse
from unmask.runs.record import Cell
from unmask.runs.settings import Decoding, Placement, check_cost, check_max_forward_passes
from unmask.tasks import Metric, Problem, Task, grading, task
from unmask.tasks.published.benchmark import load_wording
from unmask.tasks.task import configure, problems_of

MOST_PROBLEMS = 1_000_000  # of a task without an end


@dataclass(frozen=True)
class Grid:
    """What is to be run; `spec` is what a folder remembers of it."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    decoders: tuple[str, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...] = (0,)
    samples: int = 1  # per problem and seed
    limit: int | None = None  # problems per task; all of them without it
    metric: Metric = "ours"
    traces: bool = False
    decoding: Decoding = field(default_factory=Decoding)  # each cell replaces its decoder, length and seed
    placement: Placement = field(default_factory=Placement)

    def __post_init__(self) -> None:
        for name in ("models", "tasks", "decoders", "lengths", "seeds"):
            if not getattr(self, name):
                raise UnmaskError(f"a run needs at least one of {name}")
        for name in ("samples", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UnmaskError(f"{name}={value} does not work: choose 1 or more")
        for length, spec in product(self.lengths, self.decoders):
            if length < 1:
                raise UnmaskError(f"length={length} leaves nothing to write: give at least 1")
            resolved(spec, length)

    def cells(self) -> list[Cell]:
        """Without repetition, however a decoder was spelt."""
        cells = product(self.models, self.tasks, self.decoders, self.lengths)
        blocks = {name: _block(name) for name in self.models}
        return list(dict.fromkeys(Cell(m, t, resolved(d, length, blocks[m]), length) for m, t, d, length in cells))

    def decoding_of(self, cell: Cell, seed: int) -> Decoding:
        return replace(self.decoding, decoder=decoder.make(cell.decoder), length=cell.length, seed=seed)

    def spec(self, problems: dict[str, list[Problem]]) -> dict[str, Any]:
        """Plain values; `decoders` are written out for each length in turn."""
        tasks = [task.make(spec) for spec in self.tasks]
        decoding = self.decoding.to_dict()
        for name in ("decoder", "length", "seed"):
            del decoding[name]
        if decoding["cache"] in (None, "exact"):  # neither changes a result
            decoding["cache"] = "none"
        if any(replace(self.decoding, decoder=decoder.make(spec)).ends_at_stop for spec in self.decoders):
            decoding["ends_at_stop"] = True  # runs of earlier versions computed on, and counted more rows
        return {
            "models": list(self.models),
            "tasks": list(self.tasks),
            "task_versions": [each.version for each in tasks],
            "decoders": self._resolved(),
            "lengths": list(self.lengths),
            "seeds": list(self.seeds),
            "samples": self.samples,
            "limit": self.limit,
            "metric": self.metric,
            "prompts": [_wording(each) for each in tasks],
            "problems": [digest_of(each, problems[spec]) for each, spec in zip(tasks, self.tasks, strict=True)],
            **decoding,
            "traces": self.traces,
            **self.placement.spec(),
        }

    def _resolved(self) -> list[str]:
        """The decoders as the cells have them."""
        blocks = dict.fromkeys(map(_block, self.models))
        every = product(blocks, self.decoders, self.lengths)
        return [resolved(spec, length, block) for block, spec, length in every]

    def problems(self) -> dict[str, list[Problem]]:
        """By task. What a task would refuse for every problem is refused here."""
        problems = {}
        for spec in self.tasks:
            source = task.make(spec)
            grading.ready(source)
            every = problems_of(source)
            if not isinstance(every, Sequence):
                self._check_end(spec)
            problems[spec] = list(islice(every, self.limit))
            if not problems[spec]:
                raise UnmaskError(f"task {spec!r} has no problems")
        return problems

    def _check_end(self, spec: str) -> None:
        if self.limit is None:
            raise UnmaskError(f"task {spec!r} has no end: say how many problems with --limit")
        if self.limit > MOST_PROBLEMS:
            raise UnmaskError(f"limit={self.limit} would never end: choose {MOST_PROBLEMS} or less of {spec!r}")


def make_grid(
    models: Sequence[str],
    tasks: Sequence[str],
    decoders: Sequence[str],
    lengths: Sequence[int] = (),
    *,
    seeds: Sequence[int] = (0,),
    prompts: str | None = None,
    allow_code: bool = False,
    sandbox: str | None = None,
    placement: Placement | None = None,
    here: bool = True,
    max_forward_passes: int | None = None,
    **more: Any,
) -> Grid:
    """From what a user wrote; `here` tells whether models run on this machine, `max_forward_passes` what a problem may cost."""
    most = check_max_forward_passes(max_forward_passes)
    names = tuple(dict.fromkeys(model.spec(model.make(name)) if registered(name) else name for name in models))
    for name in names if here else ():
        defaults(name).block  # a model that is not there is refused before a folder is made
    configured = configure(tasks, prompts=prompts, allow_code=allow_code, sandbox=sandbox)
    grid = Grid(
        names,
        tuple(dict.fromkeys(map(task.spec, configured))),
        tuple(dict.fromkeys(decoder.spec(decoder.make(spec)) for spec in decoders)),
        tuple(dict.fromkeys(lengths or [_shared_length(names)])),
        tuple(dict.fromkeys(seeds)),
        placement=(placement or Placement()).resolved(names, here),
        **more,
    )
    for cell in grid.cells():
        check_cost(decoder.make(cell.decoder), cell.length, most, 2 if grid.decoding.guidance > 0 else 1)
    return grid


def resolved(spec: str, length: int, block: int | None = None) -> str:
    """The decoder with its defaults written out, for a block-causal model with its blocks."""
    return decoder.spec(resolve(decoder.make(spec), block, length))


def _block(name: str) -> int | None:
    """Of a block-causal model. One that cannot be read here is refused where it runs."""
    try:
        return defaults(name).block
    except UnmaskError:
        return None


def _shared_length(names: Sequence[str]) -> int:
    """The default length of the models, where they agree."""
    lengths = {name: defaults(name).length for name in names}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UnmaskError(f"the models have different default lengths ({listed}): choose with --length")
    return next(iter(lengths.values()))


def _wording(source: Task) -> Any:
    """The wording from a file, so that a changed file is a changed run."""
    path = getattr(source, "prompts", None)
    if not path:
        return None
    load_wording(path, task.name(source))  # refuses a file that is not one
    return json.loads(Path(path).read_text(encoding="utf-8"))


def digest_of(source: Task, problems: Sequence[Problem]) -> dict[str, Any]:
    """A hash of the problems as they are posed: other data is another run."""
    posed = json.dumps([[problem.id, source.messages(problem)] for problem in problems])
    return {"count": len(problems), "digest": blake2b(posed.encode(), digest_size=8).hexdigest()}


@cache
def decoder_label(full: str, length: int) -> str:
    """The shortest spec that means `full` at this length, or `full` itself if its decoder is not known here."""
    return _shorten(full, lambda spec: meaning(spec, length))


@cache
def task_label(full: str) -> str:
    return _shorten(full, lambda spec: _written_out(lambda: task.spec(task.make(spec))))


@cache
def meaning(spec: str, length: int) -> str | None:
    """A decoder's spec with every default written out for this length; None if it cannot be used at it."""
    return _written_out(lambda: decoder.spec(decoder.make(spec).resolved(length)))


def _written_out(spec: Callable[[], str]) -> str | None:
    try:
        return spec()
    except (UnmaskError, ValueError, TypeError):
        return None


def without(call: Call, keys: Iterable[str]) -> Call:
    """Without these settings, however deep they are."""
    return Call(call.name, {key: without(value, keys) for key, value in call.settings.items() if key not in keys})


def _shorten(full: str, read: Callable[[str], str | None]) -> str:
    if read(full) != full:  # from another version, or a package that is not installed
        return full
    return spec_text(_without_defaults(parse(full), lambda trial: read(spec_text(trial)) == full))


def _without_defaults(call: Call, same: Callable[[Call], bool]) -> Call:
    """Drop each setting whose absence changes nothing, then do the same inside those that stay."""
    for key in reversed(list(call.settings)):
        trial = Call(call.name, {name: value for name, value in call.settings.items() if name != key})
        if same(trial):
            call = trial
    for key, value in call.settings.items():
        if value.settings:
            inner = _without_defaults(value, lambda trial, key=key, call=call: same(_with(call, key, trial)))
            call = _with(call, key, inner)
    return call


def _with(call: Call, key: str, value: Call) -> Call:
    return Call(call.name, call.settings | {key: value})


def spec_text(call: Call) -> str:
    inside = ", ".join(f"{key}={spec_text(value)}" for key, value in call.settings.items())
    name = decoder.text(call.name)  # quoted where it must be
    return f"{name}({inside})" if inside else name
