"""What HumanEval and MBPP share: programs are run only where that was allowed, and only in the sandbox."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from unmask.errors import UnmaskError
from unmask.tasks import listing, sandbox
from unmask.tasks.benchmark import Benchmark, judged
from unmask.tasks.sandbox import Confinement, Trial
from unmask.tasks.task import Grade, Metric, Problem


@dataclass(frozen=True)
class ProgramTask(Benchmark):
    allow_code: bool = False  # whether programs that a model wrote may be run
    sandbox: Confinement = "namespaces"  # rlimits accepts less, and the grade says so

    @abstractmethod
    def trial(self, problem: Problem, text: str) -> Trial:
        """The program an output holds, and what it is asked."""

    def ready(self) -> None:
        """Refuse before the first problem what would be refused at each."""
        if not self.allow_code:
            raise UnmaskError(
                "grading this task runs programs that a model wrote: allow it with --allow-code (allow-code=true)"
            )
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
        trial = self.trial(problem, text)
        if not trial.program.strip():
            return judged(False, None)
        self.ready()
        verdict = sandbox.run(trial, self.sandbox)
        return Grade(verdict.right, float(verdict.right), trial.program, verdict.note)


def read(text: str, entry: str | None = None) -> str | None:
    """The program an output holds; of several blocks the last that defines the entry point."""
    text = text[-listing.LONGEST :]
    blocks = listing.fences(text)
    begin, done = text.rfind("[BEGIN]"), text.rfind("[DONE]")
    if not blocks and 0 <= begin < done:
        blocks = [text[begin + len("[BEGIN]") : done].strip("\n")]
    return listing.choose(blocks, entry) if blocks else listing.span(text)
