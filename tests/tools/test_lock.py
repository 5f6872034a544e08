"""The lock holds everything that development, CI and releases install, by hash."""

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import LOCK, ROOT, requirements

ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)(?: ; .*?)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    return {canonicalize_name(name): version for name, version, _ in ENTRY.findall(LOCK.read_text("utf-8"))}


def test_every_requirement_is_locked_at_a_version_that_it_allows(locked: dict[str, str]):
    for requirement in map(Requirement, requirements()):
        if requirement.marker is None or requirement.marker.evaluate():
            version = locked.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} is not in {LOCK.name}: run `make lock`"
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: run `make lock`"


def test_every_entry_has_hashes_and_no_address(locked: dict[str, str]):
    text = LOCK.read_text("utf-8")
    names = re.findall(r"^[A-Za-z0-9]\S*==", text, re.MULTILINE)
    assert len(names) == len(ENTRY.findall(text)) > 50
    assert "://" not in text
    assert "torch" not in locked


def test_the_build_backend_is_pinned():
    assert re.search(
        r'^requires = \["hatchling==[0-9.]+", ', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
