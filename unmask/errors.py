"""What goes wrong for a reason the user can mend: one sentence that names the value and the nearest right one."""

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
