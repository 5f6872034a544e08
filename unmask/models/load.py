"""From a name to a model on a device: a registered name, a folder, or an id of the Hugging Face hub."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id

from unmask.core import Denoiser
from unmask.errors import UnmaskError, nearest
from unmask.models.checkpoints.manifest import Defaults, read_defaults, read_manifest
from unmask.models.checkpoints.weights import Shards, fill
from unmask.models.devices import DTYPES, check_fits, choose_device, choose_dtype, needed, weights_bytes
from unmask.models.families.family import family
from unmask.models.model import Model, model
from unmask.models.network.network import Network
from unmask.models.network.transformer import Shape, Transformer

SETTINGS = ["*.json", "*.jinja", "merges.txt"]  # everything but the weights: a few megabytes
# A cache is exact only where no position depends on what comes after its block.
FULL_CACHES = {"exact": [], "approximate": ["prefix", "dual"]}
BLOCK_CACHES = {"exact": ["exact"], "approximate": []}


def load(
    name: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    *,
    revision: str | None = None,
    compiled: bool = False,
) -> Model:
    """Load a model by its registered name (`toy-chain(seed=3)`), folder, or hub id (`GSAI-ML/LLaDA-8B-Instruct`).

    Weights are loaded onto `device` in `dtype`: by default float32 on a CPU and for registered models, bfloat16
    elsewhere. `revision` is a branch, tag or commit of a hub id. `compiled` fuses the small operations of the layers,
    on a GPU only; the first input of each kind of shape then waits some seconds for the compiler.
    """
    chosen, folder = choose_device(device), checkpoint_folder(name, revision)
    if folder is None or registered(name):
        loaded = model.make(str(name)).load(chosen, None if dtype is None else choose_dtype(dtype, chosen))
    elif is_folder(name):
        loaded = load_folder(folder, chosen, dtype)
    else:
        loaded = _load(str(name), folder, chosen, dtype, hub=True)
    if compiled:
        compile_layers(loaded.denoiser, loaded.name)
    return loaded


def load_folder(
    path: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    name: str | None = None,
) -> Model:
    """Load a checkpoint from its folder, in the published format of its family."""
    folder = Path(path)
    return _load(name or folder.resolve().name, folder, choose_device(device), dtype)


def _load(name: str, folder: Path, device: torch.device, dtype: str | torch.dtype | None, hub: bool = False) -> Model:
    """Load a checkpoint. The weights of a hub id are downloaded here: an unusable checkpoint is refused before."""
    manifest, shards = read_manifest(folder), Shards.of(folder, local=not hub)
    wanted = choose_dtype(dtype, device)
    check_fits(name, manifest.shape, wanted, device)
    if hub:
        commit = folder.name  # the one whose small files were read
        shards = replace(shards, folder=snapshot(name, [*SETTINGS, *shards.files], revision=commit))
    module = empty(manifest.shape, device, wanted)
    fill(module, manifest.family, shards)
    denoiser = Network(module, manifest.mask_id, manifest.family.shifted)
    return Model(name, denoiser, manifest.text, manifest.eos, manifest.length)


@model("tiny")
@dataclass(frozen=True)
class Tiny:
    """The embedded model: a small LLaDA trained on generated tasks, shipped in the package (docs/models.md)."""

    folder: ClassVar[Path] = Path(__file__).with_name("tiny_weights")

    def load(self, device: torch.device, dtype: torch.dtype | None) -> Model:
        return load_folder(self.folder, device, dtype or torch.float32, name="tiny")


def defaults(name: str | Path, revision: str | None = None) -> Defaults:
    """Return a model's default length and block size. Of a checkpoint only its config files are read or downloaded."""
    folder = checkpoint_folder(name, revision)
    if folder is not None:
        return read_defaults(folder)
    built = model.make(str(name)).load(torch.device("cpu"), None)
    return Defaults(built.default_length, built.denoiser.block_size)


def checkpoint_folder(name: str | Path, revision: str | None = None) -> Path | None:
    """Return the folder with the small files of a checkpoint; None for a registered model that is built by code."""
    if revision is not None and (registered(name) or is_folder(name)):
        raise UnmaskError(f"revision={revision!r} is only for hub ids, and {str(name)!r} is not one")
    if registered(name):
        return getattr(model.make(str(name)), "folder", None)
    if is_folder(name):
        return Path(name).expanduser()
    check_name(name)
    return snapshot(str(name), SETTINGS, revision)


def snapshot(name: str, patterns: list[str], revision: str | None = None) -> Path:
    """Return the folder in the hub's local cache that holds these files; only missing ones are downloaded."""
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except GatedRepoError:
        raise UnmaskError(f"{name} is gated: accept its terms on its page, then run hf auth login") from None
    except RepositoryNotFoundError:
        raise UnmaskError(
            f"the hub has no model {name!r}: check the spelling, or run hf auth login if it is private"
        ) from None
    except RevisionNotFoundError:
        raise UnmaskError(f"{name} has no revision {revision!r} on the hub") from None
    except Exception as error:  # which errors mean no connection differs between versions of the library
        words = "" if isinstance(error, LocalEntryNotFoundError) else " ".join(str(error).split())[:100]
        raise UnmaskError(
            f"{name} is not in the local cache and the hub cannot be reached{words and f' ({words})'}: "
            "go online, or name the folder of a copy"
        ) from None


def check_name(name: str | Path) -> None:
    """Refuse what is neither a registered model nor a folder nor a hub id; nothing is read or downloaded."""
    if not (registered(name) or is_folder(name) or is_hub_id(str(name))):
        if (word := str(name).lower()) in list(family):
            example = family.find(word).example
            raise UnmaskError(f"{str(name)!r} is a family of models: name a checkpoint of it, such as {example}")
        raise UnmaskError(
            f"unknown model {str(name)!r}: {nearest(str(name), model)} (a folder, or a hub id such as "
            "GSAI-ML/LLaDA-8B-Instruct, is possible too)"
        )


def registered(name: str | Path) -> bool:
    known = {word for known in model for word in (known, *model.aliases(known))}
    return isinstance(name, str) and re.split(r"[\s(]", name, maxsplit=1)[0] in known


def is_folder(name: str | Path) -> bool:
    """Return whether the name is a path, also of a folder that does not exist, so that errors speak of a folder."""
    return isinstance(name, Path) or name.startswith(("/", "./", "../", "~")) or Path(name).is_dir()


def is_hub_id(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.count("/") == 1


def compile_layers(denoiser: Denoiser, name: str) -> None:
    """Let torch compile the layers of a network on a GPU."""
    if not isinstance(denoiser, Network):
        raise UnmaskError(f"{name} has no layers to compile: leave out `compiled`")
    if denoiser.device.type == "cpu":
        raise UnmaskError("compiled layers need a GPU: leave out `compiled`, or choose a different device")
    torch._dynamo.config.recompile_limit = 32  # full and cached forwards, with and without padding, of any size
    for layer in denoiser.module.layers:
        layer.compile()


def empty(shape: Shape, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Return a module whose weights are allocated on the device and not yet filled."""
    with torch.device("meta"):
        module = Transformer(shape)
    allocated: dict[torch.nn.Parameter, torch.nn.Parameter] = {}  # a tied weight occurs twice
    for part in module.modules():  # `to_empty` would untie, and imports sympy
        for name, weight in list(part.named_parameters(recurse=False)):
            if weight not in allocated:
                memory = torch.empty(weight.shape, device=device, dtype=dtype)
                allocated[weight] = torch.nn.Parameter(memory, requires_grad=False)
            part.register_parameter(name, allocated[weight])
    return module


@dataclass(frozen=True)
class Inspection:
    """The facts about a checkpoint that `unmask models inspect` shows."""

    name: str
    family: str
    shape: Shape
    parameters: int
    bytes: dict[str, int]  # size of the weights, per dtype
    needed: dict[str, int]  # memory to run it, per dtype
    mask_id: int
    mask: str | None  # text of the mask
    eos: dict[int, str]
    template: bool  # it has a chat template
    length: int  # masks written by default
    attention: str  # full or block-causal
    caches: dict[str, list[str]]  # its exact and its approximate KV caches
    shards: list[str]
    missing: list[str]  # shards that are not on this machine
    stored: int | None  # bytes of all shards, where known


def inspect_checkpoint(name: str | Path, revision: str | None = None) -> Inspection:
    """Describe a checkpoint by its folder or hub id. Of a hub id only the small files are downloaded."""
    folder = checkpoint_folder(name, revision)
    if folder is None:
        raise UnmaskError(f"{str(name)!r} is built by code, not read from a checkpoint: it has no files to inspect")
    manifest, shards = read_manifest(folder), Shards.of(folder, local=registered(name) or is_folder(name))
    tokenizer, shape = manifest.text.tokenizer, manifest.shape
    return Inspection(
        name=str(name),
        family=manifest.family.name,
        shape=shape,
        parameters=shape.parameters,
        bytes={dtype: weights_bytes(shape, dtype) for dtype in DTYPES},
        needed={dtype: needed(shape, dtype) for dtype in DTYPES},
        mask_id=manifest.mask_id,
        mask=tokenizer.id_to_token(manifest.mask_id),
        eos={number: tokenizer.id_to_token(number) or "" for number in sorted(manifest.eos)},
        template=manifest.text.template is not None,
        length=manifest.length,
        attention="full" if shape.block is None else "block-causal",
        caches=FULL_CACHES if shape.block is None else BLOCK_CACHES,
        shards=shards.files,
        missing=[file for file in shards.files if not (folder / file).exists()],
        stored=shards.total or shards.bytes or None,
    )
