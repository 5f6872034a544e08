"""Checkpoints of random numbers in each family's published file format, for tests, documentation and benchmarks.

Everything that only such checkpoints need is in this file: sizes, tokenizer files, and the chat templates and special
tokens of each family.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

from unmask.errors import UnmaskError, check_known
from unmask.models.checkpoints.weights import write_config, write_json, write_shards, write_specials
from unmask.models.devices import check_fits, choose_device, choose_dtype
from unmask.models.families.family import DEFAULT_FAMILY, Family, Weight
from unmask.models.families.family import family as families
from unmask.models.load import empty
from unmask.models.network.network import Network
from unmask.models.network.transformer import Shape

PIECE = 2**24  # numbers drawn at a time
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
    tokens = special_tokens(kind)
    tokens.write(path, shape.vocab)
    ids = tokens.ids(shape.vocab)
    write_config(path, kind.config(shape, ids[kind.mask], ids[tokens.roles["eos_token"]]), dtype)
    return path


def _draw(weight: Weight, seed: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Draw a weight, spread so that hidden states and logits have unit size."""
    digest = hashlib.blake2b(f"{seed} {weight.name}".encode(), digest_size=7).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest, "little"))
    size = weight.shape
    spread = 0.1 if len(size) == 1 else 1.0 if size[0] > 8 * size[1] else size[1] ** -0.5
    out = torch.empty(size, dtype=dtype, device=device)
    for part in out.split(max(1, PIECE * size[0] // out.numel())):
        numbers = torch.randn(part.shape, generator=generator, device=device)
        part.copy_(numbers.mul_(spread).add_(float("norm" in weight.parameter)))
    return out


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
        weight.data.normal_(float("norm" in key), _spread(key, weight), generator=generator)
    return Network(module, special_tokens(kind).ids(shape.vocab)[kind.mask], kind.shifted)


def _spread(key: str, weight: Tensor) -> float:
    """Return a spread that keeps hidden states at unit size; the head's makes draws as peaked as a trained model's."""
    if weight.ndim == 1:
        return 0.1
    if key.startswith("embed"):
        return 1.0
    return (4.0 if key.startswith("head") else 1.0) / weight.shape[-1] ** 0.5


@dataclass(frozen=True)
class SpecialTokens:
    """The tokenizer files of a family's random checkpoints: its special tokens and chat template."""

    published: Mapping[str, int]  # ids at full size
    roles: dict[str, str]  # special_tokens_map.json
    template: str
    separate: bool = False  # the family publishes vocab.json and merges.txt instead of tokenizer.json

    def ids(self, vocab: int) -> dict[str, int]:
        """Return the published ids or, in a vocabulary too small for them, its last ids."""
        if vocab > max(self.published.values()):
            return dict(self.published)
        return {token: number for number, token in enumerate(self.published, start=vocab - len(self.published))}

    def write(self, folder: Path, vocab: int) -> None:
        """Write the special tokens at their ids, around them the words, then names that no text encodes to."""
        ids, words = self.ids(vocab), iter(WORDS)
        tokens = {number: token for token, number in ids.items()}
        count = min(tokens) if self.separate else max(max(tokens) + 1, len(WORDS) + len(tokens))
        vocabulary = {tokens.get(number) or next(words, f"<unused{number}>"): number for number in range(count)}
        if self.separate:
            write_json(folder / "vocab.json", vocabulary)
            (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
            flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
            added = {str(number): {"content": token, **flags} for token, number in ids.items()}
            write_specials(folder, self.roles, self.template, "DreamTokenizer", added_tokens_decoder=added)
            write_json(folder / "added_tokens.json", ids)
            return
        merges = [(first, second) for first, second in map(str.split, MERGES)]
        tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ids])
        tokenizer.save(str(folder / "tokenizer.json"))
        write_specials(folder, self.roles, self.template)


def special_tokens(family: Family) -> SpecialTokens:
    """Return the published special tokens of a family; for one that is not listed here, its mask and its ends."""
    if family.name in SPECIAL_TOKENS:
        return SPECIAL_TOKENS[family.name]
    ids = {token: number for number, token in enumerate((*family.ends, family.mask), start=family.published.vocab - 8)}
    return SpecialTokens(ids, {"eos_token": family.ends[0], "mask_token": family.mask}, CHATML)


CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
)
# LLaDA's published template ignores `add_generation_prompt` and always opens the assistant's turn.
HEADERS = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
    "{{ message['content'] | trim }}{{ '<|eot_id|>' }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
)
ROLES = (
    "{% for message in messages %}"
    "{{ '<role>' + message['role'] + '</role>' + message['content'] + '<|role_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<role>ASSISTANT</role>' }}{% endif %}"
)
SENTENCES = (
    "{% for message in messages %}{{ bos_token + message['role'] + '\\n' + message['content'] + eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}{{ bos_token + 'assistant\\n' }}{% endif %}"
)


def _qwen(mask: str, mask_id: int, eos: str = "<|endoftext|>") -> SpecialTokens:
    ids = {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645, mask: mask_id}
    return SpecialTokens(ids, {"eos_token": eos, "mask_token": mask, "pad_token": "<|endoftext|>"}, CHATML)


def _sentences(mask: str, **roles: str) -> SpecialTokens:
    ids = {"<[begin_of_sentence]>": 0, "<[PAD]>": 1, "<[end_of_sentence]>": 2, mask: 5}
    named = {"bos_token": "<[begin_of_sentence]>", "eos_token": "<[end_of_sentence]>", "pad_token": "<[PAD]>", **roles}
    return SpecialTokens(ids, named, SENTENCES)


def _numbered(names: str, *ids: int) -> dict[str, int]:
    return dict(zip(names.split(), ids, strict=True))


_LLADA = SpecialTokens(
    _numbered("<|startoftext|> <|endoftext|> <|mdm_mask|>", 126_080, 126_081, 126_336)
    | _numbered("<|start_header_id|> <|end_header_id|> <|eot_id|>", 126_346, 126_347, 126_348),
    {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
    HEADERS,
)
_MOE = SpecialTokens(
    _numbered("<|startoftext|> <|endoftext|> <|mask|>", 156_891, 156_892, 156_895)
    | _numbered("<role> </role> <|role_end|>", 156_898, 156_899, 156_900),
    {**_LLADA.roles, "mask_token": "<|mask|>"},
    ROLES,
)
# Directly after the words of the published vocab.json; the published tokenizer has other tokens in between.
_DREAM = SpecialTokens(
    _numbered("<|endoftext|> <|im_start|> <|im_end|> <|beginoftext|> <|mask|>", *range(151_643, 151_648)),
    {**_LLADA.roles, "bos_token": "<|beginoftext|>", "mask_token": "<|mask|>"},
    SYSTEM + CHATML,
    separate=True,
)
_A2D = _qwen("<|mask|>", 151_669, eos="<|im_end|>")
SPECIAL_TOKENS = {
    "llada": _LLADA,
    "llada-moe": _MOE,
    "llada2": _MOE,
    "dream": _DREAM,
    "sdar": _qwen("<|MASK|>", 151_669),
    "dream-reasoner": _qwen("<|MASK|>", 151_669),
    "fast-dllm": _qwen("|<MASK>|", 151_665, eos="<|im_end|>"),
    **dict.fromkeys(("a2d-qwen3", "a2d-qwen3-bd3lm", "a2d-qwen2", "a2d-qwen2-bd3lm"), _A2D),
    "illada": _sentences("<[MASK]>"),
    "stable-diffcoder": _sentences("<[MASK_TOKEN]>", mask_token="<[MASK_TOKEN]>"),
}
