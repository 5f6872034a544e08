"""What HumanEval and MBPP share: programs run only if that is allowed, and only in the sandbox."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from unmask.errors import UnmaskError
from unmask.tasks.published import code_extraction as listing
from unmask.tasks.published.benchmark import Benchmark, grade_of
from unmask.tasks.sandbox import run as sandbox
from unmask.tasks.sandbox.run import Confinement, ProgramTest
from unmask.tasks.task import Grade, Metric, Problem


@dataclass(frozen=True)
class ProgramTask(Benchmark):
    version: ClassVar[int] = 2

    allow_code: bool = False  # whether to run programs that a model wrote
    sandbox: Confinement = "namespaces"  # rlimits is weaker, and the grade notes it

    @abstractmethod
    def program_test(self, problem: Problem, text: str) -> ProgramTest:
        """The program of an output with its tests."""

    def ready(self) -> None:
        """Raise if no program could be run."""
        if not self.allow_code:
            raise UnmaskError("grading runs programs that a model wrote: allow it with --allow-code (allow-code=true)")
        if self.sandbox == "namespaces":
            sandbox.means()

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        del metric
        return read(text)

    def key(self, text: str) -> str:
        answer = self.answer(text)
        return text if answer is None else listing.tidy(answer)

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        """Both metrics run the same tests."""
        del metric
        test = self.program_test(problem, text)
        if not test.program.strip():
            return grade_of(False, None)
        self.ready()
        result = sandbox.run(test, self.sandbox)
        return Grade(result.right, float(result.right), test.program, result.note)


def read(text: str, entry: str | None = None) -> str | None:
    """The program in an output; of several blocks the last that defines the entry point, with those it needs."""
    text = text[-listing.LONGEST :]
    program = _find(text, entry)
    if listing.plain(text) == text or (program is not None and listing.parse(program)):
        return program
    return _find(listing.plain(text), entry)


def _find(text: str, entry: str | None) -> str | None:
    blocks = listing.fences(text)
    begin, done = text.rfind("[BEGIN]"), text.rfind("[DONE]")
    if not blocks and 0 <= begin < done:
        blocks = [text[begin + len("[BEGIN]") : done].strip("\n")]
    return listing.last_defining(blocks, entry) if blocks else listing.span(text)
