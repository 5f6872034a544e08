"""Checkpoints of random numbers in each family's published file format, for tests, documentation and benchmarks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from unmask.core import Denoiser
from unmask.errors import UnmaskError, nearest
from unmask.models.checkpoints.save import SHARD, LazyTensor, write_config, write_shards
from unmask.models.checkpoints.weight_names import Weight
from unmask.models.devices import check_fits, choose_device, choose_dtype
from unmask.models.families.family import DEFAULT_FAMILY
from unmask.models.families.family import family as families
from unmask.models.load import empty
from unmask.models.network.network import make_network
from unmask.models.network.transformer import Shape

SIZES: dict[str, dict[str, int]] = {  # changes to the published shape
    "nano": {"width": 32, "layers": 2, "heads": 4, "hidden": 64, "vocab": 320, "context": 512},
    "tiny": {"width": 128, "layers": 4, "heads": 4, "hidden": 384, "vocab": 512, "context": 1024},
    "small": {"width": 512, "layers": 8, "heads": 8, "hidden": 1536, "vocab": 4096, "context": 2048},
    "1b": {"width": 2048, "layers": 12, "heads": 16, "hidden": 5632},
    "8b": {},
    "full": {},  # the published shape, whatever its size
}


def shape_names() -> list[str]:
    """Families with sizes, such as `llada-8b`."""
    return [f"{family}-{size}" for family in families for size in SIZES]


def random_shape(family: str, size: str) -> Shape:
    published = families.make(family).published
    if size not in SIZES:
        raise UnmaskError(f"unknown size {size!r}: {nearest(size, SIZES)}")
    return _smaller(replace(published, **SIZES[size]), published) if SIZES[size] else published


def _smaller(shape: Shape, published: Shape) -> Shape:
    """What the published shape has, in proportion."""
    head = 2 * shape.width // shape.heads if published.head or published.rotary else None  # apart from the width
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
    """Write a checkpoint. Numbers are drawn on `device`, a slice at a time; they differ between kinds of device."""
    shape, kind, path = shape or random_shape(family, size), families.make(family), Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UnmaskError(f"{path} exists and is not empty: name a new folder")
    path.mkdir(parents=True, exist_ok=True)
    tensors = [
        LazyTensor(weight.name, weight.shape, _draws(weight, seed, torch.device(device)))
        for weight in kind.weights(shape)
    ]
    third = shape.parameters * dtype.itemsize // 3 + 1  # so that small checkpoints have several shards too
    write_shards(path, tensors, dtype, shard or min(SHARD, third))
    kind.write_tokenizer(path, shape.vocab)
    ids = kind.ids(shape.vocab)
    write_config(path, kind.config(shape, ids[kind.mask], ids[kind.specials["eos_token"]]), dtype)
    return path


def random_denoiser(
    name: str, device: str | torch.device = "cpu", dtype: str | torch.dtype | None = None, seed: int = 0
) -> Denoiser:
    """A network of random numbers, made on its device without files; `name` is a family and a size, as `llada-8b`."""
    if name not in shape_names():
        raise UnmaskError(f"unknown shape {name!r}: {nearest(name, shape_names())}")
    family, _, size = name.rpartition("-")
    kind, shape, chosen = families.make(family), random_shape(family, size), choose_device(device)
    wanted = choose_dtype(dtype, chosen)
    check_fits(name, shape, wanted, chosen)
    module = empty(shape, chosen, wanted)
    generator = torch.Generator(chosen).manual_seed(seed)
    for key, weight in module.named_parameters():
        weight.data.normal_(float("norm" in key), _spread(key, weight), generator=generator)
    return make_network(module, kind.ids(shape.vocab)[kind.mask], kind.shifted)


def _spread(key: str, weight: Tensor) -> float:
    """Keeps hidden states at unit size; the head is wider, so that draws are about as peaked as a trained model's."""
    if weight.ndim == 1:
        return 0.1
    if key.startswith("embed"):
        return 1.0
    return (4.0 if key.startswith("head") else 1.0) / weight.shape[-1] ** 0.5


def _draws(weight: Weight, seed: int, device: torch.device) -> Callable[[int, int], Tensor]:
    """Spread so that hidden states and logits have unit size."""
    digest = hashlib.blake2b(f"{seed} {weight.name}".encode(), digest_size=7).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest, "little"))
    size = weight.shape
    spread = 0.1 if len(size) == 1 else 1.0 if size[0] > 8 * size[1] else size[1] ** -0.5
    mean = float("norm" in weight.parameter)

    def rows(start: int, stop: int) -> Tensor:
        return torch.randn((stop - start, *size[1:]), generator=generator, device=device).mul_(spread).add_(mean)

    return rows
