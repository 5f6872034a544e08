"""A run may grow: a larger limit, one more decoder, length, seed, task or model, in the folder that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Digest = Callable[[str, int], dict[str, Any]]  # of a task's first problems, so many
LISTS = ("models", "decoders", "lengths", "seeds")
BY_TASK = ("task_versions", "prompts", "problems")


def extends(stored: dict[str, Any], spec: dict[str, Any], digest: Digest) -> bool:
    """Whether everything that a stored run did is part of this one, to the letter of its problems."""
    grown = {*LISTS, *BY_TASK, "tasks", "samples", "limit", "checkpoints"}
    same = all(stored.get(key) == spec.get(key) for key in {*stored, *spec} - grown)
    if not same or any(key not in stored for key in grown - {"checkpoints"}):
        return False
    wider = all(set(stored[key]) <= set(spec[key]) for key in (*LISTS, "tasks"))
    more = stored["samples"] <= spec["samples"] and _within(stored["limit"], spec["limit"])
    return wider and more and all(_same_task(stored, spec, task, digest) for task in stored["tasks"])


def _within(limit: int | None, larger: int | None) -> bool:
    return larger is None or (limit is not None and limit <= larger)


def _same_task(stored: dict[str, Any], spec: dict[str, Any], task: str, digest: Digest) -> bool:
    before = {key: stored[key][stored["tasks"].index(task)] for key in BY_TASK}
    after = {key: spec[key][spec["tasks"].index(task)] for key in BY_TASK}
    if before["problems"] != after["problems"]:
        if before["problems"]["count"] > after["problems"]["count"]:
            return False
        after["problems"] = digest(task, before["problems"]["count"])
    return before == after


def grow(stored: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """The head of the larger run: it began when the smaller one did, with the weights that one noted."""
    known = dict(zip(stored["spec"]["models"], stored["spec"].get("checkpoints", ()), strict=False))
    new = dict(zip(head["spec"]["models"], head["spec"].get("checkpoints", ()), strict=False))
    checkpoints = [known.get(model) or new.get(model) for model in head["spec"]["models"]]
    steps = [*stored.get("grown", ()), {"created": head["created"], "command": head.get("command", "")}]
    return {**stored, "cells": head.get("cells"), "spec": head["spec"] | {"checkpoints": checkpoints}, "grown": steps}
