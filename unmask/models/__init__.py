"""Models: families of checkpoints, registered models, and loading. Importing this package registers both."""

import unmask.models.families  # noqa: F401  registers them
from unmask.models.load import Tiny, defaults, load, load_folder
from unmask.models.model import Loader, Messages, Model, Text, model
from unmask.models.toy import ToyChain, ToyJoint, ToyTransformer

__all__ = [
    "Loader",
    "Messages",
    "Model",
    "Text",
    "Tiny",
    "ToyChain",
    "ToyJoint",
    "ToyTransformer",
    "defaults",
    "load",
    "load_folder",
    "model",
]
