"""A run may grow: a larger limit, one more decoder, length, seed, task or model, in the folder that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unmask.runs.short_spec import decoder_label, task_label

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
