"""Drawing with matplotlib: one style, no display, no dates, the same bytes every time."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unmask.errors import UnmaskError, nearest
from unmask.runs.files import write_whole

# People with any colour vision can tell them apart, and see them on white and inverted on the page's dark ground: Okabe
# and Ito's colours, with violet and sand instead of their two lightest.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#9467FF", "#A8894A", "#000000")
MARKS = "osD^vP*X"
KINDS = (".svg", ".png", ".pdf")
UNDATED: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
STYLE: Any = {
    "svg.hashsalt": "unmask",
    "text.parse_math": False,  # names are not formulas
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
}


def render(
    paint: Callable[[Any], None],
    size: tuple[float, float],
    kind: str,
    layout: str | None = None,
    style: Mapping[str, Any] = MappingProxyType({}),
) -> bytes:
    """A figure of this size in inches, filled by `paint`, as `svg` or `png`. The user's own style has no effect."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.style import context
    except ImportError:
        raise UnmaskError("plots need matplotlib: pip install 'unmask[plot]'") from None
    except ValueError as error:  # of a backend in the environment, which is not even used
        raise UnmaskError(
            f"matplotlib refuses MPLBACKEND={os.environ.get('MPLBACKEND')!r} ({error}): unset it"
        ) from None
    with context("default"), matplotlib.rc_context(STYLE | dict(style)):
        figure = Figure(figsize=size, layout=layout)  # pyright: ignore[reportArgumentType]
        paint(figure)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata=UNDATED[kind])
        return out.getvalue()


# A method has its colour in every figure; its variants share that, and differ in their marker.
METHODS = {
    "order-token search": 0,
    "ots": 0,
    "order-token-search": 0,
    "low-confidence": 1,
    "random": 2,
    "ar": 3,
    "left-to-right": 3,
    "search": 4,
    "adaptive": 5,
}


def looks(labels: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and marker of each series. A label that names no known method takes a colour that is left over."""
    known = [_method(label) for label in labels]
    spare = [place for place in range(len(COLOURS)) if place not in known] or list(range(len(COLOURS)))
    others = iter(range(len(labels)))
    places = [spare[next(others) % len(spare)] if place is None else place for place in known]
    return [(COLOURS[place], MARKS[number % len(MARKS)]) for number, place in enumerate(places)]


def _method(label: str) -> int | None:
    """By the longest name that a label begins with."""
    word = label.lower()
    begun = [name for name in METHODS if re.match(rf"{re.escape(name)}(?![a-z-])", word)]
    return METHODS[max(begun, key=len)] if begun else None


def points_with_errors(
    axes: Any, look: tuple[str, str], label: str, xs: list[float], ys: list[float], **style: Any
) -> None:
    """A series in its colour and marker; `xerr` or `yerr` gives the errors."""
    axes.errorbar(
        xs,
        ys,
        label=label,
        color=look[0],
        marker=look[1],
        markersize=5,
        capsize=2,
        **{"elinewidth": 0.8, "linestyle": "none"} | style,
    )


def kind_of(path: str | PathLike[str]) -> str:
    """`svg`, `png` or `pdf`, by the file's name."""
    suffix = Path(path).suffix.lower()
    if suffix not in KINDS:
        raise UnmaskError(f"a picture cannot be written as {str(path)!r}: {nearest(suffix, KINDS)}")
    return suffix[1:]


def keep(content: bytes, path: str | PathLike[str], folder: bool = False) -> None:
    """Write a file, whole or not at all, and with `folder` its folder."""
    try:
        if folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(path), content)
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be written: {error.strerror}") from None
