"""Short labels for long specs: a record writes out every default, a label only what differs from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import unmask.decoders
import unmask.tasks  # noqa: F401  importing registers
from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.registry import Call, parse
from unmask.tasks import task


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
