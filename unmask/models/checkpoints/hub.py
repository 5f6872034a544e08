"""Checkpoints from the Hugging Face hub. Downloads are cached and resumed, and only needed files are fetched."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id

from unmask.errors import UnmaskError

SETTINGS = ["*.json", "*.jinja", "merges.txt"]  # everything but the weights: a few megabytes


def is_hub_id(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.count("/") == 1


def snapshot(name: str, patterns: list[str], revision: str | None = None) -> Path:
    """The folder in the local cache that holds these files; only missing ones are fetched."""
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except GatedRepoError:
        raise UnmaskError(f"{name} asks you to accept its terms: do so on its page, then run hf auth login") from None
    except RepositoryNotFoundError:
        raise UnmaskError(
            f"the hub has no model {name!r}: check the spelling, or run hf auth login if it is private"
        ) from None
    except RevisionNotFoundError:
        raise UnmaskError(f"{name} has no revision {revision!r} on the hub") from None
    except Exception as error:  # which errors mean no connection differs between versions of the library
        words = "" if isinstance(error, LocalEntryNotFoundError) else " ".join(str(error).split())[:100]
        raise UnmaskError(
            f"{name} is not in the local cache and the hub cannot be reached{words and f' ({words})'}: "
            "go online, or give the folder of a copy"
        ) from None
