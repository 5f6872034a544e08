"""One path: each step gives every masked position of the block a token and writes those an order puts first.

This is LLaDA's published loop (arXiv 2502.09992). Decoders that differ only in the order are its cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from unmask.core import Canvas, Denoiser, Frame, Noise, Schedule, lasts
from unmask.errors import UnmaskError
from unmask.policies.order import Order, Sight, foremost
from unmask.policies.token import pick

Case = TypeVar("Case", bound="Path")


@dataclass(frozen=True)
class Path:
    """Abstract: a case adds its `order`."""

    block: int | None = None  # masks a block; 32, or all of them when there are fewer
    steps: int | None = None  # in all; half the masks, or all of them for block 1
    temperature: float = 0.0  # 0 takes the likeliest token

    order: ClassVar[Order]

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, denoiser: Denoiser, canvas: Canvas, noise: Noise) -> Iterator[Frame]:
        holes = canvas.holes
        local = denoiser
        for step in Schedule.plan(holes.shape[1], self.block, self.steps):
            if step.holds(lasts(denoiser)):
                local = denoiser.hold(canvas, fresh=holes[:, step.holes])
            at = canvas.open(holes[:, step.holes], step.open)
            places = canvas.places(at)
            beliefs = local(canvas, at)
            token, logp = pick(beliefs, self.temperature, noise, step.number, places)
            token, logp = token[:, :, 0], logp[:, :, 0]
            rank = type(self).order(Sight(beliefs, logp, noise, step.number, places))
            written = foremost(rank, canvas.masked_at(at), step.quota)
            canvas = canvas.write(at, token, written, step.number, logp)
            yield Frame(canvas, canvas.sum_logp(holes), step.number)

    @property
    def choice(self) -> str:
        return "score"

    def resolved(self: Case, length: int) -> Case:
        schedule = Schedule.plan(length, self.block, self.steps)
        return replace(self, block=schedule.block, steps=schedule.steps)

    def rows(self, length: int) -> int:
        return Schedule.plan(length, self.block, self.steps).steps


def check_temperature(temperature: float) -> None:
    if not temperature >= 0 or temperature == float("inf"):
        raise UnmaskError(f"temperature={temperature} does not work: choose 0 or more")


def check_sure(sure: float) -> None:
    if not 0 <= sure <= 1:
        raise UnmaskError(f"sure={sure} is no probability: choose 0 to 1")
