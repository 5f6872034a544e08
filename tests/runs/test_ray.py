"""Two workers, workers that die, a problem that kills them, a cluster that was there before."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import unmask
from tests.runs.nano import DECODERS, lasting, run_here, small_grid
from tests.runs.processes import ENVIRON, ROOT, actors, descendants, evaluating, finished, wait_for_lines
from unmask.errors import UnmaskError
from unmask.runs.engine import Batches, make_engine
from unmask.runs.record import Cell, Measured
from unmask.runs.settings import Decoding, Placement
from unmask.runs.store import RECORDS, read_run
from unmask.runs.worker import Answer, Done, Job

pytest.importorskip("ray")
from unmask.runs.ray_engine import Queue

DEADLY = """
import os, signal
from dataclasses import dataclass, field, replace
from unmask.core import Decoder, decoder

@decoder("deadly")
@dataclass(frozen=True)
class Deadly(Decoder):
    target: int
    inner: Decoder = field(default_factory=lambda: decoder.make("low-confidence"))
    choice = "score"
    def __call__(self, rows):
        canvas = rows.canvas
        for tokens, pad in zip(canvas.tokens, canvas.pad.tolist()):
            if int(tokens[pad:canvas.start].sum()) == self.target:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.inner(rows)
    def resolved(self, length):
        return replace(self, inner=self.inner.resolved(length))
    def max_forward_passes(self, length):
        return self.inner.max_forward_passes(length)
"""


def job(*problems: str) -> Job:
    posed = tuple((name, ({"role": "user", "content": name},)) for name in problems)
    decoding = Decoding(length=8, seed=7, cache="dual(refresh=4)", stop=("x", "y"))
    placement = Placement("cpu", "float32", batch=2, memory=0.5)
    return Job(Cell("m", "countdown", "d", 8), 0, 0, decoding, placement, False, posed)


def names(job: Job) -> list[str]:
    return [problem for problem, _ in job.problems]


def test_jobs_and_results_can_be_sent_to_another_process():
    done = Done((Answer(job("a").record("a", measured=Measured(batch=1)), "uncut", "trace"),), 3, True, 0.5)
    for value in (job("a", "b"), done):
        assert pickle.loads(pickle.dumps(value)) == value


def test_a_batch_that_died_goes_again_one_by_one_and_only_the_deadly_problem_is_left_out():
    queue = Queue([job("a", "b", "c")], Batches(2))
    first = queue.next()
    assert names(first) == ["a", "b"]
    assert queue.died(first) is None
    alone = queue.next()
    assert names(alone) == ["a"]
    assert queue.died(alone) is None  # once alone may have been chance
    assert [names(queue.next()) for _ in range(3)] == [["b"], ["a"], ["c"]]
    failed = queue.died(alone)
    assert failed is not None
    assert failed.answers[0].record.error == "the worker died 2 times on this problem alone: it was left out"
    assert not len(queue)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "rayy"}, "did you mean 'ray'"),
        ({"workers": 2}, "--workers is for --engine ray"),
        ({"address": "auto"}, "--address is for --engine ray"),
        ({"name": "ray", "workers": 0}, "workers must be at least 1"),
    ],
)
def test_engines_that_cannot_be_are_refused(wrong: dict[str, Any], sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        make_engine(**wrong)


def words(model: str, out: Path, *more: str, limit: int = 9) -> list[str]:
    """The small grid under two workers; an option given again in `more` counts instead."""
    grid = ["--model", model, "--task", "countdown", "--task", "mini-gsm(level=2)"]
    for spec in DECODERS:
        grid += ["--decoder", spec]
    grid += ["--length", "8", "--limit", str(limit), "--device", "cpu"]
    return [*grid, "--engine", "ray", "--workers", "2", "--out", str(out), *more]


@pytest.mark.slow
@pytest.mark.parametrize(("embedded", "limit"), [(False, 40), (True, 8)])
def test_two_workers_give_the_records_of_one_process(model: str, tmp_path: Path, embedded: bool, limit: int):
    model = "tiny" if embedded else model
    code, _, err = finished(*words(model, tmp_path / "ray", "--batch", "1", limit=limit))
    assert code == 0, err
    run = read_run(tmp_path / "ray")
    assert lasting(run) == lasting(run_here(small_grid(model, limit=limit), tmp_path / "local", 7))
    assert len({record.measured.worker for record in run.records}) == 2
    assert run.head["spec"] == read_run(tmp_path / "local").head["spec"]


@pytest.mark.slow
def test_workers_killed_at_random_moments_change_nothing(model: str, tmp_path: Path):
    draw = random.Random(3)
    out = tmp_path / "ray"
    kills = 0
    with evaluating(*words(model, out, "--batch", "3", "--samples", "3", limit=40)) as run:
        target = 0
        while kills < 8:
            target += draw.randrange(5, 60)
            if not wait_for_lines(out / RECORDS, target, run):
                break
            time.sleep(draw.random() * 0.05)
            living = actors(run.pid)
            if living:
                os.kill(draw.choice(living), signal.SIGKILL)
                kills += 1
        _, err = run.communicate(timeout=300)
        assert run.returncode == 0, err
    assert kills == 8
    done = read_run(out)
    assert lasting(done) == lasting(run_here(small_grid(model, limit=40, samples=3), tmp_path / "local"))
    assert (out / RECORDS).read_bytes().count(b"\n") == len(done.records) == 720


@pytest.mark.slow
def test_a_run_killed_with_its_cluster_is_resumed_by_a_different_engine(model: str, tmp_path: Path):
    out = tmp_path / "ray"
    with evaluating(*words(model, out, "--batch", "2", limit=40)) as run:
        assert wait_for_lines(out / RECORDS, 20, run)
        workers, cluster = actors(run.pid), descendants(run.pid)  # while they can be told from others
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    assert 20 <= len(read_run(out).records) < 240
    here = run_here(small_grid(model, limit=40), out)
    assert lasting(here) == lasting(run_here(small_grid(model, limit=40), tmp_path / "local"))
    assert workers
    assert all(map(_gone, workers)), "a worker outlived its run, and the model with it"
    _end(cluster)


def _gone(pid: int, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def _end(cluster: list[int]) -> None:
    """Ray's own agents notice a minute later; these were descendants of the run, and are still Ray's."""
    for pid in cluster:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::"):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_problem_that_kills_its_workers_is_a_recorded_failure(model: str, tmp_path: Path):
    package = tmp_path / "package"
    info = package / "deadly-1.dist-info"
    info.mkdir(parents=True)
    (package / "deadly.py").write_text(DEADLY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[unmask.decoders]\ndeadly = deadly\n")
    plain = run_here(small_grid(model, tasks=["countdown"], decoders=["low-confidence"]), tmp_path / "plain")
    text = unmask.load(model, "cpu").text
    sums = [sum(text.encode(record.prompt)) for record in plain.records]
    victim = next(place for place, total in enumerate(sums) if sums.count(total) == 1)
    out = tmp_path / "ray"
    code, printed, err = finished(
        *("--model", model, "--task", "countdown", "--decoder", f"deadly(target={sums[victim]})", "--length", "8"),
        *("--limit", "9", "--device", "cpu", "--engine", "ray", "--workers", "2", "--batch", "4", "--out", str(out)),
        path=package,
    )
    assert code == 0, err
    assert "1 failed" in printed
    for place, (record, expected) in enumerate(zip(read_run(out).records, plain.records, strict=True)):
        assert record.problem == expected.problem
        if place == victim:
            assert record.error == "the worker died 2 times on this problem alone: it was left out"
        else:
            assert (record.text, record.likelihood, record.error) == (expected.text, expected.likelihood, None)


CLUSTER = """
import ray, sys
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_cluster_that_is_there_is_joined_by_its_address_and_left_running(model: str, tmp_path: Path):
    environ = os.environ | ENVIRON | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CLUSTER], env=environ, cwd=ROOT, **pipes) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        assert address
        code, _, err = finished(*words(model, tmp_path / "ray", "--address", address))
        assert code == 0, err
        assert cluster.poll() is None
        code, _, err = finished(*words(model, tmp_path / "more", "--address", address, "--workers", "9"))
        assert (code, "9 workers need 9 CPUs, the cluster has 2" in err) == (2, True)
        cluster.stdin.close()
        cluster.wait(timeout=60)
    assert lasting(read_run(tmp_path / "ray")) == lasting(run_here(small_grid(model), tmp_path / "local"))


@pytest.mark.slow
def test_a_cluster_without_what_a_worker_needs_is_refused(model: str, tmp_path: Path):
    for more, sentence in (
        (("--device", "cuda"), "2 workers need 2 GPUs, the cluster has 0"),
        (("--address", "127.0.0.1:1"), "no Ray cluster at '127.0.0.1:1'"),
    ):
        code, _, err = finished(*words(model, tmp_path / "run", *more))
        assert (code, sentence in err) == (2, True), err
