"""One file per family of checkpoints. Importing this package registers them."""

from unmask.models.families import (
    a2d,
    dream,
    dream_reasoner,
    fast_dllm,
    illada,
    llada,
    llada2,
    llada_moe,
    sdar,
    stable_diffcoder,
)

__all__ = [
    "a2d",
    "dream",
    "dream_reasoner",
    "fast_dllm",
    "illada",
    "llada",
    "llada2",
    "llada_moe",
    "sdar",
    "stable_diffcoder",
]
