"""The candidates of a search: each with its score under every likelihood, and whether it leads to a right answer.

    {"format": "unmask-candidates", "version": 1, "model": …, "task": …, "decoder": …, "seed": …, …}
    {"problem": …, "step": 16, "block": 0, "parent": 0, "draw": 1, "kept": true, "scores": {"block": −3.1, …}, …}

The search is pruned by its own likelihood; the others score the same candidates, each total summed along the
candidate's own line of parents. `path` is the sum of log p of the tokens a candidate has written, each at its step.

A candidate counts as right if its completion is: the full draw in which it was scored, graded as an answer.
Alternatively (`finished`) low-confidence writes the masks that are left and that result is graded, a run per candidate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unmask.core import Branch, Canvas, Denoiser, Rows, Schedule, Session, Step
from unmask.core.cache import distinct
from unmask.core.shapes import Score, Tokens
from unmask.decoders import LowConfidence, OrderTokenSearch
from unmask.errors import UnmaskError, check_at_least
from unmask.policies.likelihood import likelihood, score_blocks
from unmask.runs.files import finite_values, read_json_lines, write_output
from unmask.runs.generation import Generation
from unmask.runs.settings import spec
from unmask.runs.text import EncodedPrompt, answer_text, read_prompt
from unmask.tasks import Problem, Task, task
from unmask.tasks.grading import ready

FORMAT, VERSION = "unmask-candidates", 1
PATH = "path"
LIKELIHOODS = ("block", "all-blocks", "future-masked")  # likelihoods of the paper
SCORES = (*LIKELIHOODS, PATH)
BATCH = 64  # problems searched together; results do not depend on it


@dataclass(frozen=True)
class Candidate:
    """One of the K² candidates that a problem has at each search."""

    problem: str
    step: int
    block: int
    parent: int  # index among the problem's rows
    draw: int
    kept: bool  # the search itself kept it
    scores: dict[str, float | None]  # total by likelihood; null if it is not finite
    text: str  # text of its completion
    right: bool  # its completion is right
    finished: bool | None  # low-confidence makes it right from here; null unless `finish`


BlockScores = dict[str, Tensor]  # by likelihood, (row, block)
Totals = list[dict[str, float | None]]  # for each candidate, by likelihood


@dataclass(frozen=True)
class Study:
    """Problems of a task, searched by the generation's Order-Token Search."""

    generation: Generation
    task: Task
    finish: bool = False  # also have every candidate finished by low-confidence

    def __post_init__(self) -> None:
        search = self.generation.decoding.decoder
        if not isinstance(search, OrderTokenSearch) or search.samples > 1:
            raise UnmaskError(f"{spec(search)} has no candidates to compare: choose order-token-search with samples=1")

    def header(self) -> dict[str, Any]:
        """Return the first line of the file of candidates."""
        model, decoding = self.generation.model, self.generation.decoding
        names = {"model": model.name, "task": task.spec(self.task), "task_version": self.task.version}
        return {"format": FORMAT, "version": VERSION, **names, **decoding.record(decoding.length, model)}

    def candidates(self, problems: Sequence[Problem], batch: int = BATCH) -> Iterator[Candidate]:
        """Yield candidates by batch, then search, then problem, then parent and draw."""
        check_at_least(1, batch=batch)
        ready(self.task)
        model, length = self.generation.model, self.generation.decoding.length
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for start in range(0, len(problems), batch):
                part = problems[start : start + batch]
                prompts = [read_prompt(model, self.task.messages(problem), length) for problem in part]
                for step, branch, *columns in self._searches(prompts):
                    yield from self._graded(step, branch, columns, part, pool)

    def _searches(
        self, prompts: Sequence[EncodedPrompt]
    ) -> Iterator[tuple[Step, Branch, Totals, list[str], list[str]]]:
        """Yield each search of a batch: for every candidate its totals, its text and its finished text, if wanted."""
        decoding, model = self.generation.decoding, self.generation.model
        canvas = self.generation.canvas(prompts)
        session = Session(decoding.decoder, model.denoiser, canvas, decoding.seed, decoding.adapter(model))
        search: Any = session.decoder  # with every default written out
        schedule = session.rows.plan(search.block, search.steps)
        steps = list(schedule)
        zeros = canvas.logp.new_zeros(len(canvas) * search.beams, schedule.blocks)
        scores: BlockScores = dict.fromkeys(LIKELIHOODS, zeros)
        for frame in session:
            if frame.branch is None:
                continue
            step, branch = steps[frame.step - 1], frame.branch
            with torch.inference_mode():
                rows = replace(session.rows.keep(branch.canvas.problem), canvas=branch.canvas)
                scores = _scored(rows, branch, scores, step)
                totals = _totals(scores, branch.canvas.sum_logp(rows.slots))
                tokens = _finish(session.model, branch.canvas, schedule, frame.step) if self.finish else None
            finished = [] if tokens is None else self._texts(tokens, branch.canvas, prompts)
            numbered = replace(branch, parent=branch.parent % search.beams)  # among the rows of its problem
            yield step, numbered, totals, self._texts(branch.completion, branch.canvas, prompts), finished
            scores = {name: blocks[branch.survivors] for name, blocks in scores.items()}

    def _graded(
        self, step: Step, branch: Branch, columns: Sequence[Any], problems: Sequence[Problem], pool: ThreadPoolExecutor
    ) -> Iterator[Candidate]:
        """Yield the candidates of a search with their grades."""
        totals, texts, finished = columns
        owners = [problems[number] for number in branch.canvas.problem.tolist()]
        right = self._right(owners, texts, pool)
        ended = self._right(owners, finished, pool) if self.finish else [None] * len(owners)
        places = (branch.parent.tolist(), branch.draw.tolist(), branch.kept.tolist())
        for problem, *values in zip(owners, *places, totals, texts, right, ended, strict=True):
            yield Candidate(problem.id, step.number, step.block, *values)

    def _texts(self, tokens: Tokens, canvas: Canvas, prompts: Sequence[EncodedPrompt]) -> list[str]:
        model, stop = self.generation.model, self.generation.decoding.stop
        rows = zip(tokens.tolist(), canvas.pad.tolist(), canvas.problem.tolist(), strict=True)
        return [answer_text(model, prompts[number], ids[pad:], stop) for ids, pad, number in rows]

    def _right(self, problems: Sequence[Problem], texts: Sequence[str], pool: ThreadPoolExecutor) -> list[bool]:
        """Grade the texts, equal ones of one problem once."""
        keys = [(problem.id, text) for problem, text in zip(problems, texts, strict=True)]
        known = dict(zip(keys, problems, strict=True))
        grades = pool.map(lambda key: self.task.grade(known[key], key[1]).right, known)
        right = dict(zip(known, grades, strict=True))
        return [right[key] for key in keys]


def _scored(rows: Rows, branch: Branch, scores: BlockScores, step: Step) -> BlockScores:
    """Score candidates as the decoder does, under every likelihood."""
    full = replace(rows, canvas=replace(branch.canvas, tokens=branch.completion))
    return {
        name: score_blocks(rows.with_scores(blocks[branch.parent]), [full], likelihood.make(name), step)
        for name, blocks in scores.items()
    }


def _totals(scores: BlockScores, path: Score) -> Totals:
    columns = {name: blocks.sum(1).tolist() for name, blocks in scores.items()} | {PATH: path.tolist()}
    return [dict(zip(columns, finite_values(row), strict=True)) for row in zip(*columns.values(), strict=True)]


def _finish(model: Denoiser, canvas: Canvas, schedule: Schedule, step: int) -> Tokens:
    """Have low-confidence write the masks of each candidate in the steps that are left; equal ones once."""
    left = canvas.slots.shape[1]
    if not left:
        return canvas.tokens
    first, copies = distinct(canvas, canvas.slots[:, :0])
    greedy = LowConfidence(block=min(schedule.block, left), steps=schedule.steps - step)
    *_, last = greedy(Rows.start(canvas.rows(canvas.pad.new_tensor(first)), model))
    return last.canvas.tokens[copies]


def write_candidates(path: str | os.PathLike[str], header: dict[str, Any], candidates: Iterable[Candidate]) -> None:
    """Write a file that appears when all candidates are there."""
    lines = [json.dumps(header, ensure_ascii=False)]
    lines += [json.dumps(asdict(candidate), ensure_ascii=False, allow_nan=False) for candidate in candidates]
    write_output(path, "\n".join(lines) + "\n", "candidates")


def read_candidates(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Candidate]]:
    """Return the header and every candidate of a file that `write_candidates` wrote."""
    header, *lines = read_json_lines(path, FORMAT, VERSION)
    try:
        return header, [Candidate(**line) for line in lines]
    except TypeError as error:
        raise UnmaskError(f"a line of {str(path)!r} is not a candidate: {error}") from None
