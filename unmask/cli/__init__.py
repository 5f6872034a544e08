"""`unmask`, the command. A command's file is imported when the command is used."""

from unmask.cli.app import app, main

__all__ = ["app", "main"]
