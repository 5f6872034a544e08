"""What is trained on what, for how long: plain values, so that a shipped model can name its recipe."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.errors import UnmaskError, nearest
from unmask.models.transformer import Shape
from unmask.tasks import task
from unmask.tasks.generated import Generated


@dataclass(frozen=True)
class Share:
    """A family at a level, and how often it is drawn."""

    family: str
    level: int
    weight: float = 1.0
    length: int | None = None  # at which it is decoded; None: the recipe's

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
    problems: int = 128  # of each
    looks: int = 4  # how often in a training
    length: int = 64  # at which it is measured
    vocab: int = 1024
    seed: int = 0


TINY = Recipe(
    name="tiny",
    shape=Shape(width=384, layers=7, heads=6, hidden=1024, vocab=1024, context=512, theta=10_000.0),
    # Sudoku's 288 grids, the programs and the word problems are learnt quickly, arithmetic and Countdown slowly: the
    # weights keep every family short of perfect, which leaves a search something to find.
    mix=(
        Share("countdown", 3, 10.0),
        Share("countdown", 4, 28.0),
        Share("sudoku", 11, 0.3),
        Share("sudoku", 12, 0.3),
        Share("sudoku", 13, 0.3),
        Share("mini-gsm", 3, 6.0),
        Share("mini-gsm", 4, 6.0),
        Share("mini-gsm", 5, 4.0),
        Share("mini-math", 1, 8.0),
        Share("mini-math", 2, 12.0),
        Share("mini-math", 3, 8.0),
        Share("mini-code", 1, 3.0),
        Share("mini-code", 2, 4.0),
        Share("mini-code", 3, 4.0),
    ),
    steps=7_000,
    tokens=2**17,
    widths=(64, 96, 128, 160, 224),
    rate=2e-3,
    watch=(
        Share("countdown", 3),
        Share("countdown", 4),
        Share("sudoku", 12),
        Share("sudoku", 13),
        Share("mini-gsm", 3),
        Share("mini-gsm", 4),
        Share("mini-math", 2),
        Share("mini-math", 3),
        Share("mini-code", 2),
        Share("mini-code", 3),
    ),
    looks=2,
)

NANO = Recipe(
    name="nano",
    shape=Shape(width=128, layers=3, heads=4, hidden=256, vocab=320, context=256, theta=10_000.0),
    mix=(Share("sudoku", 4),),
    steps=220,
    tokens=2**12,
    widths=(64,),
    rate=6e-3,
    warmup=20,
    ema=0.98,
    watch=(Share("sudoku", 4),),
    problems=32,
    looks=1,
    length=40,
    vocab=320,
)

RECIPES = {recipe.name: recipe for recipe in (TINY, NANO)}


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UnmaskError(f"unknown recipe {name!r}: {nearest(name, RECIPES)}")
    return RECIPES[name]
