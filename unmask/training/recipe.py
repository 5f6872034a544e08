"""What is trained on what, for how long: plain values, so that a shipped model can name its recipe."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.core import UnmaskError, nearest
from unmask.models.transformer import Shape
from unmask.tasks import task
from unmask.tasks.generated import Generated


@dataclass(frozen=True)
class Share:
    """A family at a level, and how often it is drawn."""

    family: str
    level: int
    weight: float

    def task(self, split: str) -> Generated:
        made = task.make(self.family, level=self.level, split=split)
        assert isinstance(made, Generated)
        return made


@dataclass(frozen=True)
class Recipe:
    name: str
    shape: Shape
    mix: tuple[Share, ...]
    steps: int
    tokens: int  # a step
    widths: tuple[int, ...]  # rows are this wide, prompt and answer together: answers take what the prompt leaves
    rate: float  # of AdamW, and of Muon, whose updates are scaled to match
    warmup: int = 200
    decay: float = 0.1  # of weights
    ema: float = 0.998
    watch: tuple[Share, ...] = ()  # what decoding accuracy is measured on while training, on validation problems
    length: int = 64  # at which it is measured
    vocab: int = 1024
    seed: int = 0


TINY = Recipe(
    name="tiny",
    shape=Shape(width=384, layers=7, heads=6, hidden=1024, vocab=1024, context=512, theta=10_000.0),
    mix=(
        Share("countdown", 3, 2.0),
        Share("countdown", 4, 2.0),
        Share("sudoku", 8, 0.5),
        Share("sudoku", 10, 0.5),
        Share("mini-gsm", 2, 0.5),
        Share("mini-gsm", 3, 1.0),
        Share("mini-gsm", 4, 1.0),
        Share("mini-math", 1, 0.5),
        Share("mini-math", 2, 1.0),
        Share("mini-math", 3, 1.0),
        Share("mini-code", 1, 0.5),
        Share("mini-code", 2, 1.0),
        Share("mini-code", 3, 1.0),
    ),
    steps=4000,
    tokens=2**18,
    widths=(64, 96, 128, 160),
    rate=2e-3,
    watch=(
        Share("countdown", 3, 1.0),
        Share("countdown", 4, 1.0),
        Share("sudoku", 10, 1.0),
        Share("mini-gsm", 3, 1.0),
        Share("mini-math", 2, 1.0),
        Share("mini-code", 2, 1.0),
    ),
)

NANO = Recipe(
    name="nano",
    shape=Shape(width=96, layers=3, heads=3, hidden=256, vocab=512, context=256, theta=10_000.0),
    mix=(Share("mini-gsm", 2, 1.0),),
    steps=300,
    tokens=2**12,
    widths=(64,),
    rate=4e-3,
    warmup=20,
    ema=0.98,
    watch=(Share("mini-gsm", 2, 1.0),),
    length=32,
    vocab=512,
)

RECIPES = {recipe.name: recipe for recipe in (TINY, NANO)}


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UnmaskError(f"unknown recipe {name!r}: {nearest(name, RECIPES)}")
    return RECIPES[name]
