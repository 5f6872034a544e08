"""Models: families of checkpoints, registered models, and loading. Importing this room registers both."""

import unmask.models.families  # noqa: F401  registers them
from unmask.models.load import default_block, default_length, load, load_folder
from unmask.models.model import Loader, Messages, Model, Text, model
from unmask.models.tiny import Tiny
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
    "default_block",
    "default_length",
    "load",
    "load_folder",
    "model",
]
