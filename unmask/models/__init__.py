"""Models: families of checkpoints, registered models, and loading. Importing this room registers both."""

from unmask.models.families import Dream, LLaDA
from unmask.models.family import Family, family
from unmask.models.load import default_length, load, load_folder
from unmask.models.model import Loader, Messages, Model, Text, model
from unmask.models.tiny import Tiny
from unmask.models.toy import ToyChain, ToyJoint, ToyTransformer

__all__ = [
    "Dream",
    "Family",
    "LLaDA",
    "Loader",
    "Messages",
    "Model",
    "Text",
    "Tiny",
    "ToyChain",
    "ToyJoint",
    "ToyTransformer",
    "default_length",
    "family",
    "load",
    "load_folder",
    "model",
]
