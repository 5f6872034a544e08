"""Models: one family a file; oddities stop here. Importing this room registers the models that have names."""

from unmask.models.load import load, load_folder
from unmask.models.model import Messages, Model, Source, Text, model
from unmask.models.tiny import Tiny
from unmask.models.toy import ToyChain, ToyJoint, ToyTransformer

__all__ = [
    "Messages",
    "Model",
    "Source",
    "Text",
    "Tiny",
    "ToyChain",
    "ToyJoint",
    "ToyTransformer",
    "load",
    "load_folder",
    "model",
]
