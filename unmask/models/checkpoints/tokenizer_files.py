"""Tokenizer files of random checkpoints: the byte alphabet, a few merges, and the family's special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from unmask.models.checkpoints.save import write_specials
from unmask.models.families.family import Family

MERGES = ["t h", "th e", "i n", "e r", "a n", "o n", "r e", "Ġ the", "Ġ a", "in g", "an d", "Ġ and"]
WORDS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]


def vocabulary(count: int, tokens: Mapping[int, str]) -> dict[str, int]:
    """The special tokens at their ids, around them the words, then names that no text encodes to."""
    words = iter(WORDS)
    return {tokens.get(number) or next(words, f"<unused{number}>"): number for number in range(count)}


def write_tokenizer_json(folder: Path, family: Family, vocab: int) -> None:
    tokens = {number: token for token, number in family.ids(vocab).items()}
    words = vocabulary(max(max(tokens) + 1, len(WORDS) + len(tokens)), tokens)
    merges = [(first, second) for first, second in (merge.split() for merge in MERGES)]
    tokenizer = Tokenizer(BPE(vocab=words, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in tokens.values()])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_specials(folder, family.specials, family.template)
