"""The families of checkpoints, by what they are made from. Importing this package registers them."""

from unmask.models.families import dream, llada, llada_moe, llama, qwen

__all__ = ["dream", "llada", "llada_moe", "llama", "qwen"]
