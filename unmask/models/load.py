"""From a name to a model on a device: a registered name, a folder, or a hub id."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from unmask.core import Denoiser
from unmask.errors import UnmaskError, nearest
from unmask.models.checkpoints.hub import SETTINGS, is_hub_id, snapshot
from unmask.models.checkpoints.manifest import read_block, read_length, read_manifest
from unmask.models.checkpoints.weights import Shards, fill
from unmask.models.devices import check_fits, choose_device, choose_dtype
from unmask.models.families.family import family
from unmask.models.model import Model, model
from unmask.models.network.network import Network, make_network
from unmask.models.network.transformer import Shape, Transformer


def load(
    name: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    *,
    revision: str | None = None,
    compiled: bool = False,
) -> Model:
    """A model by its registered name (`toy-chain(seed=3)`), its folder, or its hub id (`GSAI-ML/LLaDA-8B-Instruct`).

    Weights are loaded onto `device` in `dtype`: by default float32 on a CPU and for registered models, bfloat16
    elsewhere. `revision` is a branch, tag or commit of a hub id. `compiled` fuses the small operations of the layers,
    on a GPU only; the first input of each kind of shape then waits some seconds for the compiler.
    """
    chosen, folder = choose_device(device), checkpoint_folder(name, revision)
    if folder is None or registered(name):
        loaded = model.make(str(name)).load(chosen, None if dtype is None else choose_dtype(dtype, chosen))
    elif is_folder(name):
        loaded = load_folder(folder, chosen, dtype)
    else:  # an unusable checkpoint is refused before gigabytes are fetched
        check_fits(str(name), read_manifest(folder).shape, choose_dtype(dtype, chosen), chosen)
        files = SETTINGS + Shards.of(folder, local=False).files
        loaded = load_folder(snapshot(str(name), files, revision), chosen, dtype, str(name))
    if compiled:
        compile_layers(loaded.denoiser, loaded.name)
    return loaded


def default_length(name: str | Path, revision: str | None = None) -> int:
    """How many masks a model writes by default, read from its small files: no weights are loaded or fetched."""
    folder = checkpoint_folder(name, revision)
    if folder is None:
        return model.make(str(name)).load(torch.device("cpu"), None).default_length
    return read_length(folder)


def default_block(name: str | Path) -> int | None:
    """The block of a block-causal checkpoint, read from its small files; None for every other model."""
    folder = checkpoint_folder(name)
    return None if folder is None else read_block(folder)


def checkpoint_folder(name: str | Path, revision: str | None = None) -> Path | None:
    """The folder with the small files of a checkpoint; None for a registered model that is built by code."""
    if revision is not None and (registered(name) or is_folder(name)):
        raise UnmaskError(f"revision={revision!r} is for hub ids, and {str(name)!r} is not one")
    if registered(name):
        return getattr(model.make(str(name)), "folder", None)
    if is_folder(name):
        return Path(name).expanduser()
    check_name(name)
    return snapshot(str(name), SETTINGS, revision)


def check_name(name: str | Path) -> None:
    """Refuse what is neither a registered model nor a folder nor a hub id; nothing is read or fetched."""
    if not (registered(name) or is_folder(name) or is_hub_id(str(name))):
        if (word := str(name).lower()) in list(family):
            example = family.find(word).example
            raise UnmaskError(f"{str(name)!r} is a family of models: name a checkpoint of it, such as {example}")
        raise UnmaskError(
            f"unknown model {str(name)!r}: {nearest(str(name), model)} (a folder, or a hub id such as "
            "GSAI-ML/LLaDA-8B-Instruct, works too)"
        )


def load_folder(
    path: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    name: str | None = None,
) -> Model:
    """A checkpoint from its folder, in the published format of its family."""
    folder, chosen = Path(path), choose_device(device)
    manifest, wanted = read_manifest(folder), choose_dtype(dtype, chosen)
    shards = Shards.of(folder)
    check_fits(name or str(path), manifest.shape, wanted, chosen)
    module = empty(manifest.shape, chosen, wanted)
    fill(module, manifest.family, shards)
    denoiser = make_network(module, manifest.mask_id, manifest.family.shifted)
    return Model(name or folder.resolve().name, denoiser, manifest.text, manifest.eos, manifest.length)


def compile_layers(denoiser: Denoiser, name: str) -> None:
    if not isinstance(denoiser, Network):
        raise UnmaskError(f"{name} has no layers to compile: leave out `compiled`")
    if denoiser.device.type == "cpu":
        raise UnmaskError("compiled layers need a GPU: on a CPU leave out `compiled`, or choose another device")
    torch._dynamo.config.recompile_limit = 32  # full and cached forwards, with and without padding, of any size
    for layer in denoiser.module.layers:
        layer.compile()


def empty(shape: Shape, device: torch.device, dtype: torch.dtype) -> Transformer:
    """The module with its memory allocated on the device and not yet filled."""
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


def registered(name: str | Path) -> bool:
    known = {word for known in model for word in (known, *model.aliases(known))}
    return isinstance(name, str) and re.split(r"[\s(]", name, maxsplit=1)[0] in known


def is_folder(name: str | Path) -> bool:
    """Also true of a path that does not exist, so that the error speaks of a folder."""
    return isinstance(name, Path) or name.startswith(("/", "./", "../", "~")) or Path(name).is_dir()
