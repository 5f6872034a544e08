"""Training recipes as plain values, which a model records, and the tokenizer: byte-level BPE of generated text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from unmask.errors import check_known
from unmask.models.network.transformer import Shape
from unmask.tasks import task
from unmask.tasks.generated.base import Generated


@dataclass(frozen=True)
class Share:
    """A generated task at a level, and how often it is drawn."""

    family: str
    level: int
    weight: float = 1.0
    length: int | None = None  # masks of a decoded answer; None for those of the recipe

    def task(self, split: str) -> Generated:
        family = task.make(self.family, level=self.level, split=split)
        assert isinstance(family, Generated)
        return family


@dataclass(frozen=True)
class Recipe:
    name: str
    shape: Shape
    mix: tuple[Share, ...]
    steps: int
    tokens: int  # tokens per step
    widths: tuple[int, ...]  # tokens of a row: prompt and answer together
    rate: float  # learning rate of AdamW, and of Muon, whose updates are scaled to match
    warmup: int = 200
    decay: float = 0.1  # weight decay
    ema: float = 0.998  # decay of the averaged weights
    watch: tuple[Share, ...] = ()  # families whose decoding accuracy is measured during training
    problems: int = 128  # validation problems per family
    looks: int = 4  # measurements per training
    length: int = 64  # masks of a decoded answer
    vocab: int = 1024
    seed: int = 0


# Weights by family and level. Sudoku, programs and word problems are learnt quickly, arithmetic and Countdown slowly.
# The weights keep every family below perfect accuracy, which leaves room for search.
_MIX = {
    "countdown": {3: 10.0, 4: 28.0},
    "sudoku": {11: 0.3, 12: 0.3, 13: 0.3},
    "mini-gsm": {3: 6.0, 4: 6.0, 5: 4.0},
    "mini-math": {1: 8.0, 2: 12.0, 3: 8.0},
    "mini-code": {1: 3.0, 2: 4.0, 3: 4.0},
}
_WATCH = {"countdown": (3, 4), "sudoku": (12, 13), "mini-gsm": (3, 4), "mini-math": (2, 3), "mini-code": (2, 3)}

TINY = Recipe(
    name="tiny",
    shape=Shape(width=384, layers=7, heads=6, hidden=1024, vocab=1024, context=512, theta=10_000.0),
    mix=tuple(Share(family, level, weight) for family, levels in _MIX.items() for level, weight in levels.items()),
    steps=7_000,
    tokens=2**17,
    widths=(64, 96, 128, 160, 224),
    rate=2e-3,
    watch=tuple(Share(family, level) for family, levels in _WATCH.items() for level in levels),
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
    check_known(RECIPES, recipe=name)
    return RECIPES[name]


END = "<|endoftext|>"
MASK = "<|mask|>"
TAGS = ("<answer>", "</answer>", "\\boxed{")  # one token each, which keeps answers short
# Never merged with a neighbour, except an operator with the space before it.
_SINGLE = Regex(r"[0-9^()\[\]{},.:?]| ?[+\-*/%=<>]")


def learn(families: list[Generated], texts: int = 20_000, vocab: int = 1024, seed: int = 0) -> Tokenizer:
    """Train a tokenizer on training problems; digits and operators are single tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(_SINGLE, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(TAGS),
        special_tokens=[END, MASK],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(families, texts, seed), trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in TAGS])
    return tokenizer


def _texts(families: list[Generated], texts: int, seed: int) -> Iterator[str]:
    rng = Random(seed)
    for i in range(texts):
        problem = families[i % len(families)].draw(rng)
        text = f"{problem.question}\n{problem.gold}"
        for tag in TAGS:
            text = text.replace(tag, " ")
        yield text
