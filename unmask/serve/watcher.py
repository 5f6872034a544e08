"""Who is told what an engine does, such as metrics and logs."""

from __future__ import annotations

from unmask.serve.request import Completed
from unmask.serve.ticket import Ticket


class Watcher:
    """Takes no notice; others override what they care for."""

    def answered(self, rows: int, requests: int) -> None:
        """A forward."""

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        """A request: `done`, `cancelled`, or the code of its refusal."""


class Watchers(Watcher):
    """Several as one."""

    def __init__(self, *watchers: Watcher):
        self.watchers = watchers

    def answered(self, rows: int, requests: int) -> None:
        for watcher in self.watchers:
            watcher.answered(rows, requests)

    def ended(self, ticket: Ticket, outcome: str, answer: Completed | None) -> None:
        for watcher in self.watchers:
            watcher.ended(ticket, outcome, answer)
