"""The site builds without a broken link, and the pictures show what the decoders do."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.test_pages import ROOT
from tools.animation import animation, record
from tools.pictures import SCORE
from unmask.core import decoder
from unmask.decoders.search import BestFirstSearch
from unmask.policies.likelihood import likelihood


def test_the_pictures_score_texts_as_the_search_does():
    assert likelihood.make(SCORE) == BestFirstSearch().likelihood
    assert decoder.make("search") == BestFirstSearch()


@pytest.mark.slow
def test_the_animation_shows_a_wrong_path_and_a_right_deviation():
    scene = record()
    assert not scene.path.right
    assert scene.found.right
    for dark, name in ((False, "animation.svg"), (True, "animation-dark.svg")):
        drawn = animation(scene, dark)
        ElementTree.fromstring(drawn)
        assert (ROOT / "docs" / "pictures" / name).read_text("utf-8") == drawn, "run `make results`"


@pytest.mark.slow
def test_the_site_builds_without_broken_links(tmp_path: Path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "fonts.googleapis" not in (tmp_path / "site" / "index.html").read_text("utf-8")
