"""Checkpoints of random numbers in each family's published file format, for tests, documentation and benchmarks.

Their tokenizer is the same in every family, apart from the names of the mask and of the tokens that end an answer.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

from unmask.errors import UnmaskError, check_known
from unmask.models.checkpoints.weights import write_config, write_shards, write_specials
from unmask.models.devices import check_fits, choose_device, choose_dtype
from unmask.models.families.family import DEFAULT_FAMILY, Family, Weight
from unmask.models.families.family import family as families
from unmask.models.load import empty
from unmask.models.network.network import Network
from unmask.models.network.transformer import Shape

SHARD = 10**9  # bytes per shard, and so the memory that writing takes
SIZES: dict[str, dict[str, int]] = {  # changes to the published shape
    "nano": {"width": 32, "layers": 2, "heads": 4, "hidden": 64, "vocab": 320, "context": 512},
    "tiny": {"width": 128, "layers": 4, "heads": 4, "hidden": 384, "vocab": 512, "context": 1024},
    "small": {"width": 512, "layers": 8, "heads": 8, "hidden": 1536, "vocab": 4096, "context": 2048},
    "1b": {"width": 2048, "layers": 12, "heads": 16, "hidden": 5632},
    "8b": {},
    "full": {},  # the published shape, whatever its size
}
MERGES = ["t h", "th e", "i n", "e r", "a n", "o n", "r e", "Ġ the", "Ġ a", "in g", "an d", "Ġ and"]
WORDS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + '\\n' + message['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant\\n' }}{% endif %}"
)


def shape_names() -> list[str]:
    """Return the families with their sizes, such as `llada-8b`."""
    return [f"{family}-{size}" for family in families for size in SIZES]


def random_shape(family: str, size: str) -> Shape:
    published = families.make(family).published
    check_known(SIZES, size=size)
    return _smaller(replace(published, **SIZES[size]), published) if SIZES[size] else published


def _smaller(shape: Shape, published: Shape) -> Shape:
    """Return the shape with the features of the published one, in proportion."""
    head = 2 * shape.width // shape.heads if published.head or published.rotary else None
    experts = published.experts
    if experts is not None:
        groups, shared = (4, 2) if experts.groups > 1 else (1, 1), shape.hidden // 4 * bool(experts.shared)
        sizes = {"count": 8, "chosen": 2, "hidden": shape.hidden // 4, "shared": shared}
        experts = replace(experts, **sizes, groups=groups[0], kept_groups=groups[1])
    return replace(
        shape,
        kv_heads=shape.heads // 2 if published.kv_heads else None,
        head=head,
        rotary=head // 2 if published.rotary and head else None,
        experts=experts,
    )


def random_folder(
    folder: str | Path,
    family: str = DEFAULT_FAMILY,
    size: str = "nano",
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.bfloat16,
    shard: int | None = None,
    device: str | torch.device = "cpu",
    shape: Shape | None = None,
) -> Path:
    """Write a checkpoint. Numbers are drawn on `device`; they differ between kinds of device."""
    shape, kind, path = shape or random_shape(family, size), families.make(family), Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UnmaskError(f"{path} exists and is not empty: name a new folder")
    path.mkdir(parents=True, exist_ok=True)
    third = shape.parameters * dtype.itemsize // 3 + 1  # so that small checkpoints have several shards too
    compute = partial(_draw, seed=seed, device=torch.device(device), dtype=dtype)
    write_shards(path, list(kind.weights(shape)), compute, dtype, shard or min(SHARD, third))
    ids = special_ids(kind, shape.vocab)
    _write_tokenizer(path, ids)
    write_specials(path, {"eos_token": kind.ends[0], "mask_token": kind.mask}, TEMPLATE)
    write_config(path, kind.config(shape, ids[kind.mask], ids[kind.ends[0]]), dtype)
    return path


def special_ids(family: Family, vocab: int) -> dict[str, int]:
    """Return the ids of the tokens that end an answer and of the mask, which are the last ones."""
    tokens = (*family.ends, family.mask)
    return {token: number for number, token in enumerate(tokens, start=vocab - len(tokens))}


def _write_tokenizer(folder: Path, ids: dict[str, int]) -> None:
    """Write the special tokens at their ids, around them the words, then names that no text encodes to."""
    words, specials = iter(WORDS), {number: token for token, number in ids.items()}
    count = max(max(specials) + 1, len(WORDS) + len(specials))
    vocabulary = {specials.get(number) or next(words, f"<unused{number}>"): number for number in range(count)}
    merges = [(first, second) for first, second in map(str.split, MERGES)]
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ids])
    tokenizer.save(str(folder / "tokenizer.json"))


def _draw(weight: Weight, seed: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Draw a weight of its own, whatever the order in which weights are written."""
    digest = hashlib.blake2b(f"{seed} {weight.name}".encode(), digest_size=7).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest, "little"))
    return _normal(weight.parameter, torch.empty(weight.shape, dtype=dtype, device=device), generator)


def random_denoiser(
    name: str, device: str | torch.device = "cpu", dtype: str | torch.dtype | None = None, seed: int = 0
) -> Network:
    """Return a network of random numbers, made without files; `name` is a family and a size, such as `llada-8b`."""
    check_known(shape_names(), shape=name)
    family, _, size = name.rpartition("-")
    kind, shape, chosen = families.make(family), random_shape(family, size), choose_device(device)
    wanted = choose_dtype(dtype, chosen)
    check_fits(name, shape, wanted, chosen)
    module = empty(shape, chosen, wanted)
    generator = torch.Generator(chosen).manual_seed(seed)
    for key, weight in module.named_parameters():
        _normal(key, weight.data, generator)
    return Network(module, special_ids(kind, shape.vocab)[kind.mask], kind.shifted)


def _normal(key: str, weight: Tensor, generator: torch.Generator) -> Tensor:
    """Fill a weight: hidden states keep unit size, and draws are as peaked as a trained model's."""
    spread = (4.0 if key.startswith("head") else 1.0) / weight.shape[-1] ** 0.5
    if weight.ndim == 1 or key.startswith("embed"):
        spread = 0.1 if weight.ndim == 1 else 1.0
    return weight.normal_(float("norm" in key), spread, generator=generator)
