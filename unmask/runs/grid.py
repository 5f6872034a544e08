"""The cells of a run: every model × task × decoder × length × seed × sample, with every default written out.

A record writes out every default of a spec; a label shows only what differs from the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import unmask.decoders
import unmask.tasks  # noqa: F401  importing registers
from unmask.core import decoder
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError, check_at_least
from unmask.models import defaults, model
from unmask.models.checkpoints.manifest import Defaults
from unmask.models.load import registered
from unmask.registry import Call, parse
from unmask.runs.record import Cell
from unmask.runs.settings import Decoding, Placement, check_cost, check_max_forward_passes
from unmask.tasks import Metric, task
from unmask.tasks.task import configure


@dataclass(frozen=True)
class Grid:
    """A run that is to be made. It is a pure value: `make_grid` has read what it needs of the models."""

    models: dict[str, int | None]  # block size by name; None for a model that is not block-causal
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
        check_at_least(1, samples=self.samples, limit=self.limit)
        for length, spec in product(self.lengths, self.decoders):
            check_at_least(1, length=length)
            resolved(spec, length)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell once, however often and in whatever spelling its decoder was named."""
        cells = product(self.models.items(), self.tasks, self.decoders, self.lengths)
        return list(dict.fromkeys(Cell(m, t, resolved(d, length, block), length) for (m, block), t, d, length in cells))

    def decoding_of(self, cell: Cell, seed: int) -> Decoding:
        """Return how a cell is decoded under this seed."""
        return replace(self.decoding, decoder=decoder.make(cell.decoder), length=cell.length, seed=seed)

    def spec(self, by_task: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Return plain values, with versions, prompts and problems by task; `decoders` are for each length in turn."""
        decoding = self.decoding.to_dict()
        for name in ("decoder", "length", "seed"):
            del decoding[name]
        if decoding["cache"] in (None, "exact"):  # neither changes a result
            decoding["cache"] = "none"
        every = product(dict.fromkeys(self.models.values()), self.decoders, self.lengths)
        return {
            "models": list(self.models),
            "tasks": list(self.tasks),
            "task_versions": by_task["task_versions"],
            "decoders": [resolved(spec, length, block) for block, spec, length in every],
            "lengths": list(self.lengths),
            "seeds": list(self.seeds),
            "samples": self.samples,
            "limit": self.limit,
            "metric": self.metric,
            "prompts": by_task["prompts"],
            "problems": by_task["problems"],
            **decoding,
            "traces": self.traces,
            **self.placement.spec(),
        }


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
    """Read a grid as a user wrote it: resolve every name once, and refuse cells that cost too much.

    `here` is False if the models run on other machines. A problem may need `max_forward_passes` at most.
    """
    most = check_max_forward_passes(max_forward_passes)
    names = tuple(dict.fromkeys(model.spec(model.make(name)) if registered(name) else name for name in models))
    known = {name: _defaults(name, here) for name in names}
    blocks = {name: found.block if found else None for name, found in known.items()}
    configured = configure(tasks, prompts=prompts, allow_code=allow_code, sandbox=sandbox)
    grid = Grid(
        blocks,
        tuple(dict.fromkeys(map(task.spec, configured))),
        tuple(dict.fromkeys(decoder.spec(decoder.make(spec)) for spec in decoders)),
        tuple(dict.fromkeys(lengths or [_shared_length(known)])),
        tuple(dict.fromkeys(seeds)),
        placement=(placement or Placement()).resolved(names, here),
        **more,
    )
    for cell in grid.cells:
        check_cost(decoder.make(cell.decoder), cell.length, most, 2 if grid.decoding.guidance > 0 else 1)
    return grid


def resolved(spec: str, length: int, block: int | None = None) -> str:
    """Return a decoder's spec with its defaults written out, for a model with blocks of `block` if that is given."""
    return decoder.spec(resolve(decoder.make(spec), block, length))


def _defaults(name: str, here: bool) -> Defaults | None:
    """Return a model's default length and block size. A model that cannot be read is refused where it runs."""
    try:
        return defaults(name)
    except UnmaskError:
        if here:
            raise
        return None


def _shared_length(known: dict[str, Defaults | None]) -> int:
    """Return the default length of the models, if all have the same."""
    lengths = {name: (found or defaults(name)).length for name, found in known.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UnmaskError(f"the models have different default lengths ({listed}): choose with --length")
    return next(iter(lengths.values()))


CHECKED = " + check "  # between a decoder and its check, where runs with different checks are reported together


@cache
def decoder_label(full: str, length: int) -> str:
    """Return the shortest spec that means `full` at this length, or `full` itself if its decoder is not known here."""
    spec, checked, check = full.partition(CHECKED)
    return _shorten(spec, lambda spec: meaning(spec, length)) + checked + check


@cache
def task_label(full: str) -> str:
    """Return the shortest spec that means `full`."""
    return _shorten(full, lambda spec: _written_out(lambda: task.spec(task.make(spec))))


@cache
def meaning(spec: str, length: int) -> str | None:
    """Return a decoder's spec with every default written out for this length, or None if it cannot be used at it."""
    plain, checked, check = spec.partition(CHECKED)
    return _written_out(lambda: resolved(plain, length) + checked + check)


def _written_out(spec: Callable[[], str]) -> str | None:
    try:
        return spec()
    except (UnmaskError, ValueError, TypeError):
        return None


def _shorten(full: str, read: Callable[[str], str | None]) -> str:
    if read(full) != full:  # written by a different version, or of a package that is not installed
        return full
    return spec_text(_without_defaults(parse(full), lambda trial: read(spec_text(trial)) == full))


def _without_defaults(call: Call, same: Callable[[Call], bool]) -> Call:
    """Drop each setting whose absence changes nothing, then do the same inside the others."""
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
    """Return a parsed spec as text."""
    inside = ", ".join(f"{key}={spec_text(value)}" for key, value in call.settings.items())
    name = decoder.text(call.name)  # quoted where it must be
    return f"{name}({inside})" if inside else name
