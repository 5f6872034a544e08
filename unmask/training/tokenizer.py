"""The embedded model's tokenizer: byte-level BPE learnt from generated text; digits and operators are single tokens."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from unmask.tasks.generated import Generated

END = "<|endoftext|>"
MASK = "<|mask|>"
TAGS = ("<answer>", "</answer>", "\\boxed{")  # one token each, which keeps answers short
# Never merged with a neighbour, except an operator with the space before it.
_SINGLE = Regex(r"[0-9^()\[\]{},.:?]| ?[+\-*/%=<>]")


def learn(families: list[Generated], texts: int = 20_000, vocab: int = 1024, seed: int = 0) -> Tokenizer:
    """Learn from training problems only; the same seed gives the same vocabulary."""
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
