"""Refusals live in `unmask.errors`, which loads nothing: a misspelt command need not wait for torch."""

from unmask.errors import UnmaskError, nearest

__all__ = ["UnmaskError", "nearest"]
