"""`unmask`, the command. Importing a command's file adds it to the application."""

from unmask.cli import grade, models, train
from unmask.cli.app import main

__all__ = ["grade", "main", "models", "train"]
