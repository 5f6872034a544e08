"""One file per family of checkpoints. Importing this package registers them."""

from unmask.models.families.dream import Dream
from unmask.models.families.llada import LLaDA

__all__ = ["Dream", "LLaDA"]
