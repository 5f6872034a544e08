"""Requests that are about to begin, gathered by their settings.

Between two forwards a decoder works once for all requests of its cohort. Where requests end one by one, those that take
their places would each be a cohort of its own, and many small cohorts cost more than the forwards that they share. So a
request waits a few forwards for others, unless few with its settings are being decoded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from unmask.models import Model
from unmask.serve.cohort import settings_of
from unmask.serve.ticket import Ticket

PART = 8  # nobody waits any longer in a group that is at least this part of those being decoded with its settings
PATIENCE = 8  # forwards that a group waits at most


@dataclass
class Group:
    tickets: list[Ticket] = field(default_factory=list)
    waited: int = 0  # forwards

    @property
    def wanted(self) -> list[Ticket]:
        return [ticket for ticket in self.tickets if ticket.wanted]


class Gathering:
    def __init__(self, model: Model):
        self.model = model
        self._groups: defaultdict[Hashable, Group] = defaultdict(Group)

    def __len__(self) -> int:
        return sum(len(group.wanted) for group in self._groups.values())

    def add(self, tickets: Iterable[Ticket]) -> None:
        for ticket in tickets:
            self._groups[settings_of(self.model, ticket)].tickets.append(ticket)

    def wait(self) -> None:
        """For one more forward."""
        for group in self._groups.values():
            group.waited += 1

    def take(self, decoded: Mapping[Hashable, int]) -> Iterator[tuple[Hashable, list[Ticket]]]:
        """The groups that need not wait any longer, given how many requests of which settings are being decoded."""
        for settings, group in list(self._groups.items()):
            tickets = group.wanted
            if PART * len(tickets) >= decoded.get(settings, 0) or group.waited >= PATIENCE or not tickets:
                del self._groups[settings]
                yield settings, tickets

    def take_all(self) -> list[Ticket]:
        tickets = [ticket for group in self._groups.values() for ticket in group.wanted]
        self._groups.clear()
        return tickets
