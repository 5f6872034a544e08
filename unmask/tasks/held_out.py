"""Published benchmark problems that a generated family could make too, as 64-bit marks: never trained on."""

from __future__ import annotations

from importlib.resources import files

FILE = "held_out.txt"


def load() -> frozenset[int]:
    words = files("unmask.tasks").joinpath(FILE).read_text("ascii").split()
    return frozenset(int(word, 16) for word in words)


HELD_OUT = load()
