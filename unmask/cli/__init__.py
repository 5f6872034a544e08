"""`unmask`, the command. Importing a command's file adds it to the application."""

from unmask.cli import bench, demo, env, eval, fill, generate, grade, list, models, report, train
from unmask.cli.app import app, main

__all__ = [
    "app",
    "bench",
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
    "train",
]
