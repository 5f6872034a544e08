"""Errors a user can fix, and the checks that raise them: what, the constraint, the value, the nearest valid choice."""

import functools
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class UnmaskError(Exception):
    """Bad input. Commands print it as one sentence and exit with 2."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The tail of a refusal: the closest right word when there is one, else all of them."""
    options = sorted(known)
    folded = {option.casefold(): option for option in options}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.51)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return f"known: {', '.join(options)}" if options else "there is none"


def check_at_least(least: float, /, **values: float | None) -> None:
    """Refuse values below `least`; None stands for a default and passes. So do the checks below."""
    for name, value in values.items():
        if value is not None and not value >= least:
            raise UnmaskError(f"{name} must be at least {least}, got {value}")


def check_above(least: float, **values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not value > least:
            raise UnmaskError(f"{name} must be greater than {least}, got {value}")


def check_between(least: float, most: float, **values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not least <= value <= most:
            raise UnmaskError(f"{name} must be between {least} and {most}, got {value}")


def check_known(known: Iterable[str], **values: str) -> None:
    options = list(known)
    for name, value in values.items():
        if value not in options:
            raise UnmaskError(f"unknown {name} {value!r}: {nearest(value, options)}")


def keywords_checked(function: Callable[P, T]) -> Callable[P, T]:
    """A keyword argument that the function does not have is refused with the nearest one."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*values: P.args, **named: P.kwargs) -> T:
        for name in named:
            if name not in known:
                raise UnmaskError(f"unknown argument {name!r}: {nearest(name, known)}")
        return function(*values, **named)

    return call
