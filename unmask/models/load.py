"""From a name to a model on a device: a registered name, a folder, or a hub id."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from unmask.core import Denoiser
from unmask.errors import UnmaskError, nearest
from unmask.models.folder import Folder
from unmask.models.hub import SETTINGS, is_hub_id, snapshot
from unmask.models.memory import check_fits, choose_device, choose_dtype
from unmask.models.model import Model, model
from unmask.models.network import Network
from unmask.models.transformer import Shape, Transformer
from unmask.models.weights import Shards, fill


def load(
    name: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    *,
    revision: str | None = None,
    compiled: bool = False,
) -> Model:
    """A model by its registered name (`toy-chain(seed=3)`), its folder, or its hub id (`GSAI-ML/LLaDA-8B-Instruct`).

    Weights come onto `device` in `dtype`: unless said, float32 on a CPU and for registered models, bfloat16 elsewhere.
    `revision` is a branch, tag or commit of a hub id. `compiled` fuses the layers' small operations, on a GPU: each new
    kind of shape then waits some seconds for the compiler.
    """
    found = _load(name, choose_device(device), dtype, revision)
    if compiled:
        compile_layers(found.denoiser, found.name)
    return found


def _load(name: str | Path, chosen: torch.device, dtype: str | torch.dtype | None, revision: str | None) -> Model:
    if revision is not None and (registered(name) or is_folder(name)):
        raise UnmaskError(f"revision={revision!r} is for hub ids, which {str(name)!r} is not")
    if registered(name):
        return model.make(str(name)).load(chosen, None if dtype is None else choose_dtype(dtype, chosen))
    if is_folder(name):
        return load_folder(Path(name).expanduser(), chosen, dtype)
    if not is_hub_id(str(name)):
        raise UnmaskError(
            f"unknown model {str(name)!r}: {nearest(str(name), model)} (a folder, or a hub id such as "
            "GSAI-ML/LLaDA-8B-Instruct, works too)"
        )
    return load_hub(str(name), chosen, dtype, revision)


def compile_layers(denoiser: Denoiser, name: str) -> None:
    network = denoiser
    if not isinstance(network, Network):
        raise UnmaskError(f"{name} has no layers to compile: leave `compiled` out")
    if network.device.type == "cpu":
        raise UnmaskError("compiled layers are for a GPU: on a CPU leave `compiled` out, or give a device")
    torch._dynamo.config.recompile_limit = 32  # full and held forwards, with and without padding, each of any size
    for layer in network.module.layers:
        layer.compile()


def load_folder(
    path: str | Path,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    name: str | None = None,
) -> Model:
    """A checkpoint from its folder, in a family's published format."""
    folder, chosen = Folder.read(Path(path)), choose_device(device)
    wanted = choose_dtype(dtype, chosen)
    shards = Shards.of(folder.path)
    check_fits(name or str(path), folder.shape, wanted, chosen)
    module = empty(folder.shape, chosen, wanted)
    fill(module, folder.family, shards)
    denoiser = Network(module, folder.mask_id, folder.family.shifted)
    return Model(name or folder.path.resolve().name, denoiser, folder.text, folder.eos, folder.length)


def load_hub(name: str, device: torch.device, dtype: str | torch.dtype | None, revision: str | None = None) -> Model:
    """Settings come first, so that what cannot be used is refused before gigabytes are fetched."""
    folder = Folder.read(snapshot(name, SETTINGS, revision))
    check_fits(name, folder.shape, choose_dtype(dtype, device), device)
    shards = Shards.of(folder.path, here=False)
    return load_folder(snapshot(name, SETTINGS + shards.files, revision), device, dtype, name)


def empty(shape: Shape, device: torch.device, dtype: torch.dtype) -> Transformer:
    """The module with its memory taken on the device and nothing in it yet."""
    with torch.device("meta"):
        module = Transformer(shape)
    taken: dict[torch.nn.Parameter, torch.nn.Parameter] = {}  # a tied weight is met twice
    for part in module.modules():  # `to_empty` would untie, and imports sympy on the way
        for name, weight in list(part.named_parameters(recurse=False)):
            if weight not in taken:
                memory = torch.empty(weight.shape, device=device, dtype=dtype)
                taken[weight] = torch.nn.Parameter(memory, requires_grad=False)
            part.register_parameter(name, taken[weight])
    return module


def registered(name: str | Path) -> bool:
    known = [word for made in model for word in (made, *model.aliases(made))]
    return isinstance(name, str) and re.split(r"[\s(]", name, maxsplit=1)[0] in known


def is_folder(name: str | Path) -> bool:
    """Also what looks like one and is not there, so that the refusal speaks of a folder."""
    return isinstance(name, Path) or name.startswith(("/", "./", "../", "~")) or Path(name).is_dir()
