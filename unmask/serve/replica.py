"""A thread that decodes tickets of a queue with one loaded model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import torch

from unmask.models import Model
from unmask.serve.batcher import Batcher
from unmask.serve.limits import RequestLimits
from unmask.serve.refusals import ClosingError
from unmask.serve.ticket import TicketQueue

log = logging.getLogger("unmask.serve")


class Replica:
    def __init__(self, model: Model, limits: RequestLimits, answered: Callable[[int, int], None], queue: TicketQueue):
        self.model, self.queue, self.limits = model, queue, limits
        self.batcher = Batcher(model, limits.batch_rows, answered)
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name=f"unmask-{model.name}", daemon=True)

    def start(self) -> None:
        self.queue.join()
        self._thread.start()

    def stop(self) -> None:
        """Give up what is being decoded."""
        self.stopped = True

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def broken(self) -> bool:
        """A device that failed fails for good: only another process can use it."""
        return self.batcher.broken

    @property
    def running(self) -> int:
        return len(self.batcher)

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        # Coroutines leave and enter inference mode in any order: it has to hold outside all of them.
        with torch.inference_mode():
            while not self.stopped and not self.broken and not (self.queue.closed and not len(self.batcher)):
                try:
                    self._turn()
                except Exception as error:  # of the batcher itself: no request may be left waiting for an answer
                    log.exception("a step failed")
                    self.batcher.stop(error)
            self.batcher.stop(ClosingError("the server was stopped before this request was finished"))
            self.queue.leave()

    def _turn(self) -> None:
        if not len(self.batcher):
            self.queue.wait()
        self.batcher.start(*self.queue.take_share(self.limits.running - len(self.batcher)))
        self.batcher.step()
        self.batcher.start_again()
