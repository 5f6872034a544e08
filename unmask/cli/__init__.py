"""`unmask`, the command. Importing a command's file adds it to the application."""

from unmask.cli import demo, env, eval, fill, generate, grade, list, models, report, reproduce, train, tree
from unmask.cli.app import app, main

__all__ = [
    "app",
    "demo",
    "env",
    "eval",
    "fill",
    "generate",
    "grade",
    "list",
    "main",
    "models",
    "report",
    "reproduce",
    "train",
    "tree",
]
