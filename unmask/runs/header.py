"""What decides the last bits of a CPU's sums beside the code: machines that share a run should agree in it. A run may grow: a larger limit, one more decoder, length, seed, task or model, in the folder that it has. A run's head, `run.json`: what the run is, and whether another run may go on in its folder."""

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


def arithmetic() -> dict[str, str]:
    """The instructions that torch uses (`ATEN_CPU_CAPABILITY` lowers them), and MKL's mode."""
    return {"instructions": torch.backends.cpu.get_cpu_capability(), "mkl": os.environ.get("MKL_CBWR", "")}


def contrast(there: dict[str, str], here: dict[str, str]) -> str:
    """In words; empty if they agree."""
    differing = [name for name in here if there.get(name) != here[name]]
    return ", ".join(f"{name} {there.get(name)} there, {here[name]} here" for name in differing)


Digest = Callable[[str, int], dict[str, Any]]  # of a task's first problems, so many
BY_TASK = ("task_versions", "prompts", "problems")
GROWS = {"models", "tasks", "decoders", "lengths", "seeds", "samples", "limit", "checkpoints", *BY_TASK}


def lacks(stored: dict[str, Any], spec: dict[str, Any]) -> list[str]:
    """What a stored run did and this one does not name, by short labels."""
    lost = {full: label for full, label in _labels(stored).items() if full not in spec["decoders"]}
    decoders = [label for label in dict.fromkeys(lost.values()) if label not in _labels(spec).values()]
    tasks = [task_label(task) for task in stored["tasks"] if task not in spec["tasks"]]
    models = [model for model in stored["models"] if model not in spec["models"]]
    lengths = [f"length {length}" for length in stored["lengths"] if length not in spec["lengths"]]
    seeds = [f"seed {seed}" for seed in stored["seeds"] if seed not in spec["seeds"]]
    return [*models, *tasks, *decoders, *lengths, *seeds] or list(lost)


def _labels(spec: dict[str, Any]) -> dict[str, str]:
    """Of each decoder; they are written out for each length in turn."""
    lengths = spec["lengths"]
    return {full: decoder_label(full, lengths[place % len(lengths)]) for place, full in enumerate(spec["decoders"])}


def changes(stored: dict[str, Any], spec: dict[str, Any], digest: Digest) -> dict[str, tuple[Any, Any]]:
    """What is neither the same nor larger, to the letter of the problems: by name, the stored value and the new one."""
    others = [key for key in dict.fromkeys([*stored, *spec]) if key not in GROWS and stored.get(key) != spec.get(key)]
    values = {key: (stored.get(key), spec.get(key)) for key in others}
    if stored["samples"] > spec["samples"]:
        values["samples"] = (stored["samples"], spec["samples"])
    fewer = not _within(stored["limit"], spec["limit"])
    if fewer:
        values["limit"] = (stored["limit"] or "all", spec["limit"])
    for task in stored["tasks"]:
        if task in spec["tasks"]:
            values |= _changes_of(task, stored, spec, digest, fewer)
    return values


def _within(limit: int | None, larger: int | None) -> bool:
    return larger is None or (limit is not None and limit <= larger)


def _changes_of(
    task: str, stored: dict[str, Any], spec: dict[str, Any], digest: Digest, fewer: bool
) -> dict[str, tuple[Any, Any]]:
    """Of a task's version, wording and problems; `fewer` of these are no change of their own."""
    before = {key: stored[key][stored["tasks"].index(task)] for key in BY_TASK}
    after = {key: spec[key][spec["tasks"].index(task)] for key in BY_TASK}
    count = before["problems"]["count"]
    if fewer:
        after["problems"] = before["problems"]
    elif count < after["problems"]["count"]:
        after["problems"] = digest(task, count)
    return {f"{key} of {task_label(task)}": (before[key], after[key]) for key in BY_TASK if before[key] != after[key]}


def grow(stored: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """The head of the larger run: it began when the smaller one did, with the weights that one noted."""
    known = dict(zip(stored["spec"]["models"], stored["spec"].get("checkpoints", ()), strict=False))
    new = dict(zip(head["spec"]["models"], head["spec"].get("checkpoints", ()), strict=False))
    checkpoints = [known.get(model) or new.get(model) for model in head["spec"]["models"]]
    steps = [*stored.get("grown", ()), {"created": head["created"], "command": head.get("command", "")}]
    return {**stored, "cells": head.get("cells"), "spec": head["spec"] | {"checkpoints": checkpoints}, "grown": steps}


HEAD = "run.json"
log = logging.getLogger("unmask")


def read_head(folder: Path) -> dict[str, Any] | None:
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
    signed = "checksum" in head or "checkpoints" in head["spec"]  # earlier versions wrote neither
    if signed and head.get("checksum") != _checksum(head):
        raise UnmaskError(f"{str(path)!r} was changed since it was written: its checksum is another")
    check_format(head.get("format"), repr(str(folder)))
    return head


def write_head(folder: Path, head: dict[str, Any]) -> None:
    signed = {**head, "checksum": _checksum(head)}
    write_whole(folder / HEAD, json.dumps(signed, ensure_ascii=False, indent=1) + "\n")


def _checksum(head: dict[str, Any]) -> str:
    """Of everything else in the head."""
    return checksum({key: value for key, value in head.items() if key != "checksum"})


def agree(folder: Path, head: dict[str, Any], begun: bool, digest: Digest | None = None) -> dict[str, Any]:
    """The head the run began with; this one where nothing is recorded yet; both where the run grows."""
    stored = read_head(folder)
    if stored is None or not begun:
        write_head(folder, head)
        return head
    spec = json.loads(json.dumps(head["spec"]))  # tuples are lists on the disk
    if _asked(stored["spec"]) != _asked(spec):
        if refusal := _refusal(_asked(stored["spec"]), _asked(spec), digest):
            raise UnmaskError(f"{str(folder)!r} holds another run{refusal}")
        stored = grow(stored, {**head, "spec": spec})
        write_head(folder, stored)
    for model, checkpoint in zip(spec.get("models", ()), spec.get("checkpoints", ()), strict=False):
        if learn(folder, stored, model, checkpoint):
            log.warning("%s does not say which weights of %s it began with: these are noted now", folder, model)
    change = contrast(stored["arithmetic"], head["arithmetic"]) if "arithmetic" in stored else ""
    if stored.get("deterministic") and change:
        log.warning("%s was begun with other arithmetic (%s): the last digits of scores may differ", folder, change)
    return stored


def learn(folder: Path, head: dict[str, Any], model: str, checkpoint: dict[str, Any] | None) -> bool:
    """Refuse another checkpoint than the run's; note one that is not noted yet, and tell whether that was done."""
    spec = head["spec"]
    known = spec.setdefault("checkpoints", [None] * len(spec["models"]))
    place = spec["models"].index(model)
    if checkpoint is None or known[place] == checkpoint:
        return False
    if known[place] is not None:
        raise UnmaskError(
            f"{str(folder)!r} was begun with another checkpoint of {model} "
            f"({difference(known[place], checkpoint)}): choose another folder, or put the old one back"
        )
    known[place] = checkpoint
    write_head(folder, head)
    return True


def _asked(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec without what the machine answered to it."""
    return {key: value for key, value in spec.items() if key != "checkpoints"}


def _refusal(stored: dict[str, Any], spec: dict[str, Any], digest: Digest | None) -> str:
    """Why a stored run cannot grow into this one, in words; empty if it can."""
    remedy = "choose another folder, or ask for the same run or a larger one"
    if digest is None or not stored.keys() | {"checkpoints"} >= GROWS:  # of a version whose runs did not grow
        return f" ({difference(stored, spec)}): {remedy}"
    missing, changed = _listed(lacks(stored, spec)), changes(stored, spec, digest)
    if not changed:
        return f": name {missing} too, a run only grows; or choose another folder" if missing else ""
    words = [f"{key}: {_contrast(*values)}" for key, values in changed.items()]
    return f" ({'; '.join([*words, *([f'{missing} not named here'] if missing else [])])}): {remedy}"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def difference(stored: dict[str, Any], spec: dict[str, Any]) -> str:
    """In words: how a stored spec and a new one differ."""
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
