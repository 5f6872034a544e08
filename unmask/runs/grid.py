"""What a run is to do: every model × task × decoder × length × seed × sample, with every default written out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch

import unmask.decoders
import unmask.tasks  # noqa: F401  the rooms register what they hold
from unmask.core import Decoder, decoder
from unmask.errors import UnmaskError
from unmask.models import load, model
from unmask.models.cache import make_cache
from unmask.models.load import registered
from unmask.models.memory import choose_device, choose_dtype, stored_dtype
from unmask.runs.job import Precision
from unmask.runs.record import Cell
from unmask.runs.settings import Settings
from unmask.tasks import Metric, Problem, Task, grading, task


@dataclass(frozen=True)
class Grid:
    """What was asked for; `spec` is what a folder remembers of it."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    decoders: tuple[str, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...] = (0,)
    samples: int = 1  # a problem and seed
    limit: int | None = None  # problems a task; all of them without it
    metric: Metric = "ours"
    guidance: float = 0.0
    suppress: bool = False
    early_end: bool = False
    cache: str = "none"
    stop: tuple[str, ...] = ()
    traces: bool = False
    device: str = "cpu"
    dtype: str = "float32"
    precision: Precision = "highest"
    compiled: bool = False

    def __post_init__(self) -> None:
        for what in ("models", "tasks", "decoders", "lengths", "seeds"):
            if not getattr(self, what):
                raise UnmaskError(f"a run needs at least one of {what}")
        for what, least in (("samples", 1), ("limit", 1)):
            value = getattr(self, what)
            if value is not None and value < least:
                raise UnmaskError(f"{what}={value} does not work: choose {least} or more")
        for length, made in product(self.lengths, self.decoders):
            if length < 1:
                raise UnmaskError(f"length={length} leaves nothing to write: give at least 1")
            self.settings(made, length, 0)

    def settings(self, made: str, length: int, seed: int) -> Settings:
        resolved = decoder.make(made).resolved(length)
        return Settings(resolved, length, seed, self.guidance, self.suppress, self.early_end, self.stop, self.cache)

    def cells(self) -> list[Cell]:
        """None twice, however it was spelt."""
        made = product(self.models, self.tasks, self.decoders, self.lengths)
        return list(dict.fromkeys(Cell(m, t, resolved(d, length), length) for m, t, d, length in made))

    def spec(self, problems: dict[str, list[Problem]]) -> dict[str, Any]:
        """As plain values; `decoders` are written out for each length in turn."""
        made = [task.make(spec) for spec in self.tasks]
        return {
            "models": list(self.models),
            "tasks": list(self.tasks),
            "task_versions": [one.version for one in made],
            "decoders": [resolved(one, length) for one in self.decoders for length in self.lengths],
            "lengths": list(self.lengths),
            "seeds": list(self.seeds),
            "samples": self.samples,
            "limit": self.limit,
            "metric": self.metric,
            "prompts": [_wording(one) for one in made],
            "problems": [_digest(one, problems[spec]) for one, spec in zip(made, self.tasks, strict=True)],
            "guidance": self.guidance,
            "suppress": self.suppress,
            "early_end": self.early_end,
            "cache": self.cache,
            "stop": list(self.stop),
            "traces": self.traces,
            "device": self.device,
            "dtype": self.dtype,
            "precision": self.precision,
            "compiled": self.compiled,
        }

    def problems(self) -> dict[str, list[Problem]]:
        """By task. Whatever a task would refuse of every problem, it refuses here."""
        found = {}
        for spec in self.tasks:
            made = task.make(spec)
            grading.ready(made)
            all_ = made.problems()
            if self.limit is None and not isinstance(all_, Sequence):
                raise UnmaskError(f"task {spec!r} has no end: say how many problems with --limit")
            found[spec] = list(islice(all_, self.limit))
            if not found[spec]:
                raise UnmaskError(f"task {spec!r} has no problems")
        return found


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
    device: str | None = None,
    dtype: str | None = None,
    here: bool = True,
    cache: str = "none",
    **more: Any,
) -> Grid:
    """From what a user wrote. `here`: whether models run on this machine, whose devices can then be asked."""
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    names = tuple(dict.fromkeys(model.spec(model.make(name)) if registered(name) else name for name in models))
    return Grid(
        names,
        tuple(dict.fromkeys(_task_specs(tasks, prompts, allow_code, sandbox))),
        tuple(dict.fromkeys(decoder.spec(decoder.make(spec)) for spec in decoders)),
        tuple(dict.fromkeys(lengths or [_own_length(names, chosen)])),
        seeds=tuple(dict.fromkeys(seeds)),
        device=choose_device(chosen).type if here else torch.device(chosen).type,
        dtype=_dtype(dtype or ("float32" if all(map(registered, names)) else None), chosen, here),
        cache=make_cache(cache),
        **more,
    )


def resolved(spec: str, length: int) -> str:
    made: Decoder = decoder.make(spec).resolved(length)
    return decoder.spec(made)


def _task_specs(specs: Sequence[str], prompts: str | None, allow_code: bool, sandbox: str | None) -> Iterator[str]:
    """Options become settings of the tasks that have them; one that no task has is refused."""
    made = [task.make(spec) for spec in specs]
    given = {"prompts": prompts, "allow_code": allow_code or None, "sandbox": sandbox}
    given = {key: value for key, value in given.items() if value is not None}
    for key in given:
        if not any(_has(one, key) for one in made) or (key == "prompts" and not all(_has(one, key) for one in made)):
            wrong = next(spec for spec, one in zip(specs, made, strict=True) if not _has(one, key))
            raise UnmaskError(f"task {wrong!r} has no setting for --{key.replace('_', '-')}: leave it out")
    for one in made:
        yield task.spec(task.make(one, **{key: value for key, value in given.items() if _has(one, key)}))


def _has(made: Task, key: str) -> bool:
    return key in {field.name for field in fields(made)}  # type: ignore[arg-type]


def _own_length(names: Sequence[str], device: str) -> int:
    """What the models write by themselves, where they agree."""
    found = {name: load(name, device).default_length for name in names}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in found.items())
        raise UnmaskError(f"the models have different lengths of their own ({said}): choose with --length")
    return next(iter(found.values()))


def _dtype(wanted: str | None, device: str, here: bool) -> str:
    made = choose_dtype(wanted, torch.device(device)) if here or wanted is None else stored_dtype(wanted)
    return str(made).removeprefix("torch.")


def _wording(made: Task) -> Any:
    """The wording a file swapped in, so that a changed file is a changed run."""
    path = getattr(made, "prompts", None)
    return json.loads(Path(path).read_text(encoding="utf-8")) if path else None


def _digest(made: Task, problems: Sequence[Problem]) -> dict[str, Any]:
    """Names the problems as they are asked: other data is another run."""
    asked = json.dumps([[problem.id, made.messages(problem)] for problem in problems])
    return {"count": len(problems), "digest": blake2b(asked.encode(), digest_size=8).hexdigest()}
