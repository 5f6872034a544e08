"""`unmask`, the command. Nothing here loads torch: a command imports what it needs when it runs."""

from unmask.cli.app import app, main

__all__ = ["app", "main"]
