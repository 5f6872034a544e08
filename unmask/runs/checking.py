"""The check of finished texts while they are decoded: which function it is, where it runs, and what it costs.

Checks run in child processes with bounded time and memory, several at a time, so that one which raises, hangs or
allocates without bound fails the problem that it was asked about and nothing else. A check that is named by its spec
runs in a process of its own (`tasks/checker_child.py`). A function of the user's exists only in this process, so it
runs in forks of it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias

import unmask.tasks
from unmask.child_process import ChildError, ChildProcess, limit_memory, limit_time
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.devices import proc_bytes
from unmask.tasks.checkers import Verdict, checker

Check: TypeAlias = str | Callable[[str], Any]  # a spec, or a function from a text to a verdict
VISIBLE = "visible"  # the check that a task reads from its prompts
MEMORY = 2 << 30  # bytes that a check may allocate
SECONDS = 20.0  # processor time of one check
PATIENCE = 120.0  # seconds after which a check that waits for something is stopped
MOST_WORKERS = 8


class Child(Protocol):
    def ask(self, value: Any) -> Any:
        """Return the answer to a JSON value, or raise a ChildError."""
        ...


class Forked:
    """A function of the user's in a fork of this process. It starts again after it was stopped."""

    def __init__(self, function: Callable[[str], Any]):
        self.function = function
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, value: Any) -> Any:
        """Return the verdict on a text, or raise a ChildError."""
        if self._process is None or not self._process.is_alive() or self._pipe is None:
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send_bytes(json.dumps(value["text"]).encode())
            reply = json.loads(self._pipe.recv_bytes()) if self._pipe.poll(PATIENCE) else None
        except (OSError, EOFError):
            reply = None
        if reply is None:
            self.stop()
            limits = f"{SECONDS:.0f} s of processor time, {PATIENCE:.0f} s of waiting or {MEMORY >> 30} GiB"
            raise ChildError(f"it was stopped: it took more than {limits}, or crashed")
        if "error" in reply:
            raise ChildError(reply["error"])
        return reply["value"]

    def _start(self) -> None:
        self.stop()
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        process = self._process = context.Process(target=_answer, args=(self.function, theirs), daemon=True)
        process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None


def _answer(function: Callable[[str], Any], pipe: Connection) -> None:
    """Answer requests in a fork until the pipe is closed. What the function prints is discarded."""
    sys.stdin = sys.stdout = sys.stderr = nothing = open(os.devnull, "r+")  # noqa: SIM115  until the process ends
    for number in range(3):
        os.dup2(nothing.fileno(), number)
    limit_memory((proc_bytes("self/status", "VmSize") or 0) + MEMORY)
    with contextlib.suppress(EOFError, OSError):
        while True:
            text = json.loads(pipe.recv_bytes())
            limit_time(SECONDS)
            try:
                verdict = Verdict.of(function(text), text)
                reply: dict[str, Any] = {"value": {"score": verdict.score, "span": verdict.span, "note": verdict.note}}
            except BaseException as error:  # MemoryError, SystemExit and KeyboardInterrupt are faults of the function
                reply = {"error": f"{type(error).__name__}: {error}"[:500]}
            limit_time(0)
            pipe.send_bytes(json.dumps(reply).encode())


class Pool:
    """Children that answer requests in parallel."""

    def __init__(self, make: Callable[[], Child]):
        size = min(MOST_WORKERS, os.cpu_count() or 1)
        self._idle: SimpleQueue[Child] = SimpleQueue()
        for _ in range(size):
            self._idle.put(make())
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="check")

    def ask(self, requests: Sequence[Any]) -> list[tuple[Verdict, float]]:
        """Return the verdict on each request, and the seconds that it took."""
        return list(self._threads.map(self._ask, requests))

    def _ask(self, request: Any) -> tuple[Verdict, float]:
        child, began = self._idle.get(), time.perf_counter()
        try:
            said = child.ask(request)
        except ChildError as error:
            sentence = " ".join(str(error).removeprefix("UnmaskError: ").split())
            raise UnmaskError(f"a check could not judge a text: {sentence}") from None
        finally:
            self._idle.put(child)
        span = None if said["span"] is None else (said["span"][0], said["span"][1])
        return Verdict(said["score"], span, said["note"]), time.perf_counter() - began


@cache
def _named_pool() -> Pool:
    script = Path(unmask.tasks.__path__[0]) / "checker_child.py"
    return Pool(lambda: ChildProcess(script, MEMORY, SECONDS, PATIENCE))


@cache
def _function_pool(function: Callable[[str], Any]) -> Pool:
    return Pool(lambda: Forked(function))


def read_checks(given: Any) -> tuple[Check, ...]:
    """Read the value of an option `check`: one or several specs or functions. Refuse bad ones."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    checks: tuple[Any, ...] = () if given is None else tuple(given) if several else (given,)
    for check in checks:
        if isinstance(check, str) and check != VISIBLE:
            checker.make(check)
        elif not isinstance(check, str) and not callable(check):
            raise UnmaskError(f"a check must be a spec such as 'json' or a function of a text, got {check!r}")
    return checks


def name_of(check: Check) -> str:
    """Return the spec of a check, or the name of a function."""
    return check if isinstance(check, str) else f"function {getattr(check, '__qualname__', type(check).__name__)}"


class BatchJudge:
    """Checks the texts of a batch of problems, each text once."""

    def __init__(
        self,
        model: Model,
        checks: Sequence[Check],
        task: str | None,
        messages: Sequence[Sequence[Mapping[str, str]]],
        starts: Sequence[int] | None,
        text_of: Callable[[int, Sequence[int]], str],
    ):
        """Remember what belongs to the problems of a batch.

        `starts` are the positions at which answers begin, if answers are all that is written; `text_of` returns the
        text of a problem's ids.
        """
        if VISIBLE in checks and task is None:
            raise UnmaskError("the check 'visible' is read from the prompts of a task: use it with eval")
        self.model, self.starts, self.text_of = model, starts, text_of
        self._functions = [check for check in checks if not isinstance(check, str)]
        specs = [check for check in checks if isinstance(check, str) and check != VISIBLE]
        named = {"checks": specs, "task": task if VISIBLE in checks else None}
        self._named = [{**named, "messages": list(each)} for each in messages] if specs or VISIBLE in checks else []
        self._known: dict[tuple[int, str], Verdict] = {}
        self._checks: Counter[int] = Counter()
        self._seconds: Counter[int] = Counter()

    def __call__(self, problem: Sequence[int], ids: Sequence[Sequence[int]]) -> list[tuple[float, range]]:
        texts = [(number, self.text_of(number, row)) for number, row in zip(problem, ids, strict=True)]
        self._check([key for key in dict.fromkeys(texts) if key not in self._known])
        return [
            (self._known[key].score, self._positions(self._known[key], key[0], row))
            for key, row in zip(texts, ids, strict=True)
        ]

    def cost(self, problem: int) -> tuple[int, float]:
        return self._checks[problem], self._seconds[problem]

    def _check(self, keys: Sequence[tuple[int, str]]) -> None:
        """Check new texts. All checks of a text have to pass; the first that does not says where it is wrong."""
        pools = [_function_pool(function) for function in self._functions]
        asked = [pool.ask([{"text": text} for _, text in keys]) for pool in pools]
        if self._named:
            asked.append(_named_pool().ask([{**self._named[number], "text": text} for number, text in keys]))
        for key, *answers in zip(keys, *asked, strict=True):
            verdicts = [verdict for verdict, _ in answers]
            self._known[key] = min(verdicts, key=lambda verdict: verdict.score)
            self._checks[key[0]] += 1
            self._seconds[key[0]] += sum(seconds for _, seconds in answers)  # type: ignore[assignment]

    def _positions(self, verdict: Verdict, problem: int, ids: Sequence[int]) -> range:
        """Return the positions of the tokens whose text the verdict calls wrong."""
        if verdict.span is None or self.starts is None:
            return range(0)
        start, answer = self.starts[problem], ids[self.starts[problem] :]

        def size(count: int) -> int:
            return len(self.model.text.decode(list(answer[:count])))

        counts = range(len(answer) + 1)
        first = bisect_right(counts, verdict.span[0], key=size) - 1  # tokens that end before the span
        last = bisect_left(counts, verdict.span[1], key=size)
        return range(start + first, start + last)
