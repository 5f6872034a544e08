"""Decode masked diffusion language models by searching over order and tokens."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unmask import environment
from unmask.version import __version__

environment.prepare()

if TYPE_CHECKING:
    from unmask.api import Moment as Moment
    from unmask.api import fill as fill
    from unmask.api import generate as generate
    from unmask.api import load as load
    from unmask.api import score as score
    from unmask.api import stream as stream
    from unmask.core import reseed as reseed
    from unmask.errors import UnmaskError as UnmaskError
    from unmask.models import Model as Model
    from unmask.models.hf import wrap as wrap
    from unmask.runs.generation import Output as Output
    from unmask.runs.scoring import Scored as Scored
    from unmask.runs.settings import Decoding as Decoding
    from unmask.runs.trace import Trace as Trace
    from unmask.serve.engine import AsyncEngine as AsyncEngine

# Names that need torch are imported on first use, so that importing unmask is cheap.
_HOMES = {
    "AsyncEngine": "unmask.serve.engine",
    "Decoding": "unmask.runs.settings",
    "Model": "unmask.models",
    "Moment": "unmask.api",
    "Output": "unmask.runs.generation",
    "Scored": "unmask.runs.scoring",
    "Trace": "unmask.runs.trace",
    "UnmaskError": "unmask.errors",
    "fill": "unmask.api",
    "generate": "unmask.api",
    "load": "unmask.api",
    "reseed": "unmask.core",
    "score": "unmask.api",
    "stream": "unmask.api",
    "wrap": "unmask.models.hf",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
