"""Finds boxes and answer tags in an output, in time linear in its length."""

from __future__ import annotations

LONGEST = 100_000  # characters of an output that are read, from its end
_BOX = "\\boxed"


def clip(text: str) -> str:
    return text[-LONGEST:]


def boxes(text: str) -> list[str]:
    """The contents of balanced `\\boxed{…}`, in the order in which they open."""
    contents: dict[int, str] = {}
    opened: list[int] = []
    for place, character in enumerate(text):
        if character == "{":
            opened.append(place)
        elif character == "}" and opened:
            start = opened.pop()
            if text.startswith(_BOX, max(start - len(_BOX), 0)) and start >= len(_BOX):
                contents[start] = text[start + 1 : place]
    return [contents[start] for start in sorted(contents)]


def loose_boxes(text: str) -> list[str]:
    """The text between each `\\boxed{` and the next `}` on its line, whatever braces are inside."""
    contents: list[str] = []
    start = text.find(_BOX + "{")
    while start >= 0:
        start += len(_BOX) + 1
        end = text.find("}", start)
        if end < 0:
            break
        inside = text[start:end]
        if "\n" not in inside:
            contents.append(inside)
            start = end
        start = text.find(_BOX + "{", start)
    return contents


def tagged(text: str) -> str | None:
    """The content of the first closed `<answer>…</answer>`."""
    start = text.find("<answer>")
    end = text.find("</answer>", start)
    return text[start + len("<answer>") : end].strip() if 0 <= start < end else None
