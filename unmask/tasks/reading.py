"""Finding the answer in an output: boxes and answer tags, in one pass, so that no text is slow to read."""

from __future__ import annotations

LONGEST = 100_000  # characters of an output that are read, from its end; real ones have a few thousand
_BOX = "\\boxed"


def clip(text: str) -> str:
    return text[-LONGEST:]


def boxes(text: str) -> list[str]:
    """What stands in each balanced `\\boxed{…}`, in the order they open."""
    found: dict[int, str] = {}
    opened: list[int] = []
    for place, mark in enumerate(text):
        if mark == "{":
            opened.append(place)
        elif mark == "}" and opened:
            start = opened.pop()
            if text.startswith(_BOX, max(start - len(_BOX), 0)) and start >= len(_BOX):
                found[start] = text[start + 1 : place]
    return [found[start] for start in sorted(found)]


def loose_boxes(text: str) -> list[str]:
    """What stands between each `\\boxed{` and the next `}` of its line, braces inside or not."""
    found: list[str] = []
    start = text.find(_BOX + "{")
    while start >= 0:
        start += len(_BOX) + 1
        end = text.find("}", start)
        if end < 0:
            break
        inside = text[start:end]
        if "\n" not in inside:
            found.append(inside)
            start = end
        start = text.find(_BOX + "{", start)
    return found


def tagged(text: str) -> str | None:
    """What stands in the first closed `<answer>…</answer>`."""
    start = text.find("<answer>")
    end = text.find("</answer>", start)
    return text[start + len("<answer>") : end].strip() if 0 <= start < end else None
