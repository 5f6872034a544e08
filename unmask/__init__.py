"""Decode masked diffusion language models by searching over order and tokens."""

from unmask.version import __version__

__all__ = ["__version__"]
