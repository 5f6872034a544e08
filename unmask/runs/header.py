"""A run's header, `run.json`: the settings of the run, and whether a different run may go on in its folder.

A run may grow in the folder that it has: by a larger limit, one more decoder, length, seed, task or model.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from unmask.errors import UnmaskError
from unmask.runs.files import write_whole
from unmask.runs.grid import decoder_label, task_label
from unmask.runs.record import check_format, checksum

HEAD = "run.json"
Digest = Callable[[str, int], dict[str, Any]]  # the hash of a task's first problems, so many
BY_TASK = ("task_versions", "prompts", "problems")
GROWS = {"models", "tasks", "decoders", "lengths", "seeds", "samples", "limit", "checkpoints", *BY_TASK}
REMEDY = "choose a different folder, or ask for the same run or a larger one"
log = logging.getLogger("unmask")


def read_head(folder: Path) -> dict[str, Any] | None:
    """Return the header in a folder, or None if there is none."""
    path = folder / HEAD
    try:
        if path.exists() and not path.is_file():  # a pipe or device would be read without an end
            raise UnmaskError(f"{str(path)!r} is not a file: it was not written by unmask")
        head = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UnmaskError(f"{str(path)!r} is not JSON: it was not written by unmask, or was changed since") from None
    if not isinstance(head, dict) or not isinstance(head.get("spec"), dict):
        raise UnmaskError(f"{str(path)!r} does not describe a run: it has no spec")
    check_format(head.get("format"), repr(str(folder)))
    if head.get("checksum") != _checksum(head):
        raise UnmaskError(f"{str(path)!r} was changed since it was written: checksum mismatch")
    return head


def write_head(folder: Path, head: dict[str, Any]) -> None:
    """Write the header with its checksum."""
    signed = {**head, "checksum": _checksum(head)}
    write_whole(folder / HEAD, json.dumps(signed, ensure_ascii=False, indent=1) + "\n")


def _checksum(head: dict[str, Any]) -> str:
    return checksum({key: value for key, value in head.items() if key != "checksum"})


def resume_header(folder: Path, head: dict[str, Any], begun: bool, digest: Digest) -> dict[str, Any]:
    """Return the header that a run goes on with, or refuse to mix two runs.

    It is the new one if nothing is recorded yet, else the stored one, which grows if the new run is larger.
    """
    stored = read_head(folder)
    if stored is None or not begun:
        write_head(folder, head)
        return head
    spec = json.loads(json.dumps(head["spec"]))  # tuples are lists on the disk
    if _asked(stored["spec"]) != _asked(spec):
        if why := _why_different(_asked(stored["spec"]), _asked(spec), digest):
            raise UnmaskError(f"{str(folder)!r} holds a different run{why}")
        stored = _grown(stored, {**head, "spec": spec})
        write_head(folder, stored)
    for model, checkpoint in zip(spec["models"], spec["checkpoints"], strict=True):
        note_checkpoint(folder, stored, model, checkpoint)
    change = difference(stored["arithmetic"], head["arithmetic"])
    if stored["deterministic"] and change:
        log.warning("%s was started with different arithmetic (%s): the last digits may differ", folder, change)
    return stored


def note_checkpoint(folder: Path, head: dict[str, Any], model: str, checkpoint: dict[str, Any] | None) -> None:
    """Refuse a checkpoint with a different fingerprint than the run's; note one that is not noted yet."""
    known, place = head["spec"]["checkpoints"], head["spec"]["models"].index(model)
    if checkpoint is None or known[place] == checkpoint:
        return
    if known[place] is not None:
        raise UnmaskError(
            f"{str(folder)!r} was started with a different checkpoint of {model} "
            f"({difference(known[place], checkpoint)}): use a different folder, or restore the original checkpoint"
        )
    known[place] = checkpoint
    write_head(folder, head)


def _asked(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a user asked for, without the fingerprints of the models."""
    return {key: value for key, value in spec.items() if key != "checkpoints"}


def _why_different(stored: dict[str, Any], spec: dict[str, Any], digest: Digest) -> str:
    """Return why a stored run cannot grow into this one; empty if it can."""
    missing, changed = _listed(_missing(stored, spec)), _changes(stored, spec, digest)
    if not changed:
        return f": name {missing} too, a run only grows; or choose a different folder" if missing else ""
    words = [f"{key}: {_contrast(*values)}" for key, values in changed.items()]
    return f" ({'; '.join([*words, *([f'{missing} not named here'] if missing else [])])}): {REMEDY}"


def _missing(stored: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    """Return what a stored run did and this one does not name, as short labels."""
    named = _labels(spec)
    lost = [label for label in _labels(stored) if label not in named]
    return lost or [full for full in stored["decoders"] if full not in spec["decoders"]]


def _labels(spec: dict[str, Any]) -> dict[str, None]:
    """Return the labels of everything that a run varies; decoders are written out for each length in turn."""
    lengths = spec["lengths"]
    decoders = (decoder_label(full, lengths[place % len(lengths)]) for place, full in enumerate(spec["decoders"]))
    names = [*spec["models"], *map(task_label, spec["tasks"]), *decoders, *(f"length {length}" for length in lengths)]
    return dict.fromkeys([*names, *(f"seed {seed}" for seed in spec["seeds"])])


def _changes(stored: dict[str, Any], spec: dict[str, Any], digest: Digest) -> dict[str, tuple[Any, Any]]:
    """Return the stored and the new value of every setting that is neither the same nor larger."""
    others = [key for key in dict.fromkeys([*stored, *spec]) if key not in GROWS and stored.get(key) != spec.get(key)]
    values = {key: (stored.get(key), spec.get(key)) for key in others}
    if stored["samples"] > spec["samples"]:
        values["samples"] = (stored["samples"], spec["samples"])
    limit, larger = stored["limit"], spec["limit"]
    fewer = larger is not None and (limit is None or limit > larger)
    if fewer:
        values["limit"] = (limit or "all", larger)
    for task in stored["tasks"]:
        if task in spec["tasks"]:
            values |= _task_changes(task, stored, spec, digest, fewer)
    return values


def _task_changes(
    task: str, stored: dict[str, Any], spec: dict[str, Any], digest: Digest, fewer: bool
) -> dict[str, tuple[Any, Any]]:
    """Return the changes of a task's version, prompts and problems; `fewer` problems are no change of their own."""
    before = {key: stored[key][stored["tasks"].index(task)] for key in BY_TASK}
    after = {key: spec[key][spec["tasks"].index(task)] for key in BY_TASK}
    count = before["problems"]["count"]
    if fewer:
        after["problems"] = before["problems"]
    elif count < after["problems"]["count"]:
        after["problems"] = digest(task, count)
    return {f"{key} of {task_label(task)}": (before[key], after[key]) for key in BY_TASK if before[key] != after[key]}


def _grown(stored: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """Return the header of the larger run: it began when the smaller one did, with the weights that were noted."""
    known = dict(zip(stored["spec"]["models"], stored["spec"]["checkpoints"], strict=True))
    new = dict(zip(head["spec"]["models"], head["spec"]["checkpoints"], strict=True))
    checkpoints = [known.get(model) or new[model] for model in head["spec"]["models"]]
    steps = [*stored.get("grown", ()), {"created": head["created"], "command": head.get("command", "")}]
    return {**stored, "cells": head.get("cells"), "spec": head["spec"] | {"checkpoints": checkpoints}, "grown": steps}


def arithmetic() -> dict[str, str]:
    """Return what decides the last bits of a CPU's sums: torch's instructions (`ATEN_CPU_CAPABILITY`), MKL's mode."""
    return {"instructions": torch.backends.cpu.get_cpu_capability(), "mkl": os.environ.get("MKL_CBWR", "")}


def difference(stored: dict[str, Any], spec: dict[str, Any]) -> str:
    """Return in words how stored values and new ones differ; empty if they do not."""
    keys = [key for key in dict.fromkeys([*stored, *spec]) if stored.get(key) != spec.get(key)]
    return "; ".join(f"{key}: {_contrast(stored.get(key), spec.get(key))}" for key in keys)


def _contrast(stored: Any, value: Any) -> str:
    if isinstance(stored, list) and isinstance(value, list):
        removed, added = [x for x in stored if x not in value], [x for x in value if x not in stored]
        if removed or added:
            stored, value = removed or "nothing more", added or "nothing more"
    return f"{_short(stored)} there, {_short(value)} here"


def _short(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    if isinstance(value, dict):
        value = ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value) if len(str(value)) <= 80 else str(value)[:79] + "…"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
