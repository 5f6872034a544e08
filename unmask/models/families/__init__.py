"""One file per family of checkpoints. Importing this package registers them."""

from unmask.models.families import dream, llada

__all__ = ["dream", "llada"]
