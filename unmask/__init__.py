"""Decode masked diffusion language models by searching over order and tokens."""

from unmask import environment
from unmask.version import __version__

environment.prepare()

__all__ = ["__version__"]
