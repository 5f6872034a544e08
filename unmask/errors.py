"""What goes wrong for a reason the user can mend: one sentence that names the value and the nearest right one."""

from collections.abc import Iterable
from difflib import get_close_matches


class UnmaskError(Exception):
    """Bad input. Commands print it as one sentence and exit with 2."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The tail of a refusal: the closest right word when there is one, else all of them."""
    options = sorted(known)
    folded = {option.casefold(): option for option in options}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return f"known: {', '.join(options)}" if options else "there is none"
