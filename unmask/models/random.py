"""Checkpoints of random numbers in each family's published file format, for tests, documentation and benchmarks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

from unmask.core import Denoiser
from unmask.errors import UnmaskError, nearest
from unmask.models.checkpoint import SHARD, Entry, tokenizer_config, write_config, write_json, write_shards
from unmask.models.family import Family, Ids
from unmask.models.folder import FAMILIES
from unmask.models.load import empty
from unmask.models.memory import check_fits, choose_device, choose_dtype
from unmask.models.network import Network
from unmask.models.transformer import Shape

LLADA_8B = Shape(4096, 32, 32, hidden=12288, vocab=126_464, context=4096)
DREAM_7B = Shape(
    3584, 28, 28, hidden=18944, vocab=152_064, context=131_072, kv_heads=4, theta=1e6, eps=1e-6, qkv_bias=True
)
SIZES: dict[str, dict[str, int]] = {  # changes to the published shape
    "nano": {"width": 32, "layers": 2, "heads": 4, "hidden": 64, "vocab": 320, "context": 512},
    "tiny": {"width": 128, "layers": 4, "heads": 4, "hidden": 384, "vocab": 512, "context": 1024},
    "small": {"width": 512, "layers": 8, "heads": 8, "hidden": 1536, "vocab": 4096, "context": 2048},
    "1b": {"width": 2048, "layers": 12, "heads": 16, "hidden": 5632},
    "8b": {},
}

SHAPES = tuple(f"{family}-{size}" for family in FAMILIES for size in SIZES)

# Special tokens by the id the published vocabulary gives them; in a smaller one they stand at its end.
LLADA_TOKENS = {
    126_080: "<|startoftext|>",
    126_081: "<|endoftext|>",
    126_336: "<|mdm_mask|>",
    126_346: "<|start_header_id|>",
    126_347: "<|end_header_id|>",
    126_348: "<|eot_id|>",
}
DREAM_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>")
DREAM_WORDS = 151_643  # ids of the published vocab.json; special tokens follow it
_MERGES = ["t h", "th e", "i n", "e r", "a n", "o n", "r e", "Ġ the", "Ġ a", "in g", "an d", "Ġ and"]


def random_shape(family: str, size: str) -> Shape:
    if family not in FAMILIES:
        raise UnmaskError(f"unknown family {family!r}: {nearest(family, FAMILIES)}")
    if size not in SIZES:
        raise UnmaskError(f"unknown size {size!r}: {nearest(size, SIZES)}")
    changes = SIZES[size]
    if family == "llada":
        return replace(LLADA_8B, **changes)
    return replace(DREAM_7B, **changes, **({"kv_heads": changes["heads"] // 2} if changes else {}))


def random_folder(
    folder: str | Path,
    family: str = "llada",
    size: str = "nano",
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.bfloat16,
    shard: int | None = None,
    device: str | torch.device = "cpu",
    shape: Shape | None = None,
) -> Path:
    """Write a checkpoint. Numbers are drawn on `device`, a slice at a time; another device draws other ones."""
    made, kind, path = shape or random_shape(family, size), FAMILIES[family], Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UnmaskError(f"{path} is there and not empty: name a new folder")
    path.mkdir(parents=True, exist_ok=True)
    entries = [
        Entry(weight.name, weight.shape, _draws(weight.name, weight.shape, seed, torch.device(device)))
        for weight in kind.weights(made)
    ]
    size_bytes = made.parameters * dtype.itemsize
    write_shards(path, entries, dtype, shard or min(SHARD, size_bytes // 3 + 1))  # small ones are cut too
    ids = _write_text[family](path, kind, made.vocab)
    write_config(path, kind, made, ids, dtype)
    return path


def random_denoiser(
    name: str, device: str | torch.device = "cpu", dtype: str | torch.dtype | None = None, seed: int = 0
) -> Denoiser:
    """A network of random numbers made where it is used, without files; `llada-8b` is a family and a size."""
    family, _, size = name.partition("-")
    if family not in FAMILIES or size not in SIZES:
        raise UnmaskError(f"unknown shape {name!r}: {nearest(name, SHAPES)}")
    shape, place = random_shape(family, size), choose_device(device)
    wide = choose_dtype(dtype, place)
    check_fits(name, shape, wide, place)
    module = empty(shape, place, wide)
    generator = torch.Generator(place).manual_seed(seed)
    for key, weight in module.named_parameters():
        middle, spread = float("norm" in key), 0.1
        if weight.ndim == 2:
            # Hidden states keep the size of one; a wider head makes draws about as peaked as a trained model's.
            spread = (
                1.0 if key.startswith("embed") else (4.0 if key.startswith("head") else 1.0) / weight.shape[1] ** 0.5
            )
        weight.data.normal_(middle, spread, generator=generator)
    return Network(module, _mask_id(family, shape.vocab), FAMILIES[family].shifted)


def _mask_id(family: str, vocab: int) -> int:
    if family == "dream":
        return min(DREAM_WORDS, vocab - len(DREAM_TOKENS)) + DREAM_TOKENS.index("<|mask|>")
    mask = next(number for number, token in LLADA_TOKENS.items() if token == "<|mdm_mask|>")
    return mask if vocab > max(LLADA_TOKENS) else vocab - len(LLADA_TOKENS) + list(LLADA_TOKENS).index(mask)


def _draws(name: str, shape: tuple[int, ...], seed: int, device: torch.device) -> Callable[[int, int], Tensor]:
    """Spread so that hidden states and logits keep the size of one."""
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=7).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest, "little"))
    vector = len(shape) == 1
    spread = 0.1 if vector else 1.0 if shape[0] > 8 * shape[1] else shape[1] ** -0.5
    middle = 1.0 if "norm" in name or "ln_f" in name else 0.0

    def rows(start: int, stop: int) -> Tensor:
        return torch.randn((stop - start, *shape[1:]), generator=generator, device=device).mul_(spread).add_(middle)

    return rows


def _words(count: int) -> dict[str, int]:
    """The byte alphabet, a few merges, and names that nothing encodes to."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in _MERGES)]
    words += [f"<unused{number}>" for number in range(len(words), count)]
    return {word: number for number, word in enumerate(words[:count])}


def _merges() -> list[tuple[str, str]]:
    return [(first, second) for first, second in (merge.split() for merge in _MERGES)]


def _write_llada(path: Path, family: Family, vocab: int) -> Ids:
    if vocab < max(LLADA_TOKENS):
        tokens = dict(enumerate(LLADA_TOKENS.values(), start=vocab - len(LLADA_TOKENS)))
    else:
        tokens = LLADA_TOKENS
    words = _words(max(tokens) + 1)
    words = {tokens.get(number, word): number for word, number in words.items()}
    tokenizer = Tokenizer(BPE(vocab=words, merges=_merges()))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in tokens.values()])
    tokenizer.save(str(path / "tokenizer.json"))
    specials = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    write_json(path / "tokenizer_config.json", tokenizer_config(specials, family.template, "PreTrainedTokenizerFast"))
    write_json(path / "special_tokens_map.json", specials)
    return Ids(mask=words["<|mdm_mask|>"], eos=words["<|endoftext|>"])


def _write_dream(path: Path, family: Family, vocab: int) -> Ids:
    """Dream publishes vocab.json and merges.txt, and says its special tokens in tokenizer_config.json."""
    words = _words(min(DREAM_WORDS, vocab - len(DREAM_TOKENS)))
    ids = {token: number for number, token in enumerate(DREAM_TOKENS, start=len(words))}
    write_json(path / "vocab.json", words)
    (path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(_MERGES) + "\n", encoding="utf-8")
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    added = {str(number): {"content": token, **flags} for token, number in ids.items()}
    specials = {
        "bos_token": "<|beginoftext|>",
        "eos_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
        "pad_token": "<|endoftext|>",
    }
    config = tokenizer_config(specials, family.template, "DreamTokenizer")
    write_json(path / "tokenizer_config.json", {"added_tokens_decoder": added, **config})
    write_json(path / "special_tokens_map.json", specials)
    write_json(path / "added_tokens.json", ids)
    return Ids(mask=ids["<|mask|>"], eos=ids["<|endoftext|>"])


_write_text: dict[str, Callable[[Path, Family, int], Ids]] = {"llada": _write_llada, "dream": _write_dream}
