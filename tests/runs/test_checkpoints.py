"""A run notices other weights: one folder never holds the answers of two models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.runs.nano import run_here, small_grid
from unmask.errors import UnmaskError
from unmask.models.checkpoints import fingerprint as digests
from unmask.models.checkpoints.fingerprint import fingerprint
from unmask.runs.engine import Local
from unmask.runs.evaluation import evaluate
from unmask.runs.store import RECORDS, read_run
from unmask.runs.worker import Done, Job

SMALL = {"tasks": ["countdown"], "decoders": ["low-confidence(steps=2)"], "limit": 2}


@pytest.fixture
def folder(model: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "checkpoint"))


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def change_one_weight(folder: Path) -> None:
    """As training on would: a tensor's numbers move, names and sizes stay."""
    shard = shards(folder)[-1]
    tensors = load_file(shard)
    name = sorted(tensors)[-1]
    tensors[name] = tensors[name] + 0.5
    save_file(tensors, shard, metadata={"format": "pt"})


def change_template(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = "{{ messages[0]['content'] }}!"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("change", [change_one_weight, change_template])
def test_a_checkpoint_that_changed_under_its_path_is_refused(folder: Path, out: Path, change):
    grid = small_grid(str(folder), **SMALL)
    run_here(grid, out)
    before = (out / RECORDS).read_bytes()
    change(folder)
    with pytest.raises(UnmaskError, match=r"was started with a different checkpoint.*digest: \w+ there, \w+ here"):
        run_here(grid, out)
    assert (out / RECORDS).read_bytes() == before


def test_a_large_checkpoint_is_sampled_and_still_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch):
    whole = fingerprint(str(folder))
    monkeypatch.setattr(digests, "WHOLE", 0)
    before = fingerprint(str(folder))
    assert (whole and whole["weights"], before and before["weights"]) == ("whole", "sampled")
    change_one_weight(folder)
    after = fingerprint(str(folder))
    assert before is not None
    assert after is not None
    assert before["digest"] != after["digest"]


def test_a_digest_reads_little_of_a_large_shard(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A shard of 16 GB, nearly all of it a hole in the file: reading it whole would take minutes."""
    header = json.dumps({"w": {"dtype": "F16", "shape": [8 << 30], "data_offsets": [0, 16 << 30]}}).encode()
    with shards(folder)[0].open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + (16 << 30))
    read: list[int] = []
    block = digests._block
    monkeypatch.setattr(digests, "_block", lambda file, start, size: (read.append(size), block(file, start, size))[1])
    assert fingerprint(str(folder))
    assert sum(read) < 16 << 20  # a thousandth


def test_the_commit_of_a_hub_id_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = folder.rename(folder.with_name(commit))
    monkeypatch.setattr(digests, "checkpoint_folder", lambda name, revision: snapshot)
    recorded = fingerprint("someone/model")
    assert recorded
    assert (recorded["revision"], recorded["weights"]) == (commit, "revision")
    assert recorded["template"]


def test_a_model_built_by_code_has_no_digest():
    assert fingerprint("toy-chain(seed=3)") is None


class Elsewhere(Local):
    """An engine whose workers hold other weights."""

    def __init__(self, checkpoint: dict[str, str]) -> None:
        super().__init__()
        self.checkpoint = checkpoint

    def run(self, jobs, batches) -> Generator[tuple[Job, Done], None, None]:
        for job, done in super().run(jobs, batches):
            yield job, replace(done, checkpoint=self.checkpoint)


def test_a_worker_with_other_weights_is_refused(folder: Path, out: Path):
    with pytest.raises(UnmaskError, match="different checkpoint"):
        evaluate(small_grid(str(folder), **SMALL), out, Elsewhere({"digest": "other"}))
    assert not read_run(out).records
