"""What decides the last bits of a CPU's sums beside the code: machines that share a run should agree in it."""

from __future__ import annotations

import os

import torch


def arithmetic() -> dict[str, str]:
    """The instructions that torch uses (`ATEN_CPU_CAPABILITY` lowers them), and MKL's mode."""
    return {"instructions": torch.backends.cpu.get_cpu_capability(), "mkl": os.environ.get("MKL_CBWR", "")}


def contrast(there: dict[str, str], here: dict[str, str]) -> str:
    """In words; empty if they agree."""
    differing = [name for name in here if there.get(name) != here[name]]
    return ", ".join(f"{name} {there.get(name)} there, {here[name]} here" for name in differing)
